import {
  type AuditContext,
  type ChainEnd,
  isLinkIntact,
  isSealed,
  linkHash,
  sealLink,
} from "./audit-chain.ts";
import * as store from "./audit-store.ts";
import { type AuditReport, verifyAudit } from "./audit-verification.ts";
import { databaseNowMs } from "../clock.ts";
import type { Queryable } from "../database/db.ts";
import { workInTransactions } from "../database/work-in-batches.ts";

/** One audited act. It may contain only ids, names of fields and kinds, but no personal value and no secret. */
export interface AuditEntry {
  /** Who: `cli` for the operator, `issuer:<id>`, `api-key:<id>`, the address of a user, member or business, `system`. */
  readonly actor: string;
  /** `thing.verb`, such as `client.disable`. */
  readonly action: string;
  /** The id of what it was done to. */
  readonly subject: string;
  readonly details?: Readonly<Record<string, unknown>>;
}

/** The audit trail (decisions section 8). */
export interface Audit {
  /** Writes an entry in the transaction that it describes; {@link chainAudit} links it at most 1 s after that commits. */
  record(tx: Queryable, entry: AuditEntry): Promise<void>;
  /** @param onChecked is told after every batch how many links have been recomputed */
  verify(onChecked?: (total: number) => void): Promise<AuditReport>;
  /** The newest link, to be anchored outside of this database. @throws Error if the service did not seal it */
  head(tx: Queryable): Promise<ChainEnd>;
}

export function createAudit(ctx: AuditContext): Audit {
  return {
    // By the database's clock: if this machine's is wrong, the entry would look as if inserted between older ones.
    record: async (tx, entry) =>
      store.insertEntry(tx, entry, Math.floor(databaseNowMs(ctx.clock) / 1000)),
    verify: async (onChecked) => verifyAudit(ctx, onChecked),
    head: async (tx) => {
      const { head } = await getState(ctx, tx);
      return { position: head.position, hash: head.hash };
    },
  };
}

/** The most entries of a page. */
const pageMax = 100;

/**
 * The entries of the trail, newest first, linked or not.
 *
 * @param of.about an actor or a subject as entries have it: only entries of those
 * @param of.before the `nextCursor` of the page before; undefined begins
 */
export async function listEntries(
  db: Queryable,
  of: { about?: string | undefined; before?: number | undefined },
): Promise<{ items: store.ListedEntry[]; nextCursor?: number }> {
  const { about, before = Number.MAX_SAFE_INTEGER } = of;
  const page = { before, limit: pageMax + 1 };
  const rows =
    about === undefined
      ? await store.listEntries(db, page)
      : await store.listEntriesAbout(db, about, page);
  const items = rows.slice(0, pageMax);
  const last = items.at(-1)?.id;
  return { items, ...(rows.length > pageMax && last !== undefined ? { nextCursor: last } : {}) };
}

/**
 * Detects that the database was restored from a dump of another cluster, whose transaction ids mean nothing here: then
 * every entry without a link still has to be linked. Call it before anything is recorded, because otherwise those
 * entries would look like inserted ones.
 */
export async function noteRestore(db: Queryable): Promise<void> {
  await store.dropForeignHorizon(db);
}

/** How long entries are kept (decisions section 8, "Retention"). */
export const auditRetentionSeconds = 31_536_000;

/** One transaction links or removes at most this many. */
const batchMax = 1000;

/**
 * Links the entries that are not in the chain yet, in the order of their transactions and ids, each with the hash of the
 * one before. Every process runs it at least every second; one at a time does the work, the others return at once.
 *
 * Ids have gaps and do not commit in order. So an entry is linked when its transaction is older than every one still
 * under way, and the position is the chain's own number.
 *
 * @returns how many entries were linked
 */
export async function chainAudit(ctx: AuditContext): Promise<number> {
  // Most runs find nothing, and cost this one call.
  if (!(await store.hasUnlinked(ctx.db))) return 0;
  // The batch that is not full moves the horizon past what it linked, so that it is not looked at again.
  return workInTransactions(ctx.db, batchMax, async (tx) => linkBatch(ctx, tx));
}

async function linkBatch(ctx: AuditContext, tx: Queryable): Promise<number> {
  if (!(await store.tryLockChain(tx))) return 0;
  const { head, horizon } = await getState(ctx, tx);
  const window = await store.readWindow(tx, horizon);
  const entries = await store.listUnlinked(tx, window, batchMax);
  let end: ChainEnd = head;
  const links: store.Link[] = [];
  for (const entry of entries) {
    end = { position: end.position + 1, hash: linkHash(end, entry) };
    links.push({ ...end, entryId: entry.id, seal: sealLink(ctx, "link", end) });
  }
  if (links.length > 0) await store.insertLinks(tx, links, ctx.clock.now());
  await store.moveHead(tx, {
    ...end,
    seal: sealLink(ctx, "head", end),
    horizon: horizonAfter(window, entries) ?? horizon,
  });
  return links.length;
}

/**
 * The transaction before which everything is linked; null if it is not known. After a full batch, more entries of the
 * last transaction may wait.
 */
function horizonAfter(window: store.Window, linked: readonly store.UnlinkedRow[]): string | null {
  if (linked.length < batchMax) return window.before;
  return window.from === "0" ? null : (linked.at(-1)?.tx ?? null);
}

/**
 * Removes entries past their retention with their links, from the old end only. The link that was removed last is
 * recorded and sealed as the checkpoint where the verification then starts. Entries that follow a younger one stay
 * until that one is old enough.
 *
 * @param options.before Unix seconds; entries written earlier are removed
 * @returns how many entries were removed
 * @throws Error if the chain is broken there, so that the evidence of a manipulation is kept
 */
export async function purgeAudit(ctx: AuditContext, options: { before: number }): Promise<number> {
  return workInTransactions(ctx.db, batchMax, async (tx) => purgeBatch(ctx, tx, options.before));
}

async function purgeBatch(ctx: AuditContext, tx: Queryable, before: number): Promise<number> {
  await store.lockChain(tx);
  const { checkpoint } = await getState(ctx, tx);
  const oldest = await store.listLinks(tx, { after: checkpoint.position, limit: batchMax });
  let end: ChainEnd = checkpoint;
  for (const link of oldest) {
    // Otherwise, forging the age of an entry would make the service itself remove it.
    if (!isLinkIntact(ctx, end, link)) throw new Error("the audit chain is broken; verify it");
    if (link.entry.at >= before) break;
    end = link;
  }
  const count = end.position - checkpoint.position;
  if (count === 0) return 0;
  await store.moveCheckpoint(tx, { ...end, seal: sealLink(ctx, "checkpoint", end) });
  await store.deleteLinks(tx, end.position);
  return count;
}

/** Nothing is built upon an end that the service did not seal. @throws Error */
async function getState(ctx: AuditContext, tx: Queryable): Promise<store.ChainState> {
  const state = await store.getChainState(tx);
  const isGenuine =
    isSealed(ctx, "head", state.head) && isSealed(ctx, "checkpoint", state.checkpoint);
  if (!isGenuine) throw new Error("an end of the audit chain is forged; verify it");
  return state;
}
