import { hexOfBytes, isContractYes, type Address, type Hex, type Hex32 } from "@svc/protocol";
import {
  BaseError,
  createPublicClient,
  custom,
  decodeFunctionResult,
  encodeDeployData,
  encodeFunctionData,
  erc6492SignatureValidatorByteCode,
  http,
  pad,
  parseAbi,
  toEventSelector,
  type TransactionReceipt,
  TransactionReceiptNotFoundError,
} from "viem";

import { isTimeout } from "./timeout.ts";
import { MerchantError, misconfigured } from "./merchant-error.ts";

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
interface AnchorEvent {
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

const statusOf = parseAbi([
  "function statusOf(address issuer, bytes32 root) view returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom)",
]);
const erc1271 = parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
const erc6492 = parseAbi(["constructor(address signer, bytes32 hash, bytes signature)"]);

const timeoutMsDefault = 20_000;
const requestTimeoutMs = 10_000;
/** How much gas a contract may use to say whether it signed. */
const signatureGas = 1_000_000n;
const erc6492Suffix = "6492".repeat(16);

/** @throws {MerchantError} configuration_invalid */
function readPatience({ timeoutMs = timeoutMsDefault, confirmations = 1 }: ChainAccess) {
  const isDepth = Number.isSafeInteger(confirmations) && confirmations >= 0;
  if (!isTimeout(timeoutMs) || !isDepth) {
    throw misconfigured(isDepth ? "timeoutMs" : "confirmations");
  }
  return { timeoutMs, confirmations: BigInt(confirmations) };
}

/** Opens a node for one verification. Off-chain lookups (CCIP-Read) are off: a contract cannot make this machine call anywhere. */
export function openChainView(anchors: ChainAccess): ChainView {
  const { timeoutMs, confirmations } = readPatience(anchors);
  const client = createPublicClient({ transport: transportOf(anchors), ccipRead: false });
  const late = AbortSignal.timeout(timeoutMs);
  const ask = async <T>(question: () => Promise<T>): Promise<T> => before(late, question);
  const call = async (given: { to?: Address; data: Hex; gas?: bigint }): Promise<Hex | null> => {
    try {
      const { data } = await client.call(given);
      return data ?? null;
    } catch (error) {
      // The node answered, and the call itself failed. Any other error means that there is no answer.
      if (isCallFailure(error)) return null;
      throw error;
    }
  };

  const findEvent: ChainView["findEvent"] = async (hash, event) => {
    const receipt = await findReceipt(async () => client.getTransactionReceipt({ hash }));
    if (receipt?.status !== "success" || receipt.transactionHash !== hash) return null;
    if (!receipt.logs.some((log) => !log.removed && isEvent(log, event))) return null;
    const { blockNumber, blockHash } = receipt;
    const [head, block] = await Promise.all([
      client.getBlockNumber({ cacheTime: 0 }),
      client.getBlock({ blockNumber }),
    ]);
    // The receipt belongs to a block that is no longer part of the chain.
    if (block.hash !== blockHash || head - blockNumber + 1n < confirmations) return null;
    return { blockNumber: Number(blockNumber), blockTime: Number(block.timestamp) };
  };

  const findStatus: ChainView["findStatus"] = async (registry, { issuer, root }) => {
    const given = { abi: statusOf, functionName: "statusOf" } as const;
    const data = await call({
      to: registry,
      data: encodeFunctionData({ ...given, args: [issuer, root] }),
    });
    // The answer has three words; anything else comes from another contract, or from none.
    if (data?.length !== 2 + 3 * 64) return null;
    const [attestedAt, revokedAt, distrustedFrom] = decodeFunctionResult({ ...given, data });
    return { attestedAt, revokedAt, distrustedFrom };
  };

  const isContractSignature: ChainView["isContractSignature"] = async (signed) => {
    const { address, digest, signature } = signed;
    const hash = hexOfBytes(digest);
    if (!signature.endsWith(erc6492Suffix)) {
      const data = encodeFunctionData({ abi: erc1271, args: [hash, signature] });
      const answer = await call({ to: address, data, gas: signatureGas });
      return answer !== null && isContractYes(answer);
    }
    const bytecode = erc6492SignatureValidatorByteCode;
    const data = encodeDeployData({ abi: erc6492, bytecode, args: [address, hash, signature] });
    return (await call({ data, gas: signatureGas })) === "0x01";
  };

  return {
    chainId: async () => ask(async () => client.getChainId()),
    findEvent: async (hash, event) => ask(async () => findEvent(hash, event)),
    findStatus: async (registry, of) => ask(async () => findStatus(registry, of)),
    isContractSignature: async (signed) => ask(async () => isContractSignature(signed)),
  };
}

function transportOf(anchors: ChainNode) {
  if ("client" in anchors) {
    const { client } = anchors;
    return custom({ request: async (call) => client.request(call) }, { retryCount: 1 });
  }
  // What viem throws for a missing address is no MerchantError, and a text that is no address looks like a dead node.
  if (!isHttpUrl(anchors.rpcUrl))
    throw new MerchantError("configuration_invalid", { reason: "rpcUrl" });
  return http(anchors.rpcUrl, {
    timeout: requestTimeoutMs,
    retryCount: 1,
    fetchOptions: { redirect: "error" },
  });
}

function isHttpUrl(text: unknown): boolean {
  if (typeof text !== "string" || !URL.canParse(text)) return false;
  return ["http:", "https:"].includes(new URL(text).protocol);
}

/** @throws {MerchantError} chain_unreachable */
async function before<T>(late: AbortSignal, question: () => Promise<T>): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const expire = (): void => reject(new Error("the node did not answer in time"));
  if (late.aborted) expire();
  late.addEventListener("abort", expire, { once: true });
  try {
    return await Promise.race([question(), expired]);
  } catch (cause) {
    // viem's messages contain the node's URL, and with it the node's API key.
    throw new MerchantError("chain_unreachable", { cause: nameOf(cause) });
  } finally {
    late.removeEventListener("abort", expire);
    expired.catch(() => undefined);
  }
}

