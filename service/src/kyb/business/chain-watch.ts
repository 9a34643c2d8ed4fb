import {
  AnswerTooLong,
  type ChainContext,
  readHead,
  refuseOtherChain,
  RpcError,
} from "../../chain/index.ts";
import { blocksMax, readLogs } from "./event-logs.ts";
import * as store from "./roster-store.ts";

/** No event is looked for that lies more blocks back than this: every business is read once instead. */
const behindMax = 100_000;

/** Nodes lag behind one another by fewer blocks than this, unless one has just begun to follow its chain. */
const aheadMax = 2_000;

/** The events of a wallet when members, rules, nonces, removal or successor change. */
const events = [
  "CharterChanged(bytes32 indexed charter, uint64 epoch)",
  "Moved(address indexed successor)",
  "RemovalStarted(address indexed member, uint48 endsAt, uint48 nonce)",
  "RemovalEnded(address indexed member, uint48 protectedUntil)",
  "Withdrawn(bytes32 indexed hash)",
] as const;

/**
 * Finds businesses whose contract was called by somebody else, which anybody may do. One call of the chain's node
 * however many businesses there are, and one more if there are new blocks, or several if the node answers for few
 * blocks at a time.
 */
export async function watchWallets(ctx: ChainContext): Promise<void> {
  const { chain, db } = ctx;
  // Otherwise blocks of another chain would count as read.
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
    // Anybody can fill a block with such events. It is skipped, one in each run.
    ctx.log.warn(
      { err: error, block: done + 1 },
      "a block's events cannot be read; all are looked at",
    );
    await db.transaction(async (tx) => store.saveUnread(tx, done + 1));
  }
}

/**
 * A node told of blocks that the chain does not have, and they were marked as read: their events would be missed once they
 * come. Every business is read, and what comes from here on.
 */
async function startOver(
  { db, log }: ChainContext,
  { last, final }: { last: number; final: number },
): Promise<void> {
  log.warn(
    { last, final },
    "blocks were marked as read that the chain does not have; all are looked at",
  );
  await db.transaction(async (tx) => store.returnTo(tx, Math.max(0, final)));
}

/** How nodes say that there are too many events; there is no error code just for that. */
const tooMuch = /results|response size|too (?:long|large)/i;

/** Whether the node answers, but cannot return the events of a single block because they are too many. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof AnswerTooLong) return true;
  return error instanceof RpcError && tooMuch.test(error.message);
}

function addressesOf(logs: readonly Record<string, unknown>[]): string[] {
  const addresses = logs.map(({ address }) => address);
  const texts = addresses.filter((address) => typeof address === "string");
  return [...new Set(texts.map((address) => address.toLowerCase()))];
}
