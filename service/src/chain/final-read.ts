import { readHead } from "./chain-view.ts";
import type { Chain } from "./context.ts";
import { NodeAway } from "./node.ts";

/** Nodes behind one address lag one another, and each exchange may go to another one: it is tried this often at most. */
const readsMax = 10;
/** So often the newest block of all is tried for; then one that the node which answered last has as well. */
const freshMax = 5;

/**
 * Reads what is final, as of the newest block of which one node says so and answers for it. That another node has
 * enough blocks proves nothing: the one that answers may stand still on a block that the others have replaced.
 *
 * @param read makes its calls in this turn of the event loop, so that they travel with ours
 * @throws {NodeAway} when each node that answers has fewer blocks than the one before
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