function nameOf(cause: unknown): string {
  if (cause instanceof BaseError) return `${cause.name}: ${cause.shortMessage}`;
  return cause instanceof Error ? cause.message : "unknown";
}

async function findReceipt(
  get: () => Promise<TransactionReceipt>,
): Promise<TransactionReceipt | null> {
  try {
    return await get();
  } catch (error) {
    if (isOf(error, TransactionReceiptNotFoundError)) return null;
    throw error;
  }
}

function isOf(error: unknown, kind: abstract new (...given: never[]) => Error): boolean {
  return error instanceof BaseError && error.walk((each) => each instanceof kind) !== null;
}

/** The JSON-RPC code of a call that reverted. */
const reverted = 3;
/** Nodes use these codes both for a call that failed and for a missing block to run it on; the message tells which. */
const unclearCodes = [-32_000, -32_003, -32_015];
const failureWords = /revert|out of ?gas|opcode|invalid jump|stack|vm execution/i;

function isCallFailure(error: unknown): boolean {
  return error instanceof BaseError && error.walk(saysFailure) !== null;
}

function saysFailure(error: unknown): boolean {
  if (!(error instanceof Error) || !("code" in error)) return false;
  // Only the node's own message: viem's also repeats the call and its gas.
  const words = error instanceof BaseError ? error.details : error.message;
  const isUnclear = unclearCodes.some((code) => code === error.code);
  return error.code === reverted || (isUnclear && failureWords.test(words));
}

type Log = Pick<TransactionReceipt["logs"][number], "address" | "topics">;

/** `Initiated`, `Confirmed` and `Attested` are alike: two indexed members, no data. */
function isEvent(log: Log, { name, contract, by, root }: AnchorEvent): boolean {
  const topics = [toEventSelector(`${name}(address,bytes32)`), pad(by, { size: 32 }), root];
  return (
    log.address.toLowerCase() === contract &&
    log.topics.length === topics.length &&
    topics.every((topic, index) => log.topics[index]?.toLowerCase() === topic)
  );
}
