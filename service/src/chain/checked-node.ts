import type { Clock } from "../platform/clock.ts";
import type { ChainContext } from "./context.ts";
import { type ChainNode, NodeAway, refusedAsAway } from "./node.ts";

/** How long the result of a check is relied on. In this time the check costs one call, in a batch with another. */
const believedMs = 3_000;

/**
 * Wraps a node so that its answers are only returned while it is on the chain of this installation. Otherwise, if
 * another chain came to stand behind the same address, its contracts and balances would be taken for ours. Since a
 * check is relied on for some seconds, code that signs, or must not miss anything, also calls {@link refuseOtherChain}.
 *
 * @param of.chainId the expected chain id
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
    // `abs`, because the clock may be set back.
    if (Math.abs(of.clock.nowMs() - checkedMs) < believedMs) return;
    if (check === null) {
      check = look();
      // All calls of one turn of the event loop are one batch, answered by one node, so they share the check.
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
 * Refuses a node that is now on another chain: it would send our transactions there, and answer about that one. The
 * embedded chain cannot change.
 *
 * @throws {NodeAway} and raises an alarm
 */
export async function refuseOtherChain({ chain }: ChainContext): Promise<void> {
  if (chain.isEmbedded) return;
  const chainId = await chain.node.readChainId();
  if (chainId === chain.chainId) return;
  chain.metrics.raise("other_chain", { expected: chain.chainId, found: chainId });
  throw new NodeAway(`the chain's node answers for chain ${chainId}, not ${chain.chainId}`);
}
