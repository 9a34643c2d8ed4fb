import {
  AnswerTooLong,
  type ChainContext,
  readHead,
  refuseOtherChain,
  RpcError,
} from "../../chain/index.ts";
import { blocksMax, readLogs } from "./event-logs.ts";
import * as store from "./roster-store.ts";

/** If more blocks than this were not watched, the older ones are skipped, and every business is read once instead. */
const behindMax = 100_000;

/** Nodes lag behind one another by fewer blocks than this, unless one has just begun to sync. */
const aheadMax = 2_000;

/** The events with which a wallet reports changes of members, rules, nonce, removal or successor. */
const events = [
  "CharterChanged(bytes32 indexed charter, uint64 epoch)",
  "Moved(address indexed successor)",
  "RemovalStarted(address indexed member, uint48 endsAt, uint48 nonce)",
  "RemovalEnded(address indexed member, uint48 protectedUntil)",
  "Withdrawn(bytes32 indexed hash)",
] as const;

/**
 * Makes businesses due to be read whose wallet has emitted an event, since anybody may call it directly. The number of
 * calls to the chain's node depends on the new blocks, not on the number of businesses.
 */
export async function watchWallets(ctx: ChainContext): Promise<void> {
  const { chain, db } = ctx;
  // In parallel, because otherwise blocks of another chain would be marked as read.
  const [head] = await Promise.all([readHead(chain), refuseOtherChain(ctx)]);
  const final = head - (chain.confirmations - 1);
  const last = (await store.findWatchedBlock(db)) ?? Math.max(0, final - blocksMax);
  if (final + aheadMax < last) return startOver(ctx, { last, final });
  if (final <= last) return;
  const { toEventSelector } = await import("viem/utils");
  const topics = [events.map((event) => toEventSelector(`event ${event}`))];
  const first = Math.max(last, final - behindMax) + 1;
  if (first > last + 1) await db.transaction(async (tx) => store.saveUnread(tx, first - 1));
  let done = first - 1;
  try {
    for await (const { logs, until } of readLogs(chain, { topics }, { first, last: final })) {
      await store.saveWatched(db, { addresses: addressesOf(logs), block: until });
      done = until;
    }
  } catch (error) {
    if (!isUnreadable(error)) throw error;
    // Anybody can fill a block with such events. The block is skipped; each run skips one at most.
    ctx.log.warn(
      { err: error, block: done + 1 },
      "the events of a block cannot be read; all businesses are read anew",
    );
    await db.transaction(async (tx) => store.saveUnread(tx, done + 1));
  }
}

/**
 * Blocks were marked as read that the chain does not have, because of a faulty node: their events would be missed once
 * they come. So all businesses are read, and events from the present block on.
 */
async function startOver(
  { db, log }: ChainContext,
  { last, final }: { last: number; final: number },
): Promise<void> {
  log.warn(
    { last, final },
    "blocks were marked as read that the chain does not have; all businesses are read anew",
  );
  await db.transaction(async (tx) => store.returnTo(tx, Math.max(0, final)));
}

/** The messages by which nodes say that there are too many events; there is no error code for that. */
const tooMuch = /results|response size|too (?:long|large)/i;

/** Whether a node cannot return the events of a single block because they are too many. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof AnswerTooLong) return true;
  return error instanceof RpcError && tooMuch.test(error.message);
}

function addressesOf(logs: readonly Record<string, unknown>[]): string[] {
  const addresses = logs.map(({ address }) => address);
  const texts = addresses.filter((address) => typeof address === "string");
  return [...new Set(texts.map((address) => address.toLowerCase()))];
}
