import type { ChainNode } from "./node.ts";

/**
 * For a node that was unreachable when this process started: it gets no call and no transaction before the checks of a
 * start have succeeded, which every call tries again. All ways to the node that are given share one examination.
 *
 * @param examine what a start would have looked at; it throws while the node is away or another chain's
 */
export function examineFirst(examine: () => Promise<void>): (node: ChainNode) => ChainNode {
  let examination: Promise<void> | null = null;
  const pass = async (): Promise<void> => {
    examination ??= examine().catch((error: unknown) => {
      examination = null;
      throw error;
    });
    return examination;
  };
  return (node) => ({
    async readChainId() {
      await pass();
      return node.readChainId();
    },
    async request(method, params) {
      await pass();
      return node.request(method, params);
    },
    async submit(rawTransactions) {
      await pass();
      return node.submit(rawTransactions);
    },
    [Symbol.asyncDispose]: async () => node[Symbol.asyncDispose](),
  });
}
