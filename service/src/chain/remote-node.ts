import { type ChainNode, NodeAway } from "./node.ts";
import { isHeldAlready, isNonceUsed } from "./refusal.ts";
import { openRpc } from "./rpc.ts";

/** For one HTTP request; the outbox retries later. */
const timeoutMs = 10_000;
/** The batch size that most public nodes accept. */
const commonBatchMax = 50;

/**
 * A node behind JSON-RPC over HTTP (`CHAIN_RPC_URL`). Opening it makes no call.
 *
 * @param options.batchMax calls in one HTTP request; 1 if none may wait for another
 */
export function openRemoteNode(url: string, options: { batchMax?: number } = {}): ChainNode {
  const { batchMax = commonBatchMax } = options;
  const rpc = openRpc(url, { timeoutMs, batchMax, name: "the chain's node" });
  return {
    async readChainId() {
      const chainId = Number(await rpc.request("eth_chainId", []));
      if (!Number.isSafeInteger(chainId) || chainId < 1)
        throw new NodeAway("the chain's node tells no chain id");
      return chainId;
    },
    request: async (method, params = []) => rpc.request(method, params),
    async submit(rawTransactions) {
      const results = await Promise.allSettled(
        rawTransactions.map(async (raw) => rpc.request("eth_sendRawTransaction", [raw])),
      );
      const faults = results.flatMap((each) => (each.status === "rejected" ? [each.reason] : []));
      const fault: unknown = faults.find((each) => !isKnownAlready(each));
      if (fault !== undefined) throw fault instanceof Error ? fault : new Error("refused");
    },
    [Symbol.asyncDispose]: async () => rpc.close(),
  };
}

/** The node has these bytes, or their nonce is used: if by another transaction, the outbox finds out later. */
function isKnownAlready(error: unknown): boolean {
  return isHeldAlready(error) || isNonceUsed(error);
}
