import { readHead } from "./chain-view.ts";
import type { Chain } from "./context.ts";
import { NodeAway } from "./node.ts";

/** The most tries: behind one URL there may be several nodes, some of them lagging, and each may answer a request. */
const readsMax = 10;
/** The first tries ask for the newest block of any node; the later ones for a block that the last node had as well. */
const freshMax = 5;

/**
 * Reads something as of the newest final block. The node that answers must itself have enough blocks after it: if only
 * another one has, this one may stand still on a block that the others have replaced.
 *
 * @param read has to make its calls in the same turn of the event loop, so that they share a batch, and thus a node,
 *   with the check
 * @throws {NodeAway} if each node that answers has fewer blocks than the one before
 */
export async function readFinal<Answer>(
  chain: Pick<Chain, "node" | "confirmations">,
  read: (block: number) => Promise<Answer>,
): Promise<{ block: number; answer: Answer }> {
  let head = await readHead(chain);
  for (let reads = 0; reads < readsMax; reads += 1) {
    const block = head - (chain.confirmations - 1);
    const [answer, seen] = await Promise.all([read(block), readHead(chain)]);
    if (seen >= head) return { block, answer };
    head = reads < freshMax ? await readHead(chain) : seen;
  }
  throw new NodeAway("the chain's node has ever fewer blocks");
}
