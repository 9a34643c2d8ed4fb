import { declineDigest } from "@svc/protocol";
import { Problem } from "../../platform/http/problems.ts";
import type { LoginContext, SignatureVerifier } from "../login-context.ts";
import { type Attempt, isEndedBy } from "./attempt.ts";
import { checkClaimedSession, isClaimedWith } from "./claim.ts";
import { readAttempt } from "./read-attempt.ts";
import { endUndecided } from "./end-attempt.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";

/** A wallet's refusal of a login that was opened by QR code (decisions section 3, Refusal and failure). */
export interface Refusal {
  readonly loginId: string;
  readonly session: string;
  readonly claimSecret: string | undefined;
  readonly signature: string | undefined;
  /** The user says that somebody else started this login. */
  readonly notStarted: boolean;
  /** Address that the wallet calls from. */
  readonly callerAddress: string;
}

/**
 * Ends a claimed login for the wallet that claimed it, also while other members of a business are asked. The wallet
 * proves itself by the claim secret or a signed `Decline`. The same again is no error.
 *
 * @throws {Problem} login_not_found, not_claimed, login_over, wrong_channel, claim_wrong, signature_wrong
 */
export async function declineLogin(ctx: LoginContext, refusal: Refusal): Promise<void> {
  const attempt = await readAttempt(ctx, refusal.loginId);
  if (attempt.status === "waiting") throw new Problem("not_claimed");
  const failure = refusal.notStarted ? "not_started" : "declined";
  const isRepeated = isEndedBy(attempt, failure);
  if (attempt.status !== "claimed" && attempt.status !== "gathering" && !isRepeated)
    throw lateRefusal(attempt, refusal);
  if (attempt.channel !== "qr") throw new Problem("wrong_channel");
  checkClaimedSession(attempt, refusal.session);
  await proveRefusal(ctx, attempt, refusal);
  if (isRepeated || (await endUndecided(ctx, attempt, failure))) return;
  // Another call of the wallet may have approved it meanwhile, or been the same refusal.
  const now = await readAttempt(ctx, attempt.id);
  if (!isEndedBy(now, failure)) throw lateRefusal(now, refusal);
}

/** A wallet that never got the answer to its approval, and declines now, must not believe that nobody is logged in. */
function lateRefusal(attempt: Attempt, { claimSecret }: Refusal): Problem {
  const isApproved = attempt.status === "approved" || attempt.status === "finished";
  if (!isApproved || claimSecret === undefined || !isClaimedWith(attempt, claimSecret))
    return new Problem("login_over");
  const message = "this login was approved already; it can be ended in the list of logins";
  return new Problem("login_over", { message });
}

async function proveRefusal(
  ctx: SignatureVerifier,
  attempt: Attempt,
  refusal: Refusal,
): Promise<void> {
  if (refusal.claimSecret !== undefined) {
    if (!isClaimedWith(attempt, refusal.claimSecret)) throw new Problem("claim_wrong");
    return;
  }
  const digest = declineDigest({ request: refusal.session, connection: attempt.connection ?? "" });
  const address = attempt.claimedBy;
  const claim = {
    digest,
    signature: refusal.signature ?? "",
    loginId: attempt.id,
    callerAddress: refusal.callerAddress,
  };
  if (address === null || !(await ctx.verifySignature({ address, ...claim })))
    throw signatureWrong(claim.signature);
}
