import {
  type Address,
  type BusinessPart,
  loginDigest,
  requestObjectHash,
  zeroHash,
} from "@svc/protocol";
import type { Client } from "../../accounts/index.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { type Attempt, connectionOf, isEndedBy, isTimeOver } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { approveForBusiness } from "../business/business-login.ts";
import { acrOf, checkClaimedSession, checkCode, isClaimedWith, refuseUnfit } from "./claim.ts";
import { getAttempt, getClient, readAttempt } from "./read-attempt.ts";
import { endUndecided } from "./end-attempt.ts";
import { announceLogin } from "./login-feed.ts";
import type { LoginContext, SignatureVerifier } from "../login-context.ts";
import { checkNumberGiven, isNumberRight, refuseNumber } from "./number-matching.ts";
import { claimTermsOf } from "./request-object.ts";
import { isBusinessScope } from "../authorization/scope.ts";
import { signatureWrong } from "../../platform/http/wrong-signature.ts";

/** A wallet's answer to a login (decisions section 2, the QR page, rule 3). */
export interface Answer {
  readonly loginId: string;
  readonly session: string;
  readonly svcID: string;
  readonly signature: string;
  readonly claimSecret: string | undefined;
  readonly code: string | undefined;
  /** The business that the user acts for, with the user's approval as a member; required if the client asks for one. */
  readonly business: BusinessPart | undefined;
  /** Address that the wallet calls from. */
  readonly callerAddress: string;
}

/** The state of a login after its wallet's approval: `waiting` while other members of a business are asked. */
export type Approved = "approved" | "waiting";

/**
 * A wallet approves a login that was opened by QR code.
 *
 * @throws {Problem} claim_wrong, identity_changed, signature_wrong, number_required, wrong_number (which ends the login), login_over,
 *   without a claim what {@link approveWithoutClaim} throws, and for a business what {@link approveForBusiness} throws
 */
export async function approveLogin(ctx: LoginContext, answer: Answer): Promise<Approved> {
  const user = readAddress("svcID", answer.svcID);
  const attempt = await claimedOrWaiting(ctx, answer);
  const client = await getClient(ctx, attempt);
  if (attempt.status === "waiting")
    return approveWithoutClaim(ctx, { answer, user, attempt, client });
  if (attempt.channel !== "qr") throw new Problem("wrong_channel");
  if (answer.claimSecret === undefined) return answerSecondResult(ctx, { answer, user, attempt });
  checkClaim(attempt, answer, user);
  const part = businessPartOf(attempt, answer.business);
  const { code = "" } = answer;
  checkNumberGiven(attempt, code);
  const { signature, callerAddress } = answer;
  const signed = { user, signature, attempt, code, callerAddress };
  if (!(await isSignedBy(ctx, signed))) throw signatureWrong(signature);
  if (!isNumberRight(attempt, code)) {
    // A repeat gets the same answer: a wallet that did not get ours sends the number again.
    const isEnded =
      (await endUndecided(ctx, attempt, "wrong_number")) ||
      isEndedBy(await readAttempt(ctx, attempt.id), "wrong_number");
    throw new Problem(isEnded ? "wrong_number" : "login_over");
  }
  const outcome = await decide(ctx, { attempt, client, user, part });
  if (outcome === null) return refuseLate(ctx, { answer, user });
  ctx.recent.forget(attempt.id);
  return outcome;
}

/**
 * The business's part of an answer, which a login for a business needs beside the signature; null for a person's own
 * login.
 *
 * @throws {Problem} invalid_request if it is missing
 */
export function businessPartOf(
  { request }: Attempt,
  part: BusinessPart | undefined,
): BusinessPart | null {
  if (!isBusinessScope(request.scope)) return null;
  if (part === undefined)
    throw invalidRequest("business is required, since the client asks for a business");
  return part;
}

/** Decides a claimed attempt whose wallet has proved everything. @returns null when it was decided meanwhile */
export async function decide(
  ctx: LoginContext,
  {
    attempt,
    client,
    user,
    part,
  }: { attempt: Attempt; client: Client; user: Address; part: BusinessPart | null },
): Promise<Approved | null> {
  if (part !== null) {
    const { requester } = claimTermsOf(attempt);
    return approveForBusiness(ctx, { attempt, client, user, part, requester });
  }
  const approval = {
    user,
    organizationId: client.organizationId,
    claimSha256: attempt.claimSha256 ?? "",
    ...approvalTimes(ctx),
  };
  const isApproved = await store.approveAttempt(ctx.db, attempt.id, approval);
  if (!isApproved) return null;
  // A page with a QR code fetches its authorization code at once; on the same device the browser comes back by itself.
  announceLogin(ctx, attempt.id, { isApproved: attempt.channel === "qr" });
  return "approved";
}

/** An approval that comes late extends the attempt, so that the browser still has time to fetch its code. */
export function approvalTimes(ctx: LoginContext): { now: number; expiresAtLeast: number } {
  const now = ctx.clock.now();
  return { now, expiresAtLeast: now + ctx.config.loginLifetimeSeconds };
}

/**
 * The attempt. If its remembered state would refuse the answer, it is read again, because another process may have
 * changed it.
 */
async function claimedOrWaiting(ctx: LoginContext, answer: Answer): Promise<Attempt> {
  const now = ctx.clock.now();
  const known = await getAttempt(ctx, answer.loginId);
  const attempt =
    refusalOf(known, answer, now) === null ? known : await readAttempt(ctx, answer.loginId);
  const refusal = refusalOf(attempt, answer, now);
  if (refusal !== null) throw new Problem(refusal);
  return attempt;
}

/**
 * Why the state of the attempt alone refuses the answer; null if it does not. After a wrong number a claimed answer
 * goes on to the check of the number, so that a repeat is answered in the same way.
 */
