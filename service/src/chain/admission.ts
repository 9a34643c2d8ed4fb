// Which transactions may enter the journal of the embedded chain. Everything in there is mined again in every replay,
// so everything that a node would refuse is refused here.
import { type Address, type Hex, hexOfBytes } from "@svc/protocol";
import type { Signature, TransactionSerializable, TransactionSerialized } from "viem";
import { parseTransaction, serializeTransaction } from "viem/utils";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { keccakOfHex } from "../platform/hex.ts";
import type { Admitted } from "./embedded-store.ts";
import { RpcError } from "./node.ts";
import { tokensOf } from "./transaction.ts";

/** A parsed transaction with its signer. */
export interface ReadTransaction extends Admitted {
  readonly valueWei: bigint;
}

const rawBytesMax = 131_072;
const gasMax = 30_000_000n;
/** EIP-3860. */
const initCodeBytesMax = 49_152;
/** Half of the order of secp256k1: EIP-2. */
const halfOrder = 0x7fffffffffffffffffffffffffffffff5d576e7357a4501ddfe92f46681b20a0n;

/** The JSON-RPC code for a refused transaction. */
const refusedCode = -32_000;

/** Parses and checks a signed transaction. @throws {RpcError} for one that this chain never accepts */
export function readTransaction(raw: string, chainId: number): ReadTransaction {
  if (!/^0x(?:[0-9a-f]{2})+$/.test(raw)) throw refused("a transaction is lower-case hex");
  const serialized = raw as TransactionSerialized;
  const parsed = parse(serialized);
  if (!isCanonical(parsed, serialized)) throw refused("the transaction is encoded wrongly");
  if (parsed.chainId !== chainId) throw refused("the transaction is for another chain");
  if (BigInt(parsed.s ?? 0) > halfOrder) throw refused("the signature is malleable");
  const gas = parsed.gas ?? 0n;
  if (gas > gasMax) throw refused(`the gas limit is above ${gasMax}`);
  const data = parsed.data ?? "0x";
  const isCreation = parsed.to === undefined || parsed.to === null;
  if (isCreation && (data.length - 2) / 2 > initCodeBytesMax)
    throw refused("the contract is too large");
  const accessList = ("accessList" in parsed ? parsed.accessList : undefined) ?? [];
  if (gas < intrinsicGas({ data, isCreation, accessList })) throw refused("intrinsic gas too low");
  const price = parsed.maxFeePerGas ?? parsed.gasPrice ?? 0n;
  // The library only checks this for prices above zero.
  if ((parsed.maxPriorityFeePerGas ?? 0n) > price) throw refused("its tip is above its price");
  const valueWei = parsed.value ?? 0n;
  return {
    hash: hexOfBytes(keccakOfHex(serialized)),
    raw: serialized,
    signer: signerOf(parsed),
    nonce: parsed.nonce ?? 0,
    gas,
    costWei: gas * price + valueWei,
    valueWei,
  };
}

/** Transactions with blobs (EIP-4844) or delegations (EIP-7702). */
const foreignType = /^0x0[34]/;

/** Refuses by size and type first: to parse the delegations of one request would take a tenth of a second. */
function parse(serialized: TransactionSerialized) {
  if (serialized.length > 2 + 2 * rawBytesMax) throw refused("the transaction is too large");
  if (foreignType.test(serialized)) throw refused("transactions of this type are not taken");
  try {
    return parseTransaction(serialized);
  } catch {
    throw refused("the transaction cannot be read");
  }
}

/**
 * Whether the bytes are the canonical encoding of the transaction (RLP, appendix B of the yellow paper). A node refuses
 * any other, although its signature is valid: by re-encoding somebody's transaction, anyone could have the journal use
 * up that nonce for a transaction that is never mined.
 */
function isCanonical(parsed: ReturnType<typeof parse>, serialized: TransactionSerialized): boolean {
  if (parsed.r === undefined || parsed.s === undefined) return false;
  try {
    return serializeTransaction(parsed, parsed as Signature) === serialized;
  } catch {
    return false;
  }
}

function signerOf(parsed: ReturnType<typeof parse>): Address {
  const { r = "0x", s = "0x", yParity, ...unsigned } = parsed;
  const digest = keccakOfHex(serializeTransaction(unsigned as TransactionSerializable));
  const words = [r, s].map((word) => word.slice(2).padStart(64, "0"));
  const signer = recoverAddress(digest, `0x${words.join("")}${yParity === 1 ? "1c" : "1b"}`);
  if (signer === null) throw refused("the signature is none");
  return signer;
}

/** By EIP-2028, EIP-2930, EIP-3860 and the floor of EIP-7623. */
function intrinsicGas(given: {
  data: Hex;
  isCreation: boolean;
  accessList: readonly { storageKeys: readonly Hex[] }[];
}): bigint {
  const tokens = tokensOf(given.data);
  const words = Math.ceil((given.data.length - 2) / 64);
  const creation = given.isCreation ? 32_000 + 2 * words : 0;
  const listed = given.accessList.reduce(
    (sum, { storageKeys }) => sum + 2_400 + 1_900 * storageKeys.length,
    0,
  );
  return BigInt(21_000 + Math.max(4 * tokens + creation + listed, 10 * tokens));
}

/** Checks that the transaction is the next one of its signer, who can pay for it. @throws {RpcError} */
export function checkTurn(
  transaction: ReadTransaction,
  state: { nextNonce: number; openWei: bigint; balanceWei: bigint },
): void {
  if (transaction.nonce < state.nextNonce) throw refused("nonce too low");
  if (transaction.nonce > state.nextNonce)
    throw refused(`nonce too high: the next one is ${state.nextNonce}`);
  if (transaction.costWei + state.openWei > state.balanceWei)
    throw refused("insufficient funds for gas * price + value");
}

/** Checks what the transaction pays per unit of gas, since blocks of this chain have no base fee. @throws {RpcError} */
export function checkPrice(raw: Hex, leastWei: bigint): void {
  const {
    maxFeePerGas,
    maxPriorityFeePerGas = 0n,
    gasPrice = 0n,
  } = parse(raw as TransactionSerialized);
  const priceWei = maxFeePerGas === undefined ? gasPrice : maxPriorityFeePerGas;
  if (priceWei < leastWei) throw refused(`transaction underpriced: gas costs ${leastWei} wei here`);
}

function refused(message: string): RpcError {
  return new RpcError(refusedCode, message);
}
