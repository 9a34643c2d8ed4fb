import { type Address, type Hex, hexOfBytes, signatureCharactersMax } from "@svc/protocol";
import {
  decodeAbiParameters,
  encodeDeployData,
  encodeFunctionData,
  parseAbi,
  parseAbiParameters,
} from "viem/utils";
import { Problem } from "../platform/http/problems.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import type { ChainContext } from "./context.ts";
import { NodeAway, RpcError } from "./node.ts";
import { isOfContract } from "./refusal.ts";

/** Bounds on asking a contract: gas and time of one call, and how often all processes together do it. */
const gasMax = 1_000_000;
const timeoutMs = 2_000;
const limit = { perSecond: 50, burst: 200 };

const erc1271 = parseAbi([
  "function isValidSignature(bytes32 hash, bytes signature) view returns (bytes4)",
]);
/** `isValidSignature.selector`, and zeros up to the end of the word. */
const erc1271Yes = `1626ba7e${"00".repeat(28)}`;
/** The answers of the code that {@link askingCode} makes. */
const [yes, no] = ["0x01", "0x00"];
const erc6492Suffix = "6492".repeat(16);
const wrapper = parseAbiParameters("address factory, bytes call, bytes signature");
const erc6492 = parseAbi(["constructor(address signer, bytes32 hash, bytes signature)"]);

/**
 * Asks the contract at the address whether the signature is valid: by ERC-1271, or for a signature in the wrapper of
 * ERC-6492 also before the contract is deployed. Changes nothing on the chain, and follows no off-chain lookup.
 *
 * @throws {Problem} rate_limited; chain_unavailable if the node gives no answer within 2 s, or none of the expected
 * ones
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
  const isWrapped = signature.endsWith(erc6492Suffix);
  const inner = isWrapped ? unwrap(signature as Hex) : signature;
  // A wrapper that cannot be decoded here might be decoded differently by the validator.
  if (inner === null || isOfBusiness(inner, hash)) return false;
  const question = { ...given, hash, signature: signature as Hex };
  const code = isWrapped ? await callOfValidator(question) : callOfContract(question);
  return ask(ctx, code);
}

/**
 * Whether this is the signature format of business wallets, the only one that they accept. A business acts through its
 * members, never by its own signature (decisions section 3, Signatures); by the format that also holds for business
 * wallets that are not registered here or not deployed.
 */
function isOfBusiness(signature: string, hash: Hex): boolean {
  return signature.toLowerCase() === `0x01${hash.slice(2)}`;
}

/** The signature in a wrapper of ERC-6492; null if the wrapper cannot be decoded. */
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

/** Calls the contract and compares the whole first word of its answer (`isContractYes` of the protocol). */
function callOfContract({ address, hash, signature }: Question): Hex {
  const args = [hash, signature] as const;
  const question = encodeFunctionData({ abi: erc1271, functionName: "isValidSignature", args });
  return askingCode(question, (length) => [
    // PUSH1 20, PUSH1 00, PUSH2 length, PUSH1 00, PUSH20 address, GAS, STATICCALL
    `6020600061${length}600073${address.slice(2)}5afa`,
    // It answered at least a word: PUSH1 1f, RETURNDATASIZE, GT, AND
    "601f3d1116",
    // which is yes: PUSH32 yes, PUSH1 00, MLOAD, EQ, AND
    `7f${erc1271Yes}6000511416`,
    // PUSH1 00, MSTORE8
    "600053",
  ]);
}

/** Runs the validator of ERC-6492, as the creation code of a contract that is never deployed. */
async function callOfValidator(question: Question): Promise<Hex> {
  const { address, hash, signature } = question;
  // Loaded only now: the library is 340 files, and few signatures are of this kind.
  const { erc6492SignatureValidatorByteCode } = await import("viem");
  const args = [address, hash, signature] as const;
  const validator = encodeDeployData({
    abi: erc6492,
    bytecode: erc6492SignatureValidatorByteCode,
    args,
  });
  return askingCode(validator, (length) => [
    // PUSH2 length, PUSH1 00, PUSH1 00, CREATE
    `61${length}60006000f0`,
    // Its code is the answer, one byte; no code means no: PUSH1 01, PUSH1 00, PUSH1 00, DUP4, EXTCODECOPY
    "600160006000833c",
  ]);
}

/**
 * Creation code that calls the contract inside the node and returns one byte. A contract may return, or revert with,
 * hundreds of kilobytes for its gas; called directly, all of that would reach this process.
 *
 * @param question the data that are in memory, from 0 on, when the steps begin
 * @param steps code that leaves the answer in the first byte of memory; its argument is the question's length in hex
 */
function askingCode(question: Hex, steps: (length: string) => readonly string[]): Hex {
  const bytes = question.slice(2);
  const length = (bytes.length / 2).toString(16).padStart(4, "0");
  // PUSH1 01, PUSH1 00, RETURN
  const asking = `${steps(length).join("")}60016000f3`;
  const loadBytes = 8;
  const at = (loadBytes + asking.length / 2).toString(16).padStart(2, "0");
  // PUSH2 length, PUSH1 at, PUSH1 00, CODECOPY
  return `0x61${length}60${at}600039${asking}${bytes}`;
}

/** Runs the code of {@link askingCode}. @throws {Problem} chain_unavailable, also for an answer that it cannot give */
async function ask(ctx: ChainContext, data: Hex): Promise<boolean> {
  const params = [{ data, gas: `0x${gasMax.toString(16)}` }, "latest"];
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Problem("chain_unavailable")), timeoutMs);
  try {
    const result = await Promise.race([ctx.chain.signatureNode.request("eth_call", params), late]);
    if (result !== yes && result !== no) throw new Problem("chain_unavailable");
    return result === yes;
  } catch (error) {
    // Reverted, or out of gas: that is the contract's no.
    if (isOfContract(error)) return false;
    // Other faults, of our own or of the database, must not be reported as the chain's: nobody would find them.
    const isOfNode = error instanceof NodeAway || error instanceof RpcError;
    throw isOfNode ? new Problem("chain_unavailable") : error;
  } finally {
    clearTimeout(timer);
  }
}
