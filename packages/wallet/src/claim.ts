import {
  base64urlOfBytes,
  claimOf,
  isClaim,
  parseLoginSession,
  type LoginLink,
  type RequestObject,
} from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { brokerUrl, verifyRequestObject, type VerifiedObject } from "./requester.ts";
import { hashedKey, type StorageKey } from "./storage.ts";
import { call, membersOf, refusalOfAnswer } from "./transport.ts";

/** A login lives for minutes, so older claims are of no use. */
const keptSeconds = 86_400;

/** A claim as it is stored: written before it is sent to the broker, so that no other process makes a second claim. */
interface StoredClaim {
  /** The session that was claimed; the code on the page may have moved on since. */
  readonly session: string;
  /** base64url of 32 bytes. */
  readonly secret: string;
  /** Unix seconds. */
  readonly madeAt: number;
  /** The request object in its compact form, once the broker has answered. */
  readonly object?: string;
}

/** A login that is claimed for the wallet's identity. */
export interface ClaimedLogin extends VerifiedObject {
  readonly session: string;
  readonly connection: string;
  /** Proves to the broker that the answer comes from the wallet that made the claim. */
  readonly claimSecret: string;
}

/** A login link that leads to a broker on the list. */
export interface BrokerLogin {
  readonly link: LoginLink;
  readonly connection: string;
  readonly broker: string;
}

/**
 * Claims a login at its broker, or continues with the claim that this wallet has made before, from any process
 * (decisions, section 2, the QR page, rule 3). Two processes at once send the same claim.
 *
 * @throws {WalletRefusal} broker_refused (claimed by another wallet, over, a stale code), forged_request, expired,
 * unreachable
 */
export async function claimLogin(ctx: WalletContext, login: BrokerLogin): Promise<ClaimedLogin> {
  const { link, connection, broker } = login;
  const key = keyOf(ctx, connection);
  const stored = await storeClaim(ctx, key, link.session);
  if (loginIdOf(stored.session) !== loginIdOf(link.session))
    throw new WalletRefusal("invalid_link", "sess: is not the session that was claimed");
  const answered = await sendClaim(ctx, { login, key, stored });
  const { session, secret, object: compact } = answered;
  // Verified every time: a stored claim may have expired, and its broker may have been taken off the list.
  const verified = await verifyRequestObject(ctx, {
    compact,
    link: { ...link, session },
    broker,
  });
  if (stored.object === undefined) await ctx.storage.put(key, JSON.stringify(answered));
  return { ...verified, session, connection, claimSecret: secret };
}

/** Deletes the claim of a login that is over: if the person comes back to it, the broker says that it is over. */
export async function forgetClaim(ctx: WalletContext, connection: string): Promise<void> {
  await ctx.storage.remove(keyOf(ctx, connection));
}

function keyOf(ctx: WalletContext, connection: string): StorageKey {
  return hashedKey("claim", ctx.identity.address, connection);
}

/** Whether an approval needs the two digits of the page: yes for a QR code, unless the broker says otherwise. */
export function needsNumber({ number_matching: isMatching }: RequestObject): boolean {
  return isMatching !== false;
}

async function storeClaim(
  ctx: WalletContext,
  key: StorageKey,
  session: string,
): Promise<StoredClaim> {
  const kept = await ctx.storage.get(key);
  if (kept !== null) return readClaim(kept);
  const madeAt = await ctx.now();
  const fresh: StoredClaim = { session, secret: base64urlOfBytes(ctx.random(32)), madeAt };
  const stored = readClaim(await ctx.storage.add(key, JSON.stringify(fresh)));
  await dropOldClaims(ctx, madeAt);
  return stored;
}

async function sendClaim(
  ctx: WalletContext,
  { login, key, stored }: { login: BrokerLogin; key: StorageKey; stored: StoredClaim },
): Promise<StoredClaim & { object: string }> {
  if (stored.object !== undefined) return { ...stored, object: stored.object };
  const url = brokerUrl(login.connection, "claim");
  const { session, secret } = stored;
  const body = { session, svcID: ctx.identity.address, claim: claimOf(secret) };
  const answer = await call(ctx.fetch, { url, body });
  if (answer.status === 200) return { ...stored, object: answer.text ?? "" };
  if (answer.status === 410 && login.link.session !== session) {
    // The code that was scanned first did not reach the broker in time; the one on the page now may.
    const renewed = { ...stored, session: login.link.session };
    await ctx.storage.put(key, JSON.stringify(renewed));
    return sendClaim(ctx, { login, key, stored: renewed });
  }
  throw refusalOfAnswer(url, answer);
}

function readClaim(text: string): StoredClaim {
  const { session, secret, madeAt, object } = membersOf(text);
  const isRead =
    typeof session === "string" &&
    typeof secret === "string" &&
    isClaim(secret) &&
    typeof madeAt === "number";
  if (!isRead) throw new WalletRefusal("damaged_state", "the stored claim cannot be read");
  return { session, secret, madeAt, ...(typeof object === "string" ? { object } : {}) };
}

async function dropOldClaims(ctx: WalletContext, now: number): Promise<void> {
  for (const key of await ctx.storage.list("claim")) {
    const { madeAt } = membersOf(await ctx.storage.get(key));
    if (typeof madeAt !== "number" || madeAt + keptSeconds < now) await ctx.storage.remove(key);
  }
}

function loginIdOf(session: string): string {
  return parseLoginSession(session)?.loginId ?? session;
}
