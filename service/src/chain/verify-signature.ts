import {
  type Address,
  type Hex,
  hexOfBytes,
  isContractYes,
  signatureCharactersMax,
} from "@svc/protocol";
import {
  decodeAbiParameters,
  encodeDeployData,
  encodeFunctionData,
  parseAbi,
  parseAbiParameters,
} from "viem/utils";
import { Problem } from "../platform/http/problems.ts";
import { takeOrRefuse } from "../platform/rate-limit.ts";
import type { ChainContext } from "./context.ts";
import { RpcError } from "./node.ts";

/** Bounds on asking a contract: gas and time of one call, and how often all processes together do it. */
const gasMax = 1_000_000;
const timeoutMs = 2_000;
const limit = { perSecond: 50, burst: 200 };

const erc1271 = parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
const erc6492Suffix = "6492".repeat(16);
const wrapper = parseAbiParameters("address factory, bytes call, bytes signature");
const erc6492 = parseAbi(["constructor(address signer, bytes32 hash, bytes signature)"]);

/**
 * Asks the contract at the address whether the signature is its own: by ERC-1271, or, where the signature says so
 * (ERC-6492), also before the contract is deployed. Nothing on the chain changes, no off-chain lookup is followed.
 *
 * @throws {Problem} rate_limited; chain_unavailable when there is no answer in 2 s, or the node could not ask
 */
export async function isContractSignature(
  ctx: ChainContext,
  given: { address: Address; digest: Uint8Array; signature: string },
): Promise<boolean> {
  const { signature } = given;
  if (!/^0x(?:[0-9a-fA-F]{2})+$/.test(signature)) return false;
  if (signature.length > signatureCharactersMax) return false;
  await takeOrRefuse(ctx, "signature:contract", limit);
  const hash = hexOfBytes(given.digest);
  const isWrapped = signature.toLowerCase().endsWith(erc6492Suffix);
  const inner = isWrapped ? unwrap(signature as Hex) : signature;
  // What cannot be read here might be read otherwise there.
  if (inner === null || isOfBusiness(inner, hash)) return false;
  const call = isWrapped
    ? await callOfValidator({ ...given, hash, signature: signature as Hex })
    : callOfContract({ ...given, hash, signature: signature as Hex });
  const result = await ask(ctx, call);
  return isWrapped ? result === "0x01" : isContractYes(result ?? "0x");
}

/**
 * Whether it is the form in which wallets of our factories say that they signed, registered here or not, deployed or not:
 * a business acts by its members, never by its own signature (decisions section 3, Signatures). They take no other.
 */
function isOfBusiness(signature: string, hash: Hex): boolean {
  return signature.toLowerCase() === `0x01${hash.slice(2)}`;
}

/** The signature in a wrapper of ERC-6492; null where it is none. */
function unwrap(signature: Hex): Hex | null {
  try {
    const [, , inner] = decodeAbiParameters(wrapper, `0x${signature.slice(2, -64)}`);
    return inner;
  } catch {
    return null;
  }
}

interface Question {
  readonly address: Address;
  readonly hash: Hex;
  readonly signature: Hex;
}

function callOfContract({ address, hash, signature }: Question): { to?: Address; data: Hex } {
  const args = [hash, signature] as const;
  return {
    to: address,
    data: encodeFunctionData({ abi: erc1271, functionName: "isValidSignature", args }),
  };
}

/** The validator of ERC-6492 runs as the code of a contract that is never made. */
async function callOfValidator(question: Question): Promise<{ to?: Address; data: Hex }> {
  const { address, hash, signature } = question;
  // The whole library is 340 files, and few signatures are of this kind.
  const { erc6492SignatureValidatorByteCode } = await import("viem");
  const args = [address, hash, signature] as const;
  return {
    data: encodeDeployData({ abi: erc6492, bytecode: erc6492SignatureValidatorByteCode, args }),
  };
}

/** The result, or null when the call failed there. @throws {Problem} chain_unavailable */
async function ask(ctx: ChainContext, call: { to?: Address; data: Hex }): Promise<string | null> {
  const params: unknown[] = [{ ...call, gas: `0x${gasMax.toString(16)}` }, "latest"];
  // An idle embedded chain still has the time of its last block, and a signature may have a deadline.
  if (ctx.chain.isEmbedded) params.push({}, { time: `0x${ctx.clock.now().toString(16)}` });
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Problem("chain_unavailable")), timeoutMs);
  try {
    const result = await Promise.race([ctx.chain.node.request("eth_call", params), late]);
    return typeof result === "string" ? result : null;
  } catch (error) {
    // Reverted, or out of gas: the contract's own answer is no.
    if (error instanceof RpcError && isOfContract(error)) return null;
    throw error instanceof Problem ? error : new Problem("chain_unavailable");
  } finally {
    clearTimeout(timer);
  }
}

/** With these codes nodes tell how a call ended, and with -32000 also what they lack themselves. */
const callCodes = new Set([3, -32_000, -32_003, -32_015]);
const lacks =
  /header not found|missing trie node|not available|aborted|limit exceeded|rate limit|too many/i;

/** Whether the call failed in the contract: a node that limits us, or lacks the state, has not asked it. */
function isOfContract({ code, message }: RpcError): boolean {
  if (/revert|\bE?VM\b/i.test(message)) return true;
  return callCodes.has(code) && !lacks.test(message);
}
