import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import type { ChainReport } from "./chain.ts";
import type { Chain, ChainContext } from "./context.ts";
import { faucetKeyColumn } from "./embedded-store.ts";
import { signerKeyColumn } from "./signer-key-store.ts";

export type { Chain, ChainContext } from "./context.ts";
export { enqueueTransaction } from "./enqueue.ts";
export { hashOf, readHead, readTime } from "./chain-view.ts";
export { readFinal } from "./final-read.ts";
export { refuseOtherChain } from "./checked-node.ts";
export { alarmWhileAway, chainJobs } from "./jobs.ts";
export { AnswerTooLong, NodeAway, RpcError, throwGravest } from "./node.ts";
export { chainRoutes } from "./relay-routes.ts";
export type { FinalHandlers, FinalTransaction } from "./outbox.ts";
export { findStatus as findTransactionStatus, withdrawUnsigned } from "./transaction-store.ts";

/** The sealed columns of this slice. */
export const chainSealedColumns: readonly SealedColumn[] = [signerKeyColumn, faucetKeyColumn];

/**
 * Opens the chain: starts the embedded one or reaches the configured node, opens the signer, and makes sure that the
 * contracts are there. With `CHAIN=off` there is none, and every use of it throws.
 *
 * @param options.mayBeAway lets the configured node be away where an earlier start had it: whoever asks it finds it away
 *   until it answers as the chain that it was
 * @throws when it is another chain than at the first start, other code stands at a contract's address, or the node,
 *   the signer or the deployer of contracts cannot be had
 */
export async function openChain(
  ctx: Ctx,
  options: { mayBeAway: boolean } = { mayBeAway: false },
): Promise<Chain> {
  if (ctx.config.chain === "off") return absentChain;
  // The client library takes a while to load; verbs of the command line do without.
  const { openChain: open } = await import("./chain.ts");
  return open(ctx, options);
}

/** What `svc chain show` tells. @throws with `CHAIN=off`, when it is another chain, or where the node cannot be had */
export async function describeChain(ctx: Ctx): Promise<ChainReport> {
  if (ctx.config.chain === "off") throw new Error("there is no chain (CHAIN=off)");
  const { describeChain: describe } = await import("./chain.ts");
  return describe(ctx);
}

/** Decisions section 3, Signatures: of an externally owned account, else ERC-1271, else ERC-6492. */
export interface SignatureClaim {
  readonly address: Address;
  readonly digest: Uint8Array;
  readonly signature: string;
}

/**
 * Whether the account signed the digest. The signature of an externally owned account costs no call of the chain; a
 * contract is asked, with bounds on gas, time and rate.
 *
 * @param mayAsk says first whether this contract is asked at all; it may throw
 * @throws {Problem} rate_limited, chain_unavailable; both only where a contract would have to be asked
 */
export async function verifySignature(
  ctx: ChainContext,
  claim: SignatureClaim,
  mayAsk: () => Promise<boolean>,
): Promise<boolean> {
  if (recoverAddress(claim.digest, claim.signature) === claim.address) return true;
  if (ctx.config.chain === "off" || !(await mayAsk())) return false;
  const { isContractSignature } = await import("./verify-signature.ts");
  return isContractSignature(ctx, claim);
}

/** Stands in for the chain in a process that has none. */
const absentChain = new Proxy(
  {},
  {
    get(_target, name) {
      if (name === Symbol.asyncDispose) return async () => undefined;
      // `await` looks for this property.
      if (name === "then") return undefined;
      throw new Error(`this process runs without a chain (CHAIN=off): ${String(name)}`);
    },
  },
) as Chain;

/**
 * Loaded when first needed, like everything that encodes contract calls: most verbs of the command line never need the
 * library.
 */
export async function loadContractRead() {
  const { readContract } = await import("./contract-read.ts");
  return readContract;
}

/** Hands out native coin of the embedded chain. @throws where the chain is another */
export async function fundAccount(
  ctx: ChainContext,
  given: { address: Address; amountWei: bigint },
): Promise<void> {
  const { fundAccount: fund } = await import("./faucet.ts");
  return fund(ctx, given);
}

/** The same for a verb of the command line. @throws where the chain is another, or cannot be opened */
export async function fundFromOutside(
  ctx: Ctx,
  given: { address: Address; amountWei: bigint },
  actor: string,
): Promise<void> {
  const { fundFromOutside: fund } = await import("./faucet.ts");
  return fund(ctx, given, actor);
}
