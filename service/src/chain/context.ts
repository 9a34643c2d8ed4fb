import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { ChainMetrics } from "./chain-metrics.ts";
import type { ChainNode } from "./node.ts";
import type { Signer } from "./signer.ts";

/** The chain that this installation settles on, with its contracts in place. */
export interface Chain extends AsyncDisposable {
  readonly chainId: number;
  readonly contracts: {
    readonly registry: Address;
    readonly settlement: Address;
    /** Those that make business wallets, one for each environment. */
    readonly factories: { readonly live: Address; readonly sandbox: Address };
  };
  /** The account that sends every transaction, and that made the contracts. */
  readonly operator: Address;
  readonly node: ChainNode;
  /**
   * The same node for what the outside asks, never in one exchange with calls of the service's own: a slow or long
   * answer would fail those as well.
   */
  readonly relayNode: ChainNode;
  /**
   * The same node for questions to contracts of anybody's, each in an exchange of its own: what one of them computes
   * for long would otherwise be waited for by all that were asked beside it.
   */
  readonly signatureNode: ChainNode;
  readonly isEmbedded: boolean;
  /** Blocks until a transaction is final, its own included. */
  readonly confirmations: number;
  readonly signer: Signer;
  readonly metrics: ChainMetrics;
}

/** What a slice that settles works with. */
export interface ChainContext extends Ctx {
  readonly chain: Chain;
}
