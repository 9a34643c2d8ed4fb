// What a business wallet says about itself, read from the chain, and the address at which the factory creates one
// (contracts/src, decisions, section 6). The few ABI words are decoded by hand, so that a page need not load a library
// for them.
import {
  bytesOfHex,
  bytesOfText,
  decodeCharter,
  hexOfBytes,
  parseAddress,
  type Address,
  type Charter,
  type Hex,
  type Hex32,
  keccak256,
} from "@svc/protocol";
import { openChain } from "./chain.ts";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { hashedKey } from "./storage.ts";

/** A removal that is under way. */
interface Removal {
  readonly member: Address;
  /** Unix seconds: from then on anybody can finish the removal. */
  readonly endsAt: number;
  /** The number that `Keep` has to name. */
  readonly keepNonce: number;
}

/** A business wallet as the chain has it now. */
export interface BusinessState {
  readonly chainId: number;
  readonly charter: Charter;
  readonly epoch: number;
  /** The number of the next act of governance. */
  readonly nonce: number;
  readonly removal: Removal | null;
}

/**
 * The id of the chain behind a broker, as it was when this wallet first asked. Signatures name it, so a broker cannot
 * present another chain's question as its own.
 *
 * @throws {WalletRefusal} chain_refused when the broker now answers for another chain; damaged_state
 */
export async function chainIdOf(ctx: WalletContext, broker: string): Promise<number> {
  const chainId = String(await openChain(ctx, broker).readChainId());
  const key = hashedKey("chain", broker);
  const known = await ctx.storage.add(key, chainId);
  if (!/^[0-9]+$/.test(known))
    throw new WalletRefusal(
      "damaged_state",
      `the wallet cannot read ${key}, which records the chain that ${broker} had from the start; once that is removed, the wallet accepts chain ${chainId}`,
    );
  if (known !== chainId)
    throw new WalletRefusal("chain_refused", `${broker} names a different chain than before`);
  return Number(chainId);
}

/** Reads a deployed wallet. @throws {WalletRefusal} not_found if there is none, chain_refused, unreachable */
export async function readBusiness(
  ctx: WalletContext,
  broker: string,
  business: Address,
): Promise<BusinessState> {
  const chain = openChain(ctx, broker);
  const ask = async (signature: string): Promise<Uint8Array> =>
    bytesOfHex(await chain.read(business, selectorOf(signature))) ?? new Uint8Array(0);
  const [chainId, charterWords, epoch, nonce, removal] = await Promise.all([
    chainIdOf(ctx, broker),
    ask("charter()"),
    ask("epoch()"),
    ask("nonce()"),
    ask("removal()"),
  ]);
  const charter = decodeCharter(bytesAt(charterWords));
  if (charter === null)
    throw new WalletRefusal("not_found", `there is no business wallet at ${business}`);
  return {
    chainId,
    charter,
    epoch: numberAt(epoch, 0),
    nonce: numberAt(nonce, 0),
    removal: removalOf(removal),
  };
}

/**
 * The address that the factory gives the wallet of a charter: CREATE2 of an ERC-1167 clone with the charter appended to
 * its code, as OpenZeppelin's Clones writes it.
 */
export function addressOfBusiness({
  factory,
  charter,
  salt,
}: {
  factory: Address;
  charter: Hex;
  salt: Hex32;
}): Address {
  // The factory creates one contract in its constructor: the code that its wallets run.
  const implementation = lastBytes(join("0xd694", factory, "0x01"));
  const length = (charter.length / 2 - 1 + 0x2d).toString(16).padStart(4, "0");
  const code = join(
    `0x61${length}3d81600a3d39f3363d3d373d3d3d363d73`,
    implementation,
    "0x5af43d82803e903d91602b57fd5bf3",
    charter,
  );
  return lastBytes(join("0xff", factory, salt, hexOfBytes(keccak256(code))));
}

/** The argument of an act of governance that is one word. */
export function wordOf(encoded: Hex): Uint8Array | null {
  const bytes = bytesOfHex(encoded);
  return bytes?.length === 32 ? bytes : null;
}

/** The bytes that `abi.encode(bytes)` holds; empty for anything else. */
export function bytesAt(encoded: Uint8Array): Hex {
  if (encoded.length < 64 || numberAt(encoded, 0) !== 32) return "0x";
  const length = numberAt(encoded, 1);
  return encoded.length < 64 + length ? "0x" : hexOfBytes(encoded.subarray(64, 64 + length));
}

function removalOf(words: Uint8Array): Removal | null {
  if (words.length !== 96) return null;
  const member = parseAddress(hexOfBytes(words.subarray(12, 32)));
  if (member === null || BigInt(member) === 0n) return null;
  return { member, endsAt: numberAt(words, 1), keepNonce: numberAt(words, 2) };
}

/** An ABI word as a number; a word larger than any number of the contracts becomes the largest safe integer. */
function numberAt(words: Uint8Array, index: number): number {
  const word = words.subarray(index * 32, index * 32 + 32);
  if (word.length !== 32) return Number.MAX_SAFE_INTEGER;
  const value = BigInt(hexOfBytes(word));
  return value > BigInt(Number.MAX_SAFE_INTEGER) ? Number.MAX_SAFE_INTEGER : Number(value);
}

function selectorOf(signature: string): Hex {
  return hexOfBytes(keccak256(bytesOfText(signature)).subarray(0, 4));
}

function lastBytes(bytes: Uint8Array): Address {
  return hexOfBytes(keccak256(bytes).subarray(12));
}

function join(...parts: readonly string[]): Uint8Array {
  return bytesOfHex(`0x${parts.map((part) => part.slice(2)).join("")}`) ?? new Uint8Array(0);
}
