import { type Address, type Hex, isRecord } from "@svc/protocol";
import type { TransactionSerializedEIP1559 } from "viem";
import { numberToHex, parseTransaction } from "viem/utils";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { openRpc } from "./rpc.ts";
import {
  digestOf,
  OtherSignature,
  type SignedTransaction,
  type Signer,
  type UnsignedTransaction,
  withSignature,
} from "./signer.ts";

/** Everything else of the account waits for a signature, because its row is locked meanwhile. */
const timeoutMs = 5_000;

/**
 * An account whose key another server has, by JSON-RPC `eth_signTransaction` as Web3Signer answers it (the signed
 * bytes) or as an Ethereum node does (`{ raw }`). The answer is only accepted if it is, byte for byte, the requested
 * transaction with a signature of this account.
 */
export function openRemoteSigner({ url, address }: { url: string; address: Address }): Signer {
  const rpc = openRpc(url, { timeoutMs, batchMax: 1, name: "the remote signer" });
  return {
    address,
    async sign(transaction) {
      const answer = await rpc.request("eth_signTransaction", [paramsOf(address, transaction)]);
      const raw = isRecord(answer) ? answer["raw"] : answer;
      const signed = typeof raw === "string" ? rebuild(transaction, raw) : null;
      if (signed === null || signed.signer !== address || signed.raw !== raw)
        throw new OtherSignature();
      return { raw: signed.raw, hash: signed.hash };
    },
    [Symbol.asyncDispose]: async () => rpc.close(),
  };
}

function paramsOf(from: Address, transaction: UnsignedTransaction): Record<string, string> {
  const { chainId, nonce, to, data, gasLimit, fees } = transaction;
  return {
    from,
    to,
    data,
    value: "0x0",
    nonce: numberToHex(nonce),
    gas: numberToHex(gasLimit),
    maxFeePerGas: numberToHex(fees.maxFee),
    maxPriorityFeePerGas: numberToHex(fees.priorityFee),
    chainId: numberToHex(chainId),
  };
}

/** The requested transaction with the signature in the answer, and its signer; null if there is no signature. */
function rebuild(
  transaction: UnsignedTransaction,
  raw: string,
): (SignedTransaction & { signer: Address | null }) | null {
  try {
    const { r, s, yParity } = parseTransaction(raw as TransactionSerializedEIP1559);
    if (r === undefined || s === undefined || (yParity !== 0 && yParity !== 1)) return null;
    const signature: Hex = `0x${digits(r)}${digits(s)}${yParity === 0 ? "1b" : "1c"}`;
    return {
      ...withSignature(transaction, { r, s, yParity }),
      signer: recoverAddress(digestOf(transaction), signature),
    };
  } catch {
    // Not a transaction at all.
    return null;
  }
}

function digits(hex: Hex): string {
  return hex.slice(2).padStart(64, "0");
}
