import { claimOf, isClaim, parseLoginSession, type Address } from "@svc/protocol";
import type { Acr, Client } from "../../accounts/index.ts";
import { readAddress } from "../../platform/http/address-input.ts";
import { networkOf } from "../../platform/http/client-address.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { acrAtLeast } from "../authorization/acr.ts";
import { type Attempt, type Channel, connectionOf, isTimeOver } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { getAttempt, getClient, readAttempt } from "./read-attempt.ts";
import type { LoginContext } from "../login-context.ts";
import { announceLogin } from "./login-feed.ts";
import { drawDigits, needsNumber } from "./number-matching.ts";
import { signLoginObject } from "./request-object.ts";
import { judgeSession } from "./rotating-code.ts";

export interface ClaimInput {
  readonly loginId: string;
  readonly channel: Channel;
  readonly session: string;
  readonly svcID: string;
  readonly claim: string;
  /** Address that the wallet calls from. */
  readonly callerAddress: string;
}

/**
 * A wallet claims a login for one identity; the code stops rotating. The same claim again gets the same answer.
 *
 * @returns the signed request object
 * @throws {Problem} login_not_found, code_expired, already_claimed, login_over, wrong_channel, identity_refused,
 * acr_unmet
 */
export async function claimLogin(ctx: LoginContext, input: ClaimInput): Promise<string> {
  const user = readAddress("svcID", input.svcID);
  if (!isClaim(input.claim)) throw invalidRequest("claim must be base64url of 32 bytes");
  const mode = judgeInput(ctx, input);
  if (mode === "stale") return repeatClaim(ctx, input, user);
  const attempt = await getAttempt(ctx, input.loginId);
  const client = await getClient(ctx, attempt);
  if (attempt.status === "waiting" && mode === "static" && isStaticCodeOver(ctx, attempt))
    throw new Problem("code_expired");
  if (attempt.status === "waiting") {
    const acr = acrOf(attempt, input.channel, input.callerAddress);
    refuseUnfit(attempt, { user, acr });
    const claimed = claimedAttempt(ctx, {
      attempt,
      client,
      input,
      user,
      acr,
      isStatic: mode === "static",
    });
    if (await store.claimAttempt(ctx.db, attempt.id, { claim: claimed, now: ctx.clock.now() })) {
      ctx.recent.put(claimed);
      announceLogin(ctx, attempt.id, { isApproved: false });
      return claimed.requestObject;
    }
  }
  return answerSecondClaim(ctx, input, user);
}

/**
 * Whether a static code has expired: after the lifetime of a person's login, even though a login for a business stays
 * open longer.
 */
export function isStaticCodeOver(
  { config, clock }: Pick<LoginContext, "config" | "clock">,
  { createdAt }: Attempt,
): boolean {
  return createdAt + config.loginLifetimeSeconds <= clock.now();
}

/**
 * Judges the session of the link that the wallet read: a QR code's, or the login's id on the same device.
 *
 * @throws {Problem} login_not_found
 */
function judgeInput(ctx: LoginContext, input: ClaimInput): "rolling" | "static" | "stale" {
  const { loginId, session } = input;
  if (input.channel === "qr") return judgeCode(ctx, loginId, session);
  if (session !== loginId) throw new Problem("login_not_found");
  return "rolling";
}

/** Accepts a QR code of the page that is at most one step old. @throws {Problem} login_not_found, code_expired */
export function checkCode(
  ctx: LoginContext,
  loginId: string,
  sessionText: string,
): "rolling" | "static" {
  const judged = judgeCode(ctx, loginId, sessionText);
  if (judged === "stale") throw new Problem("code_expired");
  return judged;
}

function judgeCode(
  ctx: LoginContext,
  loginId: string,
  sessionText: string,
): "rolling" | "static" | "stale" {
  const session = parseLoginSession(sessionText);
  if (session === null || session.loginId !== loginId) throw new Problem("login_not_found");
  const judged = judgeSession(ctx.keys.hmac("login-code"), session, ctx.clock.now());
  if (judged === "forged") throw new Problem("login_not_found");
  return judged;
}

