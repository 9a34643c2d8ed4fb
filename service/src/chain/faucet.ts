import type { Address } from "@svc/protocol";
import type { TransactionSerializableEIP1559 } from "viem";
import { keccak256, serializeTransaction } from "viem/utils";
import type { Ctx } from "../platform/context.ts";
import { signDigest } from "../platform/cryptography/secp256k1.ts";
import type { Chain } from "./context.ts";
import { findFaucet, openEmbeddedChain } from "./embedded-chain.ts";
import { RpcError } from "./node.ts";

const triesMax = 20;
const coinWei = 10n ** 18n;

/**
 * Sends native coin of the embedded chain by an ordinary transfer, which is mined right afterwards.
 *
 * @throws if the chain is not the embedded one, or its faucet has less left
 */
export async function fundAccount(
  ctx: Ctx & { readonly chain: Pick<Chain, "isEmbedded" | "node"> },
  { address, amountWei }: { address: Address; amountWei: bigint },
): Promise<void> {
  const faucet = ctx.chain.isEmbedded ? await findFaucet(ctx) : null;
  if (faucet === null) throw new Error("only the embedded chain has a faucet");
  for (let tries = 1; ; tries++) {
    const nonce = await ctx.chain.node.request("eth_getTransactionCount", [
      faucet.address,
      "pending",
    ]);
    const transaction: TransactionSerializableEIP1559 = {
      type: "eip1559",
      chainId: faucet.chainId,
      nonce: Number(nonce),
      to: address,
      value: amountWei,
      gas: 21_000n,
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
    };
    const digest = keccak256(serializeTransaction(transaction), "bytes");
    const signature = signDigest(digest, faucet.privateKey);
    try {
      return await ctx.chain.node.submit([serializeTransaction(transaction, signature)]);
    } catch (error) {
      const message = error instanceof RpcError ? error.message : "";
      if (message.startsWith("insufficient funds")) {
        const left = await ctx.chain.node.request("eth_getBalance", [faucet.address, "latest"]);
        throw new Error(`the faucet has only ${BigInt(String(left)) / coinWei} coins left`, {
          cause: error,
        });
      }
      // Another call has used the nonce meanwhile.
      if (!message.startsWith("nonce too low") || tries === triesMax) throw error;
    }
  }
}

/**
 * The same in a process that has no open chain, with an audit entry that is written before the coin is sent.
 *
 * @throws as `fundAccount`, or if the chain cannot be opened
 */
export async function fundFromOutside(
  ctx: Ctx,
  given: { address: Address; amountWei: bigint },
  actor: string,
): Promise<void> {
  const isEmbedded = ctx.config.chain !== "off" && ctx.config.chainRpcUrl === null;
  if (!isEmbedded) throw new Error("only the embedded chain has a faucet");
  await using node = await openEmbeddedChain(ctx);
  const { address: subject, amountWei } = given;
  const details = { amountWei: amountWei.toString() };
  await ctx.db.transaction(async (tx) =>
    ctx.audit.record(tx, { actor, action: "chain.fund", subject, details }),
  );
  await fundAccount({ ...ctx, chain: { isEmbedded, node } }, given);
}
