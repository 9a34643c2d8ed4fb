import type { Address, Hex, Hex32 } from "@svc/protocol";

import { isTimeout } from "./timeout.ts";
import { misconfigured } from "./merchant-error.ts";

/** A node of the chain: its address, or an EIP-1193 client of yours. What it says about the chain is believed. */
export type ChainNode =
  | { rpcUrl: string }
  // Declared as a method, because clients that type their chain's calls, such as viem's, would not be assignable
  // otherwise.
  | { client: { request(call: { method: string; params?: unknown }): Promise<unknown> } };

/** What you know of the chain yourself, from the operator's documents: never from what is to be verified. */
export type ChainAnchors = ChainNode & {
  chainId: number;
  /** Address of `CredentialRegistry`. */
  registry: string;
  /** The issuers that you trust to verify documents, as the registry names them. */
  issuers: readonly string[];
  /** Unix seconds. Default: this machine's clock. */
  now?: number;
  /**
   * How many blocks, the transaction's own included, it takes for a transaction to count. Default 1; on public chains
   * 12 and more.
   */
  confirmations?: number;
  /** For all calls to the node together. Default 20,000. */
  timeoutMs?: number;
};

/** What every verification needs to reach a node, whatever it verifies. */
export type ChainAccess = ChainNode & Pick<ChainAnchors, "confirmations" | "timeoutMs">;

/** What the registry says about a root (contract `CredentialRegistry`, `statusOf`): Unix seconds, zero for never. */
export interface RootStatus {
  attestedAt: number;
  revokedAt: number;
  /** Anything that the issuer attested from then on does not count. */
  distrustedFrom: number;
}

/** Where an event was found. */
interface Anchored {
  blockNumber: number;
  /** Of the block, Unix seconds. */
  blockTime: number;
}

/** An event of one of the contracts: `by` is the operator or issuer. */
export interface AnchorEvent {
  name: "Initiated" | "Confirmed" | "Attested";
  contract: Address;
  by: Address;
  root: Hex32;
}

/** The questions that verification asks a chain. All throw chain_unreachable. */
export interface ChainView {
  chainId: () => Promise<number>;
  /** The event in exactly this transaction; null if it is not there, or not deep enough yet. */
  findEvent: (transactionHash: Hex32, event: AnchorEvent) => Promise<Anchored | null>;
  /** Null if no registry answers. */
  findStatus: (
    registry: Address,
    of: { issuer: Address; root: Hex32 },
  ) => Promise<RootStatus | null>;
  /** Whether the contract at the address says that it signed (ERC-1271), deployed or not (ERC-6492). */
  isContractSignature: (signed: {
    address: Address;
    digest: Uint8Array;
    signature: Hex;
  }) => Promise<boolean>;
}

/** How long the node is waited for, and how deep a transaction has to be. */
export interface Patience {
  timeoutMs: number;
  confirmations: bigint;
}

const timeoutMsDefault = 20_000;

/** @throws {MerchantError} configuration_invalid */
function readPatience({ timeoutMs = timeoutMsDefault, confirmations = 1 }: ChainAccess): Patience {
  const isDepth = Number.isSafeInteger(confirmations) && confirmations >= 0;
  if (!isTimeout(timeoutMs) || !isDepth) {
    throw misconfigured(isDepth ? "timeoutMs" : "confirmations");
  }
  return { timeoutMs, confirmations: BigInt(confirmations) };
}

/**
 * Opens a node for one verification. The client of the chain is loaded with the first question: most programs that log
 * people in never ask one, and it takes longer to load than everything else.
 */
export function openChainView(anchors: ChainAccess): ChainView {
  const patience = readPatience(anchors);
  checkNode(anchors);
  let client: Promise<ChainView> | undefined;
  const open = async (): Promise<ChainView> => {
    client ??= import("./chain-client.ts").then((it) => it.openChainClient(anchors, patience));
    return client;
  };
  return {
    chainId: async () => (await open()).chainId(),
    findEvent: async (hash, event) => (await open()).findEvent(hash, event),
    findStatus: async (registry, of) => (await open()).findStatus(registry, of),
    isContractSignature: async (signed) => (await open()).isContractSignature(signed),
  };
}

/** A text that is no address would look like a node that does not answer. */
function checkNode(anchors: ChainNode): void {
  if (!("client" in anchors) && !isHttpUrl(anchors.rpcUrl)) throw misconfigured("rpcUrl");
}

function isHttpUrl(text: unknown): boolean {
  if (typeof text !== "string" || !URL.canParse(text)) return false;
  return ["http:", "https:"].includes(new URL(text).protocol);
}
