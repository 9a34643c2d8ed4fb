import { type AuditContext, type ChainEnd, isSealed, linkHash, sealLink } from "./audit-chain.ts";
import * as store from "./audit-store.ts";
import { readMovedSeconds } from "../clock.ts";
import type { Queryable } from "../database/db.ts";
import { equalBytes } from "../cryptography/mac.ts";

/** How the trail was manipulated. `position` counts the links from 1; `entryId` is null if no entry is concerned. */
interface AuditFault {
  readonly kind:
    | "entry_edited"
    | "entry_deleted"
    | "link_missing"
    /** The link itself does not carry the service's seal. */
    | "link_forged"
    /** An entry that was put between older ones. */
    | "entry_inserted"
    /** The newest links were removed, or the recorded head was changed. */
    | "head_wrong"
    /** The oldest links were removed otherwise than by the purge. */
    | "checkpoint_wrong";
  readonly position: number | null;
  readonly entryId: number | null;
}

export interface AuditReport {
  readonly isIntact: boolean;
  /** Links that were recomputed. */
  readonly checked: number;
  /** At most 100. */
  readonly faults: readonly AuditFault[];
  /** The newest link, to compare with what was recorded elsewhere; `hash` in hex. */
  readonly head: { readonly position: number; readonly hash: string };
  /** The unsealed tail: entries that are not linked yet; an age above a few seconds means that no job runs. */
  readonly unsealed: { readonly count: number; readonly oldestAgeSeconds: number };
}

const batchMax = 1000;
const faultsMax = 100;
/** No transaction stays open for that long, so an entry this much older than the one before was invented later. */
const backdatedSeconds = 3600;

/**
 * Recomputes the whole chain from the checkpoint, on one snapshot of the database. It finds every change made behind
 * the service's back except two: entries that were deleted before they were linked, and a whole trail that was put back
 * to an earlier end, which only a head that was kept or anchored elsewhere shows.
 */
export async function verifyAudit(
  ctx: AuditContext,
  onChecked?: (total: number) => void,
): Promise<AuditReport> {
  return ctx.db.transaction(async (tx) => {
    await store.useSnapshot(tx);
    const { head, checkpoint, horizon } = await store.getChainState(tx);
    // A process that has not heard of a move of the clock yet writes the time from before it.
    const backdatedMax = backdatedSeconds + (await readMovedSeconds(tx));
    const walk = startWalk(ctx, { end: checkpoint, backdatedMax });
    if (!isSealed(ctx, "checkpoint", checkpoint))
      addFault(walk, "checkpoint_wrong", { position: checkpoint.position, entryId: null });
    await walkLinks(tx, walk, onChecked);
    const isHead = walk.end.position === head.position && equalBytes(walk.end.hash, head.hash);
    if (!isHead || !isSealed(ctx, "head", head))
      addFault(walk, "head_wrong", { position: head.position, entryId: null });
    const tail = await store.describeTail(tx, horizon);
    for (const entryId of tail.insertedIds)
      addFault(walk, "entry_inserted", { position: null, entryId });
    const age = tail.oldestAt === null ? 0 : Math.max(0, ctx.clock.now() - tail.oldestAt);
    return {
      isIntact: walk.faults.length === 0,
      checked: walk.checked,
      faults: walk.faults,
      head: { position: head.position, hash: head.hash.toString("hex") },
      unsealed: { count: tail.count, oldestAgeSeconds: age },
    };
  });
}

interface Walk {
  readonly ctx: AuditContext;
  readonly faults: AuditFault[];
  /** By how many seconds an entry may be older than one before it. */
  readonly backdatedMax: number;
  end: ChainEnd;
  latestAt: number;
  checked: number;
}

function startWalk(ctx: AuditContext, from: Pick<Walk, "end" | "backdatedMax">): Walk {
  return { ctx, faults: [], ...from, latestAt: 0, checked: 0 };
}

function addFault(walk: Walk, kind: AuditFault["kind"], where: Omit<AuditFault, "kind">): void {
  if (walk.faults.length < faultsMax) walk.faults.push({ kind, ...where });
}

async function walkLinks(
  tx: Queryable,
  walk: Walk,
  onChecked?: (total: number) => void,
): Promise<void> {
  let after = Number.MIN_SAFE_INTEGER;
  for (;;) {
    const links = await store.listLinks(tx, { after, limit: batchMax });
    for (const link of links) checkLink(walk, link);
    walk.checked += links.length;
    onChecked?.(walk.checked);
    const last = links.at(-1);
    if (last === undefined || links.length < batchMax) return;
    after = last.position;
  }
}

/** After a fault the verification continues from what the link says, so that one change counts as one fault. */
function checkLink(walk: Walk, link: store.LinkedEntry): void {
  const { position, entry } = link;
  const where = { position, entryId: link.entryId };
  const isNext = position === walk.end.position + 1;
  if (!isNext) addFault(walk, "link_missing", { position: walk.end.position + 1, entryId: null });
  if (!equalBytes(link.seal, sealLink(walk.ctx, "link", link)))
    addFault(walk, "link_forged", where);
  else if (entry === null) addFault(walk, "entry_deleted", where);
  else if (isNext && !equalBytes(linkHash(walk.end, entry), link.hash))
    addFault(walk, "entry_edited", where);
  if (entry !== null && entry.at < walk.latestAt - walk.backdatedMax)
    addFault(walk, "entry_inserted", where);
  walk.latestAt = Math.max(walk.latestAt, entry?.at ?? 0);
  walk.end = { position, hash: link.hash };
}
