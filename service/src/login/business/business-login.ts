import { type Address, businessLoginHash, type BusinessPart } from "@svc/protocol";
import type { Client } from "../../accounts/index.ts";
import { SealBroken } from "../../platform/cryptography/seal.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import type { Attempt } from "../attempt/attempt.ts";
import type { OpenWindow } from "../open-window.ts";
import * as store from "./business-login-store.ts";
import type { LoginContext } from "../login-context.ts";

/** From the opened page to the last approval (decisions section 2, rule 7). */
export const businessLoginSeconds = 15 * 60;
/** Tokens of a business end then, however often they are refreshed (decisions section 2, Lifetimes). */
export const businessFamilySeconds = 30 * 86_400;
/** Approvals name a time this long after the last vote is taken (decisions section 6, Approval). */
const validityGraceSeconds = 3600;

/** The end of every approval of the login, Unix seconds. */
export function validUntilOf({ expiresAt }: Pick<Attempt, "expiresAt">): number {
  return expiresAt + validityGraceSeconds;
}

/** The acting member's part of a business login. */
export interface ActingApproval {
  readonly attempt: Attempt;
  readonly client: Client;
  readonly user: Address;
  readonly part: BusinessPart;
  /** The client's domain as the member was shown it; empty where it was not verified. */
  readonly requester: string;
}

/**
 * The acting member approves for a business (decisions section 2, Business login): its signature of category 4 is the
 * first vote. Only a voting member of an active business of the client's environment acts, one login at a time.
 *
 * @returns `waiting` while other members are asked; null for a login that was decided meanwhile
 * @throws {Problem} not_a_member, business_login_open, ballot_changed, signature_wrong
 */
export async function approveForBusiness(
  ctx: LoginContext,
  { attempt, client, user, part, requester }: ActingApproval,
): Promise<"approved" | "waiting" | null> {
  const { address: business, approval: signature, epoch, validUntil } = part;
  const { id: loginId, expiresAt, request } = attempt;
  const hash = businessLoginHash({
    session: loginId,
    issuer: ctx.config.baseUrl,
    clientId: client.id,
    requester,
    scope: request.scope,
    business,
    actingMember: user,
  });
  return ctx.db.transaction(async (tx) => {
    const now = ctx.clock.now();
    // Locks the business before the login, as every vote does.
    const seat = await store.holdSeat(tx, {
      business,
      member: user,
      environment: client.environment,
    });
    if (seat === null || !seat.isVoting) throw new Problem("not_a_member");
    const claimSha256 = attempt.claimSha256 ?? "";
    if (!(await store.gatherAttempt(tx, loginId, { user, claimSha256, business, now })))
      return null;
    const open = { loginId, member: user, business, requester, expiresAt, now };
    if (!(await store.insertOpenLogin(tx, open))) throw new Problem("business_login_open");
    const outcome = await ctx.businesses.ask(tx, {
      loginId,
      business,
      hash,
      clientDomainId: client.clientDomainId,
      expiresAt,
      actingMember: user,
      approval: { epoch, validUntil, signature },
    });
    if (outcome === "approved") return "approved";
    await store.beginGathering(tx, loginId, now);
    return "waiting";
  });
}

/** A question to members, as far as a login has to know. */
interface AskedBallot {
  readonly id: string;
  readonly business: Address;
  readonly voters: readonly Address[];
}

interface AboutBallot {
  readonly ballot: AskedBallot;
}

/** What follows for a login from the members' ballot, in the transaction of the deciding vote. */
export interface BusinessLoginRules {
  show(_: unknown, ids: readonly string[]): Promise<ReadonlyMap<string, object>>;
  onApproved(_: unknown, tx: Queryable, about: AboutBallot): Promise<void>;
  onEnded(
    _: unknown,
    tx: Queryable,
    ended: AboutBallot & { readonly outcome: "refused" | "expired" },
  ): Promise<void>;
  onRestarted(_: unknown, tx: Queryable, ballot: AskedBallot): Promise<void>;
  onStopped(_: unknown, tx: Queryable, about: AboutBallot): Promise<void>;
}

/** The rules by which votes on logins act. */
export function businessLoginRules(ctx: LoginContext): BusinessLoginRules {
  return {
    show: async (_, ids) => showLogins(ctx, ids),
    onApproved: async (_, tx, { ballot }) => complete(ctx, tx, ballot),
    onEnded: async (_, tx, { ballot, outcome }) =>
      fail(ctx, tx, { id: ballot.id, failure: outcome === "refused" ? "declined" : "expired" }),
    onRestarted: async (_, tx, ballot) => {
      // The other votes are collected anew; without the acting member there is nobody left to log in.
      const acting = await store.findActingMember(tx, ballot.id);
      if (acting !== null && ballot.voters.includes(acting)) return;
      await ctx.businesses.withdraw(tx, ballot.id);
      await fail(ctx, tx, { id: ballot.id, failure: "declined" });
    },
    onStopped: async (_, tx, { ballot }) => fail(ctx, tx, { id: ballot.id, failure: "declined" }),
  };
}

