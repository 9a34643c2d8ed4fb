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
    /** Deploy business wallets; one for each environment. */
    readonly factories: { readonly live: Address; readonly sandbox: Address };
  };
  /** The account that sends every transaction, and administers the registry. */
  readonly operator: Address;
  readonly node: ChainNode;
  /**
   * The same node for calls from outside, which never share a batch with the service's own calls: a slow or long answer
   * would fail those as well.
   */
  readonly relayNode: ChainNode;
  /**
   * The same node for calls of arbitrary contracts, one per HTTP request: in a batch, one that computes for long would
   * delay all others.
   */
  readonly signatureNode: ChainNode;
  readonly isEmbedded: boolean;
  /** After how many blocks a transaction is final; 1 is its own. */
  readonly confirmations: number;
  readonly signer: Signer;
  readonly metrics: ChainMetrics;
}

/** The context of a slice that uses the chain. */
export interface ChainContext extends Ctx {
  readonly chain: Chain;
}
