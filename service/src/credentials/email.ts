import { type Address, shortAddress } from "@svc/protocol";
import type { Environment } from "../accounts/index.ts";
import { limitNetworkOf } from "../platform/http/client-address.ts";
import type { Locale } from "../platform/http/pick-locale.ts";
import type { Ctx } from "../platform/context.ts";
import { doDueWork, type DueWorkSignals } from "../platform/due-work.ts";
import type { Queryable } from "../platform/database/db.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { uuidv7 } from "../platform/ids.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { equalBytes } from "../platform/cryptography/mac.ts";
import type { Mailer } from "../platform/mail.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { takeOrRefuse } from "../platform/http/limit-refusal.ts";
import { forgetRateBucket, type Limit } from "../platform/rate-limit.ts";
import { codeMessage } from "./code-message.ts";
import type { CredentialsContext } from "./credentials-context.ts";
import { mailboxOf, parseEmailAddress } from "./email-address.ts";
import * as store from "./email-store.ts";
import { prepareCredential, storeCredential } from "./issue.ts";
import { findBuiltInIssuer } from "./issuer-store.ts";
import { type Issuer, isTrusted } from "./issuer.ts";

type EmailContext = Ctx & Pick<CredentialsContext, "mailer">;

export const emailColumn: SealedColumn = {
  table: "email_verification",
  idColumn: "id",
  column: "email_sealed",
};

export const codeColumn: SealedColumn = {
  table: "email_verification",
  idColumn: "id",
  column: "code_sealed",
};

const codeLifetimeSeconds = 600;
const codesTotal = 1_000_000;
const triesMax = 5;
/** A domain name, and with it an address, may pass to somebody else; they are commonly registered for a year. */
const credentialLifetimeSeconds = 365 * 86_400;

/** For one mailbox: with five tries per code, guessing one takes 55 years on average. */
const mailboxLimit: Limit = { perSecond: 10 / 86_400, burst: 5 };
const identityLimit: Limit = { perSecond: 20 / 86_400, burst: 10 };
const networkLimit: Limit = { perSecond: 60 / 3600, burst: 60 };
const identityBucketOf = (user: Address): string => `email:identity:${user}`;

export interface StartedVerification {
  readonly verificationId: string;
  readonly expiresAt: number;
}

/**
 * Has a code of six digits sent to an e-mail address, for a user to type into the wallet within ten minutes. A job
 * sends the message later, so the answer does not reveal whether the mailbox exists.
 *
 * @param given.clientAddress the caller's address, for the limit of its network
 * @param given.locale the language of the message
 * @throws {Problem} invalid_request, unsupported (no mail server configured), issuer_distrusted (the service's own
 * issuer), rate_limited
 */
export async function startVerification(
  ctx: EmailContext,
  user: Address,
  given: { email: string; environment: Environment; clientAddress: string; locale: Locale },
): Promise<StartedVerification> {
  if (ctx.mailer === null)
    throw new Problem("unsupported", { message: "e-mail verification is switched off here" });
  const email = parseEmailAddress(given.email);
  if (email === null) throw invalidRequest("email must be an e-mail address");
  if (!isTrusted(await findIssuer(ctx.db, given.environment), ctx.clock.now()))
    throw new Problem("issuer_distrusted");
  await limitVerifications(ctx, { user, email, clientAddress: given.clientAddress });
  const id = uuidv7(ctx.clock, ctx.random);
  const code = String(ctx.random.below(codesTotal)).padStart(6, "0");
  const now = ctx.clock.now();
  const expiresAt = now + codeLifetimeSeconds;
  await ctx.db.transaction(async (tx) =>
    store.insertVerification(tx, {
      id,
      user,
      environment: given.environment,
      emailSealed: ctx.seal.seal(Buffer.from(email), placeIn(emailColumn, id)),
      codeMac: macOf(ctx, { id, user, code }),
      codeSealed: ctx.seal.seal(Buffer.from(code), placeIn(codeColumn, id)),
      locale: given.locale,
      createdAt: now,
      expiresAt,
    }),
  );
  return { verificationId: id, expiresAt };
}

async function findIssuer(db: Queryable, environment: Environment): Promise<Issuer> {
  const issuer = await findBuiltInIssuer(db, "email", environment);
  if (issuer === null) throw new Error("the built-in issuer of e-mail addresses is missing");
  return issuer;
}

async function limitVerifications(
  ctx: Ctx,
  { user, email, clientAddress }: { user: Address; email: string; clientAddress: string },
): Promise<void> {
  const network = limitNetworkOf(clientAddress);
  await takeOrRefuse(ctx, `email:network:${network}`, { ...networkLimit, address: clientAddress });
  await takeOrRefuse(ctx, identityBucketOf(user), identityLimit);
  // The buckets of limits are stored in a table, so they are named by a MAC, not by the address.
  const mailbox = ctx.keys.mac("email-code", JSON.stringify(["mailbox", mailboxOf(email)]));
  await takeOrRefuse(ctx, `email:mailbox:${mailbox.toString("hex")}`, mailboxLimit);
}

/** The identity is part of the MAC, so that a code is wrong for anybody else. */
function macOf(ctx: Ctx, { id, user, code }: { id: string; user: Address; code: string }): Buffer {
  return ctx.keys.mac("email-code", JSON.stringify(["code", id, user, code]));
}

