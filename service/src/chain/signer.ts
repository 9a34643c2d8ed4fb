import { type Address, type Hex, type Hex32, hexOfBytes } from "@svc/protocol";
import type { TransactionSerializableEIP1559 } from "viem";
import { serializeTransaction } from "viem/utils";
import type { RecoverableSignature } from "../platform/cryptography/secp256k1.ts";
import { keccakOfHex } from "../platform/hex.ts";
import type { Fees } from "./transaction.ts";

/** Everything that the signature of a transaction covers. It carries no coin. */
export interface UnsignedTransaction {
  readonly chainId: number;
  readonly nonce: number;
  readonly to: Address;
  readonly data: Hex;
  readonly gasLimit: bigint;
  readonly fees: Fees;
}

/** The bytes for the node, and the transaction's hash. */
export interface SignedTransaction {
  readonly raw: Hex;
  readonly hash: Hex32;
}

/** The remote signer returned another transaction than requested, or one of another account. */
export class OtherSignature extends Error {
  override readonly name = "OtherSignature";

  constructor() {
    super("the remote signer answered with another transaction or account");
  }
}

/** The operator's account. */
export interface Signer extends AsyncDisposable {
  readonly address: Address;
  /** @throws {NodeAway | RpcError | OtherSignature} if it cannot be reached, refuses, or signs something else */
  sign(transaction: UnsignedTransaction): Promise<SignedTransaction>;
}

/** The hash to sign: of the EIP-1559 transaction without signature. */
export function digestOf(transaction: UnsignedTransaction): Uint8Array {
  return keccakOfHex(serializeTransaction(asSerializable(transaction)));
}

export function withSignature(
  transaction: UnsignedTransaction,
  signature: RecoverableSignature,
): SignedTransaction {
  const raw = serializeTransaction(asSerializable(transaction), signature);
  return { raw, hash: hexOfBytes(keccakOfHex(raw)) };
}

function asSerializable(transaction: UnsignedTransaction): TransactionSerializableEIP1559 {
  const { chainId, nonce, to, data, gasLimit, fees } = transaction;
  return {
    type: "eip1559",
    chainId,
    nonce,
    to,
    data,
    gas: gasLimit,
    maxFeePerGas: fees.maxFee,
    maxPriorityFeePerGas: fees.priorityFee,
    value: 0n,
  };
}
