import { hexOfBytes, isContractYes, type Address, type Hex } from "@svc/protocol";
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

import type { AnchorEvent, ChainNode, ChainView, Patience } from "./chain-view.ts";
import { MerchantError } from "./merchant-error.ts";

const statusOf = parseAbi([
  "function statusOf(address issuer, bytes32 root) view returns (uint48 attestedAt, uint48 revokedAt, uint48 distrustedFrom)",
]);
const erc1271 = parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
const erc6492 = parseAbi(["constructor(address signer, bytes32 hash, bytes signature)"]);

const requestTimeoutMs = 10_000;
/** How much gas a contract may use to say whether it signed. */
const signatureGas = 1_000_000n;
const erc6492Suffix = "6492".repeat(16);

/** Opens a client of a node. CCIP-Read is off, so that no contract can make this machine send requests elsewhere. */
export function openChainClient(
  anchors: ChainNode,
  { timeoutMs, confirmations }: Patience,
): ChainView {
  const deadline = AbortSignal.timeout(timeoutMs);
  const client = createPublicClient({ transport: transportOf(anchors, deadline), ccipRead: false });
  const ask = async <T>(question: () => Promise<T>): Promise<T> => askUntil(deadline, question);
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
    const receipt = await client.getTransactionReceipt({ hash }).catch(nullIfUnknown);
    if (receipt?.status !== "success" || receipt.transactionHash !== hash) return null;
    if (!receipt.logs.some((log) => !log.removed && isEvent(log, event))) return null;
    const { blockNumber, blockHash } = receipt;
    const [head, block] = await Promise.all([
      client.getBlockNumber({ cacheTime: 0 }),
      client.getBlock({ blockNumber }),
    ]);
    // The block has left the chain, or is not deep enough yet.
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

function transportOf(anchors: ChainNode, deadline: AbortSignal) {
  if ("client" in anchors) {
    const { client } = anchors;
    return custom({ request: async (call) => client.request(call) }, { retryCount: 1 });
  }
  return http(anchors.rpcUrl, {
    timeout: requestTimeoutMs,
    retryCount: 1,
    // viem's own time-out ends once the headers are there: a body that never ends would be read for ever.
    fetchOptions: { redirect: "error", signal: deadline },
  });
}

/** @throws {MerchantError} chain_unreachable */
async function askUntil<T>(deadline: AbortSignal, question: () => Promise<T>): Promise<T> {
  const { promise: expired, reject } = Promise.withResolvers<never>();
  const expire = (): void => reject(new Error("the node did not answer in time"));
  if (deadline.aborted) expire();
  deadline.addEventListener("abort", expire, { once: true });
  try {
    return await Promise.race([question(), expired]);
  } catch (cause) {
    // viem's messages contain the node's URL, and with it the node's API key.
    throw new MerchantError("chain_unreachable", { cause: nameOf(cause) });
  } finally {
    deadline.removeEventListener("abort", expire);
    expired.catch(() => undefined);
  }
}

function nameOf(cause: unknown): string {
  if (cause instanceof BaseError) return `${cause.name}: ${cause.shortMessage}`;
  return cause instanceof Error ? cause.message : "unknown";
}

/** Null for a transaction that the node does not know or that is in no block yet; any other error is thrown again. */
function nullIfUnknown(error: unknown): null {
  if (error instanceof BaseError && error.walk(saysUnknown) !== null) return null;
  throw error;
}

function saysUnknown(error: unknown): boolean {
  return error instanceof TransactionReceiptNotFoundError;
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
