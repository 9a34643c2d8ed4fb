import type { Address } from "@svc/protocol";
import type { Ctx } from "../platform/context.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import type { ChainReport } from "./chain.ts";
import type { Chain, ChainContext } from "./context.ts";
import { faucetKeyColumn } from "./embedded-store.ts";
import { signerKeyColumn } from "./signer-key-store.ts";

export type { Chain, ChainContext } from "./context.ts";
export { enqueueTransaction, failuresBefore, subjectOfAttempt } from "./enqueue.ts";
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
 * Opens the chain: starts the embedded one or connects to the configured node, opens the signer, and deploys contracts
 * that are missing. With `CHAIN=off` there is none, and every use of it throws.
 *
 * @param options.mayBeAway accepts that the configured node is unreachable, if an earlier start has reached it: calls
 *   throw {@link NodeAway} until it answers and passes the checks of a start
 * @throws if it is another chain than at the first start, other code stands at a contract's address, or the node, the
 *   signer or the CREATE2 deployer is missing
 */
export async function openChain(
  ctx: Ctx,
  options: { mayBeAway: boolean } = { mayBeAway: false },
): Promise<Chain> {
  if (ctx.config.chain === "off") return absentChain;
  // The client library takes a while to load, and most verbs of the command line do not need it.
  const { openChain: open } = await import("./chain.ts");
  return open(ctx, options);
}

/** For `svc chain show`. @throws with `CHAIN=off`, for another chain than at the first start, or an unreachable node */
export async function describeChain(ctx: Ctx): Promise<ChainReport> {
  if (ctx.config.chain === "off") throw new Error("there is no chain (CHAIN=off)");
  const { describeChain: describe } = await import("./chain.ts");
  return describe(ctx);
}

/** The signature of an externally owned account, or by ERC-1271 or ERC-6492 (decisions section 3, Signatures). */
export interface SignatureClaim {
  readonly address: Address;
  readonly digest: Uint8Array;
  readonly signature: string;
}

/**
 * Whether the account signed the digest. The signature of an externally owned account is verified without a call of the
 * chain; a contract is called, with bounds on gas, time and rate.
 *
 * @param mayAsk whether to call the contract; asked before any call, and may throw, for example for a limit
 * @throws {Problem} rate_limited, chain_unavailable; both only if a contract has to be called
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

/** The chain of a process with `CHAIN=off`: every use throws. */
const absentChain = new Proxy(
  {},
  {
    get(_target, name) {
      if (name === Symbol.asyncDispose) return async () => undefined;
      // Read by `await`, which takes anything with this property for a promise.
      if (name === "then") return undefined;
      throw new Error(`this process runs without a chain (CHAIN=off): ${String(name)}`);
    },
  },
) as Chain;

/**
 * Loads `readContract` of `contract-read.ts` when it is first needed: it comes with the client library, which most
 * verbs of the command line do not need.
 */
export async function loadContractRead() {
  const { readContract } = await import("./contract-read.ts");
  return readContract;
}

/** Sends native coin of the embedded chain. @throws on any other chain */
export async function fundAccount(
  ctx: ChainContext,
  given: { address: Address; amountWei: bigint },
): Promise<void> {
  const { fundAccount: fund } = await import("./faucet.ts");
  return fund(ctx, given);
}

/** The same for a verb of the command line, which has no open chain. @throws also if the chain cannot be opened */
export async function fundFromOutside(
  ctx: Ctx,
  given: { address: Address; amountWei: bigint },
  actor: string,
): Promise<void> {
  const { fundFromOutside: fund } = await import("./faucet.ts");
  return fund(ctx, given, actor);
}