/**
 * Issues the `EMAIL` credential if the code is right, and ends the verification; there are five tries. The right code
 * gets the same answer again until it expires, for a wallet that did not get the answer.
 *
 * @throws {Problem} code_wrong; verification_over (used, expired, or tried too often); verification_not_found, also for
 * another user's verification; issuer_distrusted (the service's own issuer)
 */
export async function finishVerification(
  ctx: Ctx,
  user: Address,
  given: { verificationId: string; code: string },
): Promise<{ credentialId: string }> {
  const { verificationId: id, code } = given;
  if ((await store.findVerificationOwner(ctx.db, id)) !== user)
    throw new Problem("verification_not_found");
  const now = ctx.clock.now();
  const credentialId = await ctx.db.transaction(async (tx) => {
    const tried = await store.takeTry(tx, { id, user, now, triesMax });
    if (tried === null) return repeatFinish(ctx, tx, { id, user, code });
    // Not thrown here: a rollback would give back the try.
    if (!equalBytes(tried.codeMac, macOf(ctx, { id, user, code }))) return null;
    const email = ctx.seal.open(tried.emailSealed, placeIn(emailColumn, id)).toString();
    const issuer = await findIssuer(tx, tried.environment);
    const prepared = prepareCredential(ctx, issuer, {
      user,
      document: "CONTACT",
      fields: [{ field: "EMAIL", data: email }],
      expiresAt: now + credentialLifetimeSeconds,
    });
    const issued = await storeCredential(ctx, tx, prepared);
    await store.finishVerification(tx, id, issued.id);
    return issued.id;
  });
  if (credentialId === null) throw new Problem("code_wrong");
  return { credentialId };
}

/** The credential that the same code has issued before. @throws {Problem} verification_over */
async function repeatFinish(
  ctx: Ctx,
  tx: Queryable,
  given: { id: string; user: Address; code: string },
): Promise<string> {
  const { id, user } = given;
  const issued = await store.findIssued(tx, { id, user, now: ctx.clock.now() });
  if (issued === null || !equalBytes(issued.codeMac, macOf(ctx, given)))
    throw new Problem("verification_over");
  return issued.credentialId;
}

const leaseSeconds = 120;
/** The most messages under way in one process. */
const messagesMax = 20;
const lookAgainMs = 5_000;
/** Pauses after failed attempts; after the last one, the user has to ask for another code. */
const retrySeconds = [10, 30, 60];

/**
 * Sends messages until none is due or under way; a slow one does not delay the others. One that the mail server does
 * not accept is tried again within two minutes, unless it is refused permanently.
 */
export async function sendMessages(
  ctx: Ctx,
  mailer: Mailer,
  signals: DueWorkSignals = {},
): Promise<void> {
  await doDueWork<store.DueMessage>(
    {
      limitBeside: (underWay) => messagesMax - underWay.length,
      async lease(limit) {
        const now = ctx.clock.now();
        return store.leaseMessages(ctx.db, { now, leasedUntil: now + leaseSeconds, limit });
      },
      carryOut: async (message) => sendMessage(ctx, mailer, message),
      brokeOff: (error) =>
        ctx.log.error({ err: error }, "sending an e-mail broke off; it is tried again"),
      lookAgainMs,
    },
    signals,
  );
}

/** The members of an error of `nodemailer` that are safe to log. */
interface MailError {
  readonly code?: unknown;
  /** A code of the system or of TLS, such as `ECONNREFUSED` or `CERT_HAS_EXPIRED`. */
  readonly originalCode?: unknown;
  /** The command that failed, without its arguments. */
  readonly command?: unknown;
  readonly responseCode?: unknown;
  /** Whether the server's answer was 5yz. */
  readonly permanent?: unknown;
}

async function sendMessage(ctx: Ctx, mailer: Mailer, due: store.DueMessage): Promise<void> {
  const { id, user, locale } = due;
  const to = ctx.seal.open(due.emailSealed, placeIn(emailColumn, id)).toString();
  const code = ctx.seal.open(due.codeSealed, placeIn(codeColumn, id)).toString();
  try {
    await mailer.send({ id, to, ...codeMessage(locale, { code, identity: shortAddress(user) }) });
  } catch (error) {
    // Not the error itself: it may quote the address.
    const { code: reason, originalCode, command, responseCode, permanent } = error as MailError;
    // A permanent refusal would be repeated (RFC 5321 section 4.2.1), and servers block clients that keep trying.
    const pause = permanent === true ? undefined : retrySeconds[due.attempts - 1];
    await store.noteNotSent(ctx.db, id, pause === undefined ? null : ctx.clock.now() + pause);
    const about = { verificationId: id, attempt: due.attempts, reason, originalCode };
    ctx.log.warn({ ...about, command, responseCode }, "an e-mail could not be sent");
    return;
  }
  await store.noteSent(ctx.db, id, ctx.clock.now());
}

/** Deletes the count of codes that an identity has asked for, in the caller's transaction. */
export async function forgetAskedCodes(tx: Queryable, user: Address): Promise<void> {
  await forgetRateBucket(tx, identityBucketOf(user));
}

/** Deletes verifications ten minutes after their code would have expired, used or not. */
export async function purgeVerifications(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - codeLifetimeSeconds;
  await purgeInBatches(async (limit) => store.deleteVerifications(ctx.db, before, limit));
}
