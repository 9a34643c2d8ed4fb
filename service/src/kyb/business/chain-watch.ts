import {
  AnswerTooLong,
  type ChainContext,
  readHead,
  refuseOtherChain,
  RpcError,
} from "../../chain/index.ts";
import { blocksMax, readLogs } from "./event-logs.ts";
import * as store from "./roster-store.ts";

/** Further behind than this no event is looked for: every business is looked at once instead. */
const behindMax = 100_000;

/** What a wallet says when members, rules, numbers, removal or successor change. */
const events = [
  "CharterChanged(bytes32 indexed charter, uint64 epoch)",
  "Moved(address indexed successor)",
  "RemovalStarted(address indexed member, uint48 endsAt, uint48 nonce)",
  "RemovalEnded(address indexed member, uint48 protectedUntil)",
  "Withdrawn(bytes32 indexed hash)",
] as const;

/**
 * Looks for businesses of which somebody else had the contract do something, who may be anybody: one call of the
 * chain's node however many businesses there are, and one more where there are new blocks,
 * or several where the node answers for few blocks at once.
 */
export async function watchWallets(ctx: ChainContext): Promise<void> {
  const { chain, db } = ctx;
  // Blocks of another chain would pass for those that were looked at here.
  const [head] = await Promise.all([readHead(chain), refuseOtherChain(ctx)]);
  const final = head - (chain.confirmations - 1);
  const last = (await store.findWatchedBlock(db)) ?? Math.max(0, final - blocksMax);
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
    // Anybody can fill a block with such events. It is stepped over, one in each run.
    ctx.log.warn(
      { err: error, block: done + 1 },
      "a block's events cannot be read; all are looked at",
    );
    await db.transaction(async (tx) => store.saveUnread(tx, done + 1));
  }
}

/** What nodes say where the events asked for are too many; there is no code for that alone. */
const tooMuch = /results|response size|too (?:long|large)/i;

/** The node answers, but not for the events of one block, because they are too many. */
function isUnreadable(error: unknown): boolean {
  if (error instanceof AnswerTooLong) return true;
  return error instanceof RpcError && tooMuch.test(error.message);
}

function addressesOf(logs: readonly Record<string, unknown>[]): string[] {
  const addresses = logs.map(({ address }) => address);
  const texts = addresses.filter((address) => typeof address === "string");
  return [...new Set(texts.map((address) => address.toLowerCase()))];
}
