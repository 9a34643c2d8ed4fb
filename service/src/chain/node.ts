import type { Hex } from "@svc/protocol";

/** A chain as this process reaches it: the embedded one, or a node behind `CHAIN_RPC_URL`. */
export interface ChainNode extends AsyncDisposable {
  /** The id of the chain that it answers for now. @throws {NodeAway} when it does not tell */
  readChainId(): Promise<number>;
  /**
   * One JSON-RPC call.
   *
   * @throws {RpcError} when the node answered with an error; {@link NodeAway} when it could not be asked
   */
  request(method: string, params?: readonly unknown[]): Promise<unknown>;
  /**
   * Sends signed transactions, in this order. The same bytes may be sent any number of times.
   *
   * @throws {RpcError} the first refusal other than that the bytes are known already; the others were handed over all
   * the same
   */
  submit(rawTransactions: readonly Hex[]): Promise<void>;
}

/** The node's own answer to a call: an error of JSON-RPC 2.0, section 5.1. */
export class RpcError extends Error {
  readonly code: number;
  /** The error's data; for a call that reverted, its reason. */
  readonly data: unknown;

  constructor(code: number, message: string, data?: unknown) {
    super(message);
    this.name = "RpcError";
    this.code = code;
    this.data = data;
  }
}

/** The node is on another chain than this installation settles on, or on one that does not obey its operator. */
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

/** Its answer was too long to be read; a call that asks for less would succeed. */
export class AnswerTooLong extends NodeAway {}

/** It answered with something that answers no such call, as a node may that has just begun to follow its chain. */
export class NoAnswer extends NodeAway {}

/**
 * Throws the gravest of several failures: that the node is away counts only if nothing else failed.
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
 * Rethrows a failure of the checks of a node. A refusal is no answer to the call that waits for these checks, so the
 * node counts as away.
 */
export function refusedAsAway(error: unknown): never {
  if (!(error instanceof RpcError)) throw error;
  throw new NodeAway(`the chain's node refused: ${error.message}`, { cause: error });
}
