import type { Clock } from "../platform/clock.ts";
import type { ChainContext } from "./context.ts";
import { type ChainNode, NodeAway, refusedAsAway } from "./node.ts";

/**
 * For how long a node is believed to be on the chain that it was on. The check costs one call in this time, in a batch
 * with another.
 */
const believedMs = 3_000;

/**
 * A node whose answers count only while it is on the chain that this installation settles on. Another chain may come to
 * stand behind the same address, and its contracts and balances would pass for ours. Code that signs, or must not miss
 * anything, calls {@link refuseOtherChain} each time.
 *
 * @param of.chainId what it must be
 */
export function checkReads(
  node: ChainNode,
  of: { readonly chainId: number; readonly clock: Pick<Clock, "nowMs"> },
): ChainNode {
  let checkedMs = Number.NEGATIVE_INFINITY;
  let check: Promise<void> | null = null;
  const look = async (): Promise<void> => {
    const askedMs = of.clock.nowMs();
    const found = await node.readChainId().catch(refusedAsAway);
    if (found !== of.chainId)
      throw new NodeAway(`the chain's node answers for chain ${found}, not ${of.chainId}`);
    checkedMs = askedMs;
  };
  const pass = async (): Promise<void> => {
    // The clock may be set back.
    if (Math.abs(of.clock.nowMs() - checkedMs) < believedMs) return;
    if (check === null) {
      check = look();
      // Calls of one turn of the event loop travel together, and are answered by one node.
      setImmediate(() => (check = null));
    }
    await check;
  };
  return {
    readChainId: async () => node.readChainId(),
    async request(method, params) {
      const [passed, answered] = await Promise.allSettled([pass(), node.request(method, params)]);
      if (passed.status === "rejected") throw passed.reason;
      if (answered.status === "rejected") throw answered.reason;
      return answered.value;
    },
    submit: async (rawTransactions) => node.submit(rawTransactions),
    [Symbol.asyncDispose]: async () => node[Symbol.asyncDispose](),
  };
}

/**
 * Refuses a node that has been pointed at another chain: it would send our transactions there, and answer about its
 * own. The embedded chain cannot change.
 *
 * @throws {NodeAway} with an alarm
 */
export async function refuseOtherChain({ chain }: ChainContext): Promise<void> {
  if (chain.isEmbedded) return;
  const chainId = await chain.node.readChainId();
  if (chainId === chain.chainId) return;
  chain.metrics.raise("other_chain", { expected: chain.chainId, found: chainId });
  throw new NodeAway(`the chain's node answers for chain ${chainId}, not ${chain.chainId}`);
}