async function showLogins(
  ctx: LoginContext,
  ids: readonly string[],
): Promise<ReadonlyMap<string, object>> {
  const rows = await store.listOpenLogins(ctx.db, ids);
  const shown = rows.map(async (row): Promise<[string, object]> => {
    const clientName = (await ctx.clients.find(row.clientId))?.name ?? row.clientId;
    return [
      row.id,
      {
        session: row.id,
        issuer: ctx.config.baseUrl,
        clientId: row.clientId,
        clientName,
        requester: {
          name: clientName,
          ...(row.requester === "" ? {} : { domain: row.requester }),
        },
        scope: row.scope,
        actingMember: row.member,
      },
    ];
  });
  return new Map(await Promise.all(shown));
}

async function complete(ctx: LoginContext, tx: Queryable, ballot: AskedBallot): Promise<void> {
  const { id, business } = ballot;
  const now = ctx.clock.now();
  const domain = await ctx.businesses.findDomain(tx, business);
  const done = await store.completeGathering(tx, id, {
    claims: { domain, approved_at: now },
    now,
    expiresAtLeast: now + ctx.config.loginLifetimeSeconds,
  });
  ctx.recent.forget(id);
  const organizationId = done?.organizationId ?? null;
  if (organizationId === null) return;
  await ctx.businesses.noteAcquaintance(tx, { business, organizationId, now });
}

async function fail(
  ctx: LoginContext,
  tx: Queryable,
  { id, failure }: { id: string; failure: "declined" | "expired" },
): Promise<void> {
  const isEnded = await store.failGathering(tx, id, failure);
  ctx.recent.forget(id);
  if (isEnded) ctx.metrics.logins.inc({ outcome: failure });
}

/**
 * Ends the ballot of the user's open login for a business, in the caller's transaction, which then ends the login.
 *
 * @param given.withdraw ends the ballot; called before the login is locked, as in every vote
 */
export async function withdrawOpenLogin(
  tx: Queryable,
  user: Address,
  given: {
    opened: OpenWindow;
    withdraw: (loginId: string) => Promise<void>;
  },
): Promise<void> {
  const { opened, withdraw } = given;
  const loginId = await store.findOpenLogin(tx, user, opened);
  if (loginId === null) return;
  await withdraw(loginId);
  await store.deleteOpenLogin(tx, loginId);
}

/** Clocks of processes differ by less. */
const clockSlackSeconds = 300;

/** The longest time from the start of a business login to the redemption of its code. */
function untokenedSecondsMax({
  loginLifetimeSeconds,
  codeLifetimeSeconds,
}: LoginContext["config"]): number {
  return businessLoginSeconds + loginLifetimeSeconds + codeLifetimeSeconds + clockSlackSeconds;
}

/**
 * Ends all logins for a business whose roster changed, or that was suspended or moved: those who agreed to them may no
 * longer be those who decide (decisions section 2, Business login). Runs in the transaction of that change, which holds
 * the business. Each use of a token checks the seat as well.
 */
export async function endBusinessLogins(
  ctx: Pick<LoginContext, "clock" | "config">,
  tx: Queryable,
  business: Address,
): Promise<void> {
  const now = ctx.clock.now();
  await store.endLogins(tx, { business, now, since: now - untokenedSecondsMax(ctx.config) });
}

/**
 * Updates the domain in the tokens of a business, and in logins that will become tokens, to the one that is vouched for
 * now. Runs in the transaction that ended a record, which holds the business. Access tokens that were issued keep the
 * old one.
 */
export async function renewBusinessDomain(
  ctx: RenewalContext,
  tx: Queryable,
  business: Address,
): Promise<void> {
  const domain = await findOpenedDomain(ctx, tx, business);
  const since = ctx.clock.now() - untokenedSecondsMax(ctx.config);
  await store.setDomain(tx, { business, domain, since });
}

type RenewalContext = Pick<LoginContext, "clock" | "config" | "log" | "businesses">;

/** Null also if the website of another record cannot be decrypted: the ended record's domain must go all the same. */
async function findOpenedDomain(
  { businesses, log }: RenewalContext,
  tx: Queryable,
  business: Address,
): Promise<string | null> {
  try {
    return await businesses.findDomain(tx, business);
  } catch (error) {
    if (!(error instanceof SealBroken)) throw error;
    log.error({ err: error, business }, "the website of a business cannot be decrypted");
    return null;
  }
}
