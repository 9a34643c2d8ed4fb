// A client of the library that anybody may use, over the node that a process of the service reaches.
import { createPublicClient, custom, type PublicClient } from "viem";
import type { Chain } from "../service/src/chain/index.ts";

export function readerOf({ node }: Pick<Chain, "node">): PublicClient {
  const request = async ({ method, params }: { method: string; params?: unknown[] }) =>
    node.request(method, params ?? []);
  return createPublicClient({ transport: custom({ request }, { retryCount: 0 }) });
}
