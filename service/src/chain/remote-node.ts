import { type ChainNode, isHeldAlready, NodeAway, RpcError } from "./node.ts";
import { openRpc } from "./rpc.ts";

/** For one exchange; a node that is slower than this is no help, and the outbox asks again. */
const timeoutMs = 10_000;
/** What public nodes take in one batch. */
const batchMax = 50;

/** A chain by JSON-RPC over HTTP (`CHAIN_RPC_URL`). Nothing is asked of it before somebody asks. */
export function openRemoteNode(url: string): ChainNode {
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

/** The node has these bytes, or has mined them; in the second case another transaction may hold the nonce, which shows later. */
function isKnownAlready(error: unknown): boolean {
  return isHeldAlready(error) || (error instanceof RpcError && mined.test(error.message));
}

const mined = /nonce (?:is )?too low|old nonce/i;
