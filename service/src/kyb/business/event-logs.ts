import { isRecord } from "@svc/protocol";
import { type Chain, NodeAway, readHead, RpcError } from "../../chain/index.ts";

/** The number of blocks for which most nodes return events at once. */
export const blocksMax = 2_000;

export interface BlockRange {
  readonly first: number;
  /** Inclusive. */
  readonly last: number;
}

interface LogFilter {
  readonly address?: string;
  /** In the form of `eth_getLogs`. */
  readonly topics: readonly (string | readonly string[])[];
}

/** Events of one part of a range. */
interface LogPart {
  readonly logs: readonly Record<string, unknown>[];
  /** Everything up to this block was read. */
  readonly until: number;
}

/**
 * Reads events part by part. Nodes limit blocks or results, without a common error. So a part that is refused is
 * halved, down to one block; one whose call breaks off, or whose answer is too long, is reduced to a sixteenth, since
 * each try may take as long as the time-out. Later parts keep the reduced size. The embedded chain answers for all
 * blocks at once. The range ends early at the last final block of the node that answers: a node that lags has no events
 * of later blocks, and newer blocks of its own may have been replaced by those of the others.
 *
 * @yields each part as soon as it was read
 * @throws {RpcError} if the node refuses a single block; {@link NodeAway} if it does not answer for one
 */
export async function* readLogs(
  chain: Pick<Chain, "node" | "isEmbedded" | "confirmations">,
  filter: LogFilter,
  { first, last }: BlockRange,
): AsyncGenerator<LogPart> {
  let size = chain.isEmbedded ? last - first + 1 : blocksMax;
  let next = first;
  while (next <= last) {
    const until = Math.min(last, next + size - 1);
    const range = { ...filter, fromBlock: quantity(next), toBlock: quantity(until) };
    let answer;
    try {
      // In one batch, so that the same node answers both.
      answer = await Promise.all([readHead(chain), chain.node.request("eth_getLogs", [range])]);
    } catch (error) {
      const divisor = divisorFor(error);
      if (divisor === null || until === next) throw error;
      size = Math.ceil((until - next + 1) / divisor);
      continue;
    }
    const [head, logs] = answer;
    const final = head - (chain.confirmations - 1);
    if (final >= next) yield { logs: listOf(logs), until: Math.min(until, final) };
    if (final < until) return;
    next = until + 1;
  }
}

function divisorFor(error: unknown): number | null {
  if (error instanceof RpcError) return 2;
  return error instanceof NodeAway ? 16 : null;
}

const quantity = (block: number): string => `0x${block.toString(16)}`;

function listOf(logs: unknown): Record<string, unknown>[] {
  if (!Array.isArray(logs)) throw new NodeAway("the chain's node answered with no list of events");
  return logs.filter(isRecord);
}
