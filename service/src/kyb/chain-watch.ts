import type { ChainContext } from "../chain/index.ts";
import * as store from "./roster-store.ts";

/** Nodes answer for so many blocks at once. */
const blocksMax = 2_000;
/** Further behind than this nothing is looked for: whatever is open is looked at by itself. */
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
 * chain's node however many businesses there are, and one more where there are new blocks.
 */
export async function watchWallets(ctx: ChainContext): Promise<void> {
  const { chain, db } = ctx;
  const head = await chain.reader.getBlockNumber({ cacheTime: 0 });
  const final = Number(head) - (chain.confirmations - 1);
  let last = (await store.findWatchedBlock(db)) ?? Math.max(0, final - blocksMax);
  if (final <= last) return;
  const { toEventSelector } = await import("viem/utils");
  const topics = [events.map((event) => toEventSelector(`event ${event}`))];
  last = Math.max(last, final - behindMax);
  while (last < final) {
    const until = Math.min(final, last + blocksMax);
    const range = { fromBlock: quantity(last + 1), toBlock: quantity(until), topics };
    const logs = await chain.node.request("eth_getLogs", [range]);
    await store.saveWatched(db, { addresses: addressesOf(logs), block: until });
    last = until;
  }
}

const quantity = (block: number): string => `0x${block.toString(16)}`;

function addressesOf(logs: unknown): string[] {
  if (!Array.isArray(logs)) throw new Error("the chain's node answered with no list of events");
  const addresses = (logs as { address?: unknown }[]).map(({ address }) => address);
  const texts = addresses.filter((address) => typeof address === "string");
  return [...new Set(texts.map((address) => address.toLowerCase()))];
}