/** How surely the wallet that calls from this address and the browser of the login belong together. */
export function acrOf(attempt: Attempt, channel: Channel, callerAddress: string): Acr {
  if (channel === "app-link") return "urn:svc:acr:same-device";
  return networkOf(callerAddress) === attempt.browserNetwork
    ? "urn:svc:acr:qr-near"
    : "urn:svc:acr:qr";
}

/**
 * Refuses a user other than the expected one, or an `acr` below the minimum.
 *
 * @throws {Problem} identity_refused, acr_unmet
 */
export function refuseUnfit(attempt: Attempt, { user, acr }: { user: Address; acr: Acr }): void {
  const { expectedUser, acrMinimum } = attempt.request;
  if (expectedUser !== undefined && expectedUser !== user) throw new Problem("identity_refused");
  if (acrMinimum !== undefined && !acrAtLeast(acr, acrMinimum)) throw new Problem("acr_unmet");
}

type Claimed = Attempt & store.Claim;

interface ClaimFacts {
  readonly attempt: Attempt;
  readonly client: Client;
  readonly input: ClaimInput;
  readonly user: Address;
  readonly acr: Acr;
  readonly isStatic: boolean;
}

function claimedAttempt(
  ctx: LoginContext,
  { attempt, client, input, user, acr, isStatic }: ClaimFacts,
): Claimed {
  const numberMatching = needsNumber(client, { channel: input.channel, isStatic });
  return {
    ...attempt,
    status: "claimed",
    channel: input.channel,
    isStatic,
    sessionText: input.session,
    connection: connectionOf(ctx.config.baseUrl, input.channel, attempt.id),
    claimedBy: user,
    claimSha256: input.claim,
    digits: drawDigits(ctx.random),
    acr,
    requestObject: signLoginObject(ctx, {
      attempt,
      client,
      sessionText: input.session,
      acr,
      numberMatching,
    }),
  };
}

async function answerSecondClaim(
  ctx: LoginContext,
  input: ClaimInput,
  user: Address,
): Promise<string> {
  const attempt = await readAttempt(ctx, input.loginId);
  if (attempt.status === "waiting")
    throw new Problem(attempt.expiresAt > ctx.clock.now() ? "code_expired" : "login_over");
  if (attempt.status === "failed" || isTimeOver(attempt, ctx.clock.now()))
    throw new Problem("login_over");
  if (attempt.channel !== input.channel) throw new Problem("wrong_channel");
  if (isSameClaim(attempt, input, user) && attempt.requestObject !== null)
    return attempt.requestObject;
  await store.contestAttempt(ctx.db, attempt.id);
  throw new Problem("already_claimed");
}

function isSameClaim(attempt: Attempt, input: ClaimInput, user: Address): boolean {
  return (
    attempt.claimSha256 === input.claim &&
    attempt.claimedBy === user &&
    attempt.sessionText === input.session
  );
}

/** A code that is no longer shown is only accepted for repeating a claim that was made while it was shown. */
async function repeatClaim(ctx: LoginContext, input: ClaimInput, user: Address): Promise<string> {
  const attempt = await readAttempt(ctx, input.loginId);
  if (attempt.status !== "waiting" && isSameClaim(attempt, input, user))
    return answerSecondClaim(ctx, input, user);
  throw new Problem("code_expired");
}

/** Whether this secret belongs to the claim. */
export function isClaimedWith(
  { claimSha256 }: Pick<Attempt, "claimSha256">,
  secret: string,
): boolean {
  return (
    isClaim(secret) && equalBytes(Buffer.from(claimOf(secret)), Buffer.from(claimSha256 ?? ""))
  );
}

/** @throws {Problem} signature_wrong */
export function checkClaimedSession({ sessionText }: Attempt, session: string): void {
  if (sessionText !== session)
    throw new Problem("signature_wrong", {
      message: "the session is not the one that was claimed",
    });
}
