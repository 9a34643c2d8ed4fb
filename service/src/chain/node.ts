import type { Hex } from "@svc/protocol";

/** A chain as this process reaches it: the embedded one, or a node behind `CHAIN_RPC_URL`. */
export interface ChainNode extends AsyncDisposable {
  /** Which chain it answers for now. @throws {NodeAway} when it does not tell */
  readChainId(): Promise<number>;
  /**
   * One JSON-RPC call.
   *
   * @throws {RpcError} when the node answered with an error; {@link NodeAway} when it could not be asked
   */
  request(method: string, params?: readonly unknown[]): Promise<unknown>;
  /**
   * Hands signed transactions over, in this order. The same bytes may be handed over again and again.
   *
   * @throws {RpcError} the first refusal other than that the bytes are known already; the others were handed over all
   * the same
   */
  submit(rawTransactions: readonly Hex[]): Promise<void>;
}

/** The node's own answer to a call: an error of JSON-RPC 2.0, section 5.1. */
export class RpcError extends Error {
  readonly code: number;
  /** What came with it; for a call that reverted, its reason. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
  }
}

/** The node answers, and not as the chain that this installation settles on, or that obeys its operator. */
export class WrongChain extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WrongChain";
  }
}

/** The chain's node cannot be asked now: it does not answer, or for another chain. Whoever waits tries again. */
export class NodeAway extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NodeAway";
  }
}

/** It answered at more length than we read: for less it would be asked with success. */
export class AnswerTooLong extends NodeAway {}

/**
 * Throws what failed of several things: that the node is away only where nothing else failed.
 *
 * @param message of the error that holds several
 */
export function throwGravest(faults: readonly unknown[], message: string): void {
  if (faults.length === 0) return;
  const grave = faults.filter((each) => !(each instanceof NodeAway));
  if (grave.length > 1) throw new AggregateError(grave, message);
  throw grave[0] ?? faults[0];
}

/**
 * Rethrows what failed while a node was examined: that it refuses is no answer to the call that waits for the
 * examination, so it counts as away.
 */
export function refusedAsAway(error: unknown): never {
  if (!(error instanceof RpcError)) throw error;
  throw new NodeAway(`the chain's node refused: ${error.message}`, { cause: error });
}

const held = /already known|already imported|known transaction|alreadyknown/i;

/** The node refuses a transaction since it has these bytes. */
export function isHeldAlready(error: unknown): boolean {
  return error instanceof RpcError && held.test(error.message);
}
