import type { Clock } from "../platform/clock.ts";
import type { ChainContext } from "./context.ts";
import { type ChainNode, NodeAway, refusedAsAway } from "./node.ts";

/**
 * For how long a node is believed to be on the chain that it was: the check is one call in this time, in the batch of
 * another.
 */
const believedMs = 3_000;

/**
 * A node whose answers count only while it answers for the chain that this installation settles on: another chain may
 * come to stand behind the same address, and what it tells of contracts and balances would pass for ours. Whoever
 * signs, or must not miss anything, calls {@link refuseOtherChain} each time.
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
      // What is asked in one turn travels together, and is answered by one node.
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
 * A node that was pointed at another chain would take our transactions there, and tell of its own. The embedded one
 * cannot be.
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
