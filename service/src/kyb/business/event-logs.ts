import { isRecord } from "@svc/protocol";
import { type Chain, NodeAway, readHead, RpcError } from "../../chain/index.ts";

/** Most nodes return the events of this many blocks at once. */
export const blocksMax = 2_000;

export interface BlockRange {
  readonly first: number;
  /** Included. */
  readonly last: number;
}

interface LogFilter {
  readonly address?: string;
  /** As `eth_getLogs` takes them. */
  readonly topics: readonly (string | readonly string[])[];
}

/** Events of one part of a range. */
interface LogPart {
  readonly logs: readonly Record<string, unknown>[];
  /** Everything up to this block was read. */
  readonly until: number;
}

/**
 * Reads events. A part that the node refuses is asked for again by halves, down to one block, and the parts after it
 * are no longer than that: nodes bound blocks or results, each in its own words. Where a call breaks off, or its answer
 * is longer than we read, the next part is a sixteenth, since each try may last as long as a call may. The embedded
 * chain answers for all blocks at once. The range ends early at what is final at the node that answers: one that lags
 * knows of no events in later blocks, and may hold newer blocks that the others have replaced.
 *
 * @yields what the node serves at once
 * @throws {RpcError} when the node refuses one block; {@link NodeAway} when it does not answer for one
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
      // In one turn, so that one node answers both.
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
