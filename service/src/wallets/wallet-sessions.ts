import { type Address, sessionDigest } from "@svc/protocol";
import { endedForLate } from "../platform/clock.ts";
import type { Ctx } from "../platform/context.ts";
import { equalBytes, mac } from "../platform/cryptography/mac.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { Problem } from "../platform/http/problems.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import * as store from "./wallet-session-store.ts";
import { signatureWrong } from "../platform/http/wrong-signature.ts";

/** A person answers at once, and a machine even more so. */
const challengeLifetimeSeconds = 300;
const sessionLifetimeSeconds = 3600;

export interface Challenge {
  readonly challenge: string;
  /** Unix seconds. */
  readonly deadline: number;
  /** What the wallet signs as `origin`: this service, and no look-alike. */
  readonly origin: string;
}

/** Makes a challenge that any process can check later without storing it. */
export function makeChallenge(ctx: Ctx): Challenge {
  const random = ctx.random.bytes(16).toString("base64url");
  const deadline = ctx.clock.now() + challengeLifetimeSeconds;
  return {
    challenge: `${random}.${challengeMac(ctx, random, deadline)}`,
    deadline,
    origin: ctx.config.baseUrl,
  };
}

function challengeMac(ctx: Ctx, random: string, deadline: number): string {
  return mac(ctx.keys.hmac("wallet-challenge"), `${random}.${deadline}`).toString("base64url");
}

export interface SignedChallenge {
  readonly svcID: string;
  readonly challenge: string;
  readonly deadline: number;
  readonly signature: string;
  /** The address that the wallet calls from. */
  readonly callerAddress: string;
}

/** Whether an account, which may be a contract, signed the digest. */
export type VerifySignature = (claim: {
  readonly address: Address;
  readonly digest: Uint8Array;
  readonly signature: string;
  readonly callerAddress: string;
}) => Promise<boolean>;

/**
 * Opens a session for a wallet that signed the `Session` message (decisions section 3); each challenge opens only one.
 *
 * @throws {Problem} invalid_request, challenge_wrong, signature_wrong; what `verify` throws
 */
export async function openWalletSession(
  ctx: Ctx,
  signed: SignedChallenge,
  verify: VerifySignature,
): Promise<{ token: string; expiresAt: number }> {
  const user = readAddress("svcID", signed.svcID);
  const now = ctx.clock.now();
  const [random = ""] = signed.challenge.split(".", 1);
  // Compared as a whole text, because another spelling of a used challenge would count as a new one.
  const expected = `${random}.${challengeMac(ctx, random, signed.deadline)}`;
  const isOurs = equalBytes(Buffer.from(signed.challenge), Buffer.from(expected));
  if (!isOurs || signed.deadline < now) throw new Problem("challenge_wrong");
  const { challenge, deadline, signature, callerAddress } = signed;
  const digest = sessionDigest({ origin: ctx.config.baseUrl, challenge, deadline });
  const isSigned = await verify({ address: user, digest, signature, callerAddress });
  if (!isSigned) throw signatureWrong(signature);
  const token = ctx.random.bytes(32).toString("base64url");
  const expiresAt = now + sessionLifetimeSeconds;
  const opened = {
    tokenSha256: sha256(token),
    user,
    challengeSha256: sha256(challenge),
    createdAt: now,
    expiresAt,
  };
  if (!(await store.insertWalletSession(ctx.db, opened))) throw new Problem("challenge_wrong");
  return { token, expiresAt };
}

/** Schemes are compared without regard to case (RFC 9110 section 11.1). */
function tokenOf(authorization = ""): string | null {
  return /^Bearer +([A-Za-z0-9_-]{43})$/i.exec(authorization)?.[1] ?? null;
}

/** The identity behind `Authorization: Bearer <token>`. @throws {Problem} wallet_session_required */
export async function getWalletUser(ctx: Ctx, authorization: string | undefined): Promise<Address> {
  const token = tokenOf(authorization);
  const user =
    token === null ? null : await store.findWalletUser(ctx.db, sha256(token), ctx.clock.now());
  if (user === null) throw new Problem("wallet_session_required");
  return user;
}

/** Ends the session at once; an unknown token changes nothing. */
export async function closeWalletSession(
  ctx: Ctx,
  authorization: string | undefined,
): Promise<void> {
  const token = tokenOf(authorization);
  if (token !== null) await store.endWalletSession(ctx.db, sha256(token), ctx.clock.now());
}

/**
 * Deletes sessions that are over, but not before their challenge has expired, so that the challenge cannot open another
 * session.
 */
export async function purgeWalletSessions(ctx: Ctx): Promise<void> {
  const before = endedForLate(ctx.clock) - challengeLifetimeSeconds;
  await purgeInBatches(async (limit) => store.deleteWalletSessions(ctx.db, before, limit));
}
