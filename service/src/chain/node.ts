import type { Hex } from "@svc/protocol";

/** A node of the chain: that of the embedded one, or the one behind `CHAIN_RPC_URL`. */
export interface ChainNode extends AsyncDisposable {
  /** The id of the chain that it is on now. @throws {NodeAway} */
  readChainId(): Promise<number>;
  /**
   * One JSON-RPC call.
   *
   * @throws {RpcError} if the node answered with an error; {@link NodeAway} if it gave no usable answer
   */
  request(method: string, params?: readonly unknown[]): Promise<unknown>;
  /**
   * Sends signed transactions, in this order. The same bytes may be sent any number of times: that the node knows them
   * already is no error.
   *
   * @throws {RpcError} the first refusal; the other transactions were sent nevertheless
   */
  submit(rawTransactions: readonly Hex[]): Promise<void>;
}

/** The node's own answer to a call: an error of JSON-RPC 2.0, section 5.1. */
export class RpcError extends Error {
  readonly code: number;
  /** The error's `data`; for a call that reverted, its reason. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
  }
}

/** The chain is not the one on which this installation settles, or lacks what it needs there. */
export class WrongChain extends Error {
  constructor(message: string) {
    super(message);
    this.name = "WrongChain";
  }
}

/** The node cannot be used now: it does not answer, or is on another chain. The caller tries again later. */
export class NodeAway extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "NodeAway";
  }
}

/** The answer was too long to be read; a call that asks for less would succeed. */
export class AnswerTooLong extends NodeAway {}

/** The answer does not fit the call, as may happen with a node that has just begun to sync. */
export class NoAnswer extends NodeAway {}

/**
 * Throws the gravest of several failures: a {@link NodeAway} only if there is nothing else.
 *
 * @param message for the AggregateError, if several are equally grave
 */
export function throwGravest(faults: readonly unknown[], message: string): void {
  if (faults.length === 0) return;
  const grave = faults.filter((each) => !(each instanceof NodeAway));
  if (grave.length > 1) throw new AggregateError(grave, message);
  throw grave[0] ?? faults[0];
}

/**
 * Rethrows an error of a check that precedes a call, an {@link RpcError} as {@link NodeAway}: the caller would take it
 * for the answer to its own call.
 */
export function refusedAsAway(error: unknown): never {
  if (!(error instanceof RpcError)) throw error;
  throw new NodeAway(`the chain's node refused: ${error.message}`, { cause: error });
}