function refusalOf(
  attempt: Attempt,
  { claimSecret }: Answer,
  now: number,
): "not_claimed" | "login_over" | null {
  if (attempt.status === "waiting" && claimSecret !== undefined) return "not_claimed";
  const isOfNumber = claimSecret !== undefined && isEndedBy(attempt, "wrong_number");
  const hasFailed = attempt.status === "failed" && !isOfNumber;
  return hasFailed || isTimeOver(attempt, now) ? "login_over" : null;
}

function checkClaim(attempt: Attempt, answer: Answer, user: Address): void {
  if (!isClaimedWith(attempt, answer.claimSecret ?? "")) throw new Problem("claim_wrong");
  if (attempt.claimedBy !== user) throw new Problem("identity_changed");
  checkClaimedSession(attempt, answer.session);
}

interface Signed {
  readonly user: Address;
  readonly signature: string;
  readonly attempt: Attempt;
  readonly code: string;
  readonly callerAddress: string;
}

/** Whether the user signed what was claimed: session, `conn`, requester, digits and request object. */
export async function isSignedBy(
  ctx: SignatureVerifier,
  { user, signature, attempt, code, callerAddress }: Signed,
): Promise<boolean> {
  const { sessionText, connection, requestObject } = attempt;
  if (sessionText === null || connection === null || requestObject === null) return false;
  const object = requestObjectHash(requestObject);
  const digest = loginDigest({
    session: sessionText,
    connection,
    requester: claimTermsOf(attempt).requester,
    code,
    object,
  });
  const loginId = attempt.id;
  return ctx.verifySignature({ address: user, digest, signature, loginId, callerAddress });
}

export interface UnclaimedAnswer {
  readonly loginId: string;
  readonly user: Address;
  readonly session: string;
  readonly connection: string;
  readonly signature: string;
  readonly callerAddress: string;
}

/**
 * Whether the user signed without a claim. Such a wallet never asked for the request object, so requester, digits and
 * object are empty.
 */
export async function isSignedWithoutClaim(
  ctx: SignatureVerifier,
  { user, session, connection, ...given }: UnclaimedAnswer,
): Promise<boolean> {
  const digest = loginDigest({ session, connection, requester: "", code: "", object: zeroHash });
  return ctx.verifySignature({ address: user, digest, ...given });
}

/**
 * Claims and approves in one call.
 *
 * @throws {Problem} not_claimed, code_expired, already_claimed, identity_refused, acr_unmet, signature_wrong,
 * login_over
 */
async function approveWithoutClaim(
  ctx: LoginContext,
  {
    answer,
    user,
    attempt,
    client,
  }: { answer: Answer; user: Address; attempt: Attempt; client: Client },
): Promise<Approved> {
  // A member's approval names the client, which only the answer to a claim reveals.
  if (isBusinessScope(attempt.request.scope)) throw new Problem("not_claimed");
  const mode = checkCode(ctx, attempt.id, answer.session);
  if (mode === "static" || client.numberMatching) throw new Problem("not_claimed");
  const acr = acrOf(attempt, "qr", answer.callerAddress);
  refuseUnfit(attempt, { user, acr });
  refuseNumber(answer.code ?? "");
  if (!(await isResultSigned(ctx, answer, user))) throw signatureWrong(answer.signature);
  const approval = {
    user,
    organizationId: client.organizationId,
    channel: "qr" as const,
    sessionText: answer.session,
    connection: connectionOf(ctx.config.baseUrl, "qr", attempt.id),
    acr,
    ...approvalTimes(ctx),
  };
  if (!(await store.approveUnclaimed(ctx.db, attempt.id, approval)))
    return answerSecondResult(ctx, { answer, user, attempt: await readAttempt(ctx, attempt.id) });
  ctx.recent.forget(attempt.id);
  announceLogin(ctx, attempt.id, { isApproved: true });
  return "approved";
}

async function isResultSigned(ctx: LoginContext, answer: Answer, user: Address): Promise<boolean> {
  const { loginId, session, signature, callerAddress } = answer;
  const connection = connectionOf(ctx.config.baseUrl, "qr", loginId);
  return isSignedWithoutClaim(ctx, {
    loginId,
    user,
    session,
    connection,
    signature,
    callerAddress,
  });
}

/**
 * Answers a result without a claim for a login that has been claimed already. From the wallet that claimed it this is a
 * repeat and no error: our answer may have been lost. From any other wallet it counts as a second claim, and the page
 * is told.
 */
async function answerSecondResult(
  ctx: LoginContext,
  { answer, user, attempt }: { answer: Answer; user: Address; attempt: Attempt },
): Promise<Approved> {
  const isRepeated =
    (attempt.status === "approved" || attempt.status === "finished") &&
    attempt.claimSha256 === null &&
    attempt.claimedBy === user &&
    attempt.sessionText === answer.session;
  if (isRepeated && (await isResultSigned(ctx, answer, user))) return "approved";
  checkCode(ctx, attempt.id, answer.session);
  if (attempt.status !== "claimed") throw new Problem("login_over");
  await store.contestAttempt(ctx.db, attempt.id);
  throw new Problem("already_claimed");
}

/** Another process or call was faster. The same approval again is no error: the wallet may have lost our answer. */
async function refuseLate(
  ctx: LoginContext,
  { answer, user }: { answer: Answer; user: Address },
): Promise<Approved> {
  const attempt = await readAttempt(ctx, answer.loginId);
  const isOurs =
    ["gathering", "approved", "finished"].includes(attempt.status) &&
    attempt.claimedBy === user &&
    attempt.sessionText === answer.session;
  if (!isOurs) throw new Problem("login_over");
  return attempt.status === "gathering" ? "waiting" : "approved";
}
