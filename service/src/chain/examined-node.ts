import type { ChainNode } from "./node.ts";

/**
 * For a node that was unreachable when this process started: every call first tries the checks of a start, until they
 * have succeeded once. All connections that are passed to the result share them.
 *
 * @param examine the checks of a start; throws if they fail
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
