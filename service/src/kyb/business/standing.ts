// The operator's decisions on a business: verified, suspended, moved. The command line only changes the database, from
// when on new requests are refused; a running service then ends open ones.
import { type Address, parseAddress } from "@svc/protocol";
import { parseEnvironment } from "../../accounts/index.ts";
import { isVouchedFor } from "../../credentials/index.ts";
import type { Ctx } from "../../platform/context.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { endBallot, lockOpenBallots } from "../ballot/ballot-store.ts";
import { type Business, type BusinessStatus, businessStatuses, mayGoOnIn } from "./business.ts";
import { findBusiness, holdBusiness, lockBusiness } from "./business-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { listMembers } from "./members.ts";
import { deleteRemoval, listRemovals } from "./removal-store.ts";
import * as store from "./standing-store.ts";
import { announceWalletChanged } from "./wallet-moves.ts";

/** How long members have to object to a move by the operator. */
const moveNoticeSeconds = 30 * 86_400;
const pageMax = 100;

type StandingContext = Pick<Ctx, "db" | "clock" | "audit">;

/** At most 100 businesses by address, after the cursor. @throws {Problem} invalid_request */
export async function listBusinesses(
  ctx: Pick<Ctx, "db">,
  of: {
    status?: string | undefined;
    environment?: string | undefined;
    cursor?: string | undefined;
  } = {},
): Promise<{ items: store.ListedBusiness[]; nextCursor?: string }> {
  const { status = null, environment, cursor } = of;
  const after = cursor === undefined ? "" : parseAddress(cursor);
  if (after === null) throw invalidRequest("a page begins after the address of a business");
  if (status !== null && !businessStatuses.some((each) => each === status))
    throw invalidRequest(`a status is one of ${businessStatuses.join(", ")}`);
  const rows = await store.listBusinesses(ctx.db, {
    status,
    environment: environment === undefined ? null : parseEnvironment(environment),
    after,
    limit: pageMax + 1,
  });
  const items = rows.slice(0, pageMax);
  const last = items.at(-1)?.address;
  return { items, ...(rows.length > pageMax && last !== undefined ? { nextCursor: last } : {}) };
}

/** Everything about a business, including the names of its members. @throws {Problem} business_not_found */
export async function showBusiness(
  ctx: Pick<Ctx, "db" | "seal">,
  text: string,
): Promise<Record<string, unknown>> {
  const business = await getBusiness(ctx.db, text);
  const { address, charter, ...shown } = business;
  const [operatorWord, members, removals, moves] = await Promise.all([
    store.findOperatorWord(ctx.db, address),
    listMembers(ctx, ctx.db, address),
    listRemovals(ctx.db, [address]),
    store.listMoves(ctx.db, [address]),
  ]);
  const [removal = null] = removals;
  const [move = null] = moves;
  return { address, ...shown, operatorWord, rules: charter.rules, members, removal, move };
}

/**
 * Declares a business verified or not verified; in the latter case it gets no requests, and open ones end. The
 * declaration overrides the records of issuers until the operator withdraws it.
 *
 * @param given.isVerified null to withdraw the declaration
 * @throws {Problem} business_not_found
 */
export async function setBusinessVerified(
  ctx: StandingContext,
  given: { address: string; isVerified: boolean | null },
  actor: string,
): Promise<Business> {
  return change(ctx, given.address, async (tx, { address, environment }) => {
    const now = ctx.clock.now();
    const word = given.isVerified;
    const isVerified = word ?? (await isVouchedFor(tx, { business: address, environment, now }));
    const isNewWord = await store.setOperatorWord(tx, address, word);
    const isChanged = await store.setVerified(tx, address, isVerified ? now : null);
    if (!isNewWord && !isChanged) return;
    if (isChanged && !isVerified) await store.requestStop(tx, address);
    const action = isVerified ? "business.verify" : "business.unverify";
    await ctx.audit.record(tx, { actor, action, subject: address, details: { word } });
  });
}

/**
 * Suspends a business: it gets no requests, and its logins and open requests end. Its signatures stay valid.
 *
 * @throws {Problem} business_not_found if there is none, or it is not active
 */
export async function suspendBusiness(
  ctx: StandingContext,
  text: string,
  actor: string,
): Promise<Business> {
  return change(ctx, text, async (tx, { address, status }) => {
    if (status === "suspended") return;
    const step = { from: "active", to: "suspended" } as const;
    if (!(await store.setStatus(tx, address, step))) throw notOne("active", status);
    await store.requestStop(tx, address);
    await ctx.audit.record(tx, { actor, action: "business.suspend", subject: address });
  });
}

/**
 * Ends a suspension; requests that it ended stay ended.
 *
 * @throws {Problem} business_not_found if there is none, or it is not suspended
 */
export async function reinstateBusiness(
  ctx: StandingContext,
  text: string,
  actor: string,
): Promise<Business> {
  return change(ctx, text, async (tx, { address, status }) => {
    if (status === "active") return;
    const step = { from: "suspended", to: "active" } as const;
    if (!(await store.setStatus(tx, address, step))) throw notOne("suspended", status);
    await ctx.audit.record(tx, { actor, action: "business.reinstate", subject: address });
  });
}

/**
 * Announces that a business continues in another wallet, for a business whose members cannot decide that any more.
 * During the notice of 30 days any member can cancel the move by a signature (decisions section 6, Wallet move).
 * Announcing the same move again returns the first one.
 *
 * @throws {Problem} business_not_found, invalid_request, too_many
 */
export async function announceMove(
  ctx: StandingContext,
  given: { address: string; successor: string },
  actor: string,
): Promise<store.Move> {
  return ctx.db.transaction(async (tx) => {
    const business = await getBusiness(tx, given.address, lockBusiness);
    const { address, nonce, status } = business;
    if (status !== "active" && status !== "suspended") throw notOne("active", status);
    const next = await getBusiness(tx, given.successor);
    if (!mayGoOnIn(next, business))
      throw invalidRequest("the successor is another active business of the same environment");
    const [announced] = await store.listMoves(tx, [address]);
    if (announced?.successor === next.address) return announced;
    const endsAt = ctx.clock.now() + moveNoticeSeconds;
    const move = { business: address, successor: next.address, endsAt, keepNonce: nonce };
    if (!(await store.insertMove(tx, move, ctx.clock.now())))
      throw new Problem("too_many", {
        message: "another move of this business is announced already; take it back first",
      });
    const details = { successor: next.address, endsAt };
    await ctx.audit.record(tx, { actor, action: "business.move", subject: address, details });
    return move;
  });
}

/** Cancels an announced move. @throws {Problem} business_not_found, nothing_to_end */
export async function withdrawMove(
  ctx: StandingContext,
  text: string,
  actor: string,
): Promise<Business> {
  return change(ctx, text, async (tx, { address }) => {
    if (!(await store.cancelMove(tx, address)))
      throw new Problem("nothing_to_end", { message: "no move of this business is announced" });
    await ctx.audit.record(tx, { actor, action: "business.move.cancel", subject: address });
  });
}

/** Ends requests to, and logins of, businesses that were suspended or lost their verification. */
export async function stopBusinesses(ctx: KybContext): Promise<void> {
  while (await store.hasStop(ctx.db)) {
    const isStopped = await ctx.db.transaction(async (tx) => {
      const stop = await store.takeStop(tx);
      if (stop !== null) await stopBusiness(ctx, tx, stop);
      return stop !== null;
    });
    // Requests lock a business for a moment, and nothing wakes this job when they end.
    if (!isStopped && !(await store.waitForStop(ctx.db))) return;
  }
}

/**
 * Carries out the moves whose notice is over. While the successor is suspended, a move waits; one that has become
 * impossible is cancelled.
 */
export async function finishMoves(ctx: KybContext): Promise<void> {
  for (const address of await store.listDueMoves(ctx.db, ctx.clock.now()))
    await ctx.db.transaction(async (tx) => finishMove(ctx, tx, address));
}

async function finishMove(ctx: KybContext, tx: Queryable, address: Address): Promise<void> {
  const business = await lockBusiness(tx, address);
  const [move] = await store.listMoves(tx, [address]);
  // A member may have cancelled it meanwhile.
  if (business === null || move === undefined) return;
  const { successor } = move;
  // With a lock: of two businesses that move to each other at the same time, the second then sees that the first has
  // moved.
  const next = await holdBusiness(tx, successor);
  if (next?.status === "suspended") return;
  const hasLeft = business.status === "moved";
  await store.cancelMove(tx, address);
  if (hasLeft || next?.status !== "active") {
    const details = { successor, reason: hasLeft ? "business_moved" : "successor_moved" };
    const action = "business.move.cancel";
    await ctx.audit.record(tx, { actor: "system", action, subject: address, details });
    return;
  }
  await store.setMoved(tx, address, successor);
  await deleteRemoval(tx, address);
  await stopBusiness(ctx, tx, { business: address, reason: "business_wallet_rotated" });
  const entry = { actor: "system", action: "business.moved", subject: address };
  await ctx.audit.record(tx, { ...entry, details: { successor } });
}

/** Ends open ballots of a business, with their requests, and its logins. The caller has locked the business. */
export async function stopBusiness(
  ctx: KybContext,
  tx: Queryable,
  { business, reason }: { business: Address; reason: store.StopReason },
): Promise<void> {
  const now = ctx.clock.now();
  for (const ballot of await lockOpenBallots(tx, business)) {
    // Votes on governance go on: members may decide about a business that is not verified, and about a suspended one
    // once that has ended.
    if (ballot.kind === "governance" && reason === "business_not_verified") continue;
    await endBallot(tx, { id: ballot.id, status: "cancelled", now });
    const stopped = { ballot: { ...ballot, status: "cancelled" as const }, reason };
    await ctx.ballotKinds[ballot.kind].onStopped?.(ctx, tx, stopped);
  }
  await ctx.endBusinessLogins(tx, business);
  if (reason === "business_wallet_rotated") await announceWalletChanged(ctx, tx, business);
}

/** The refusal for the operator says the status, unlike those for everybody else. */
function notOne(wanted: BusinessStatus, status: BusinessStatus): Problem {
  const message = `business_not_found: this one is ${status}, not ${wanted}`;
  return new Problem("business_not_found", { message });
}

async function change(
  ctx: Pick<Ctx, "db">,
  text: string,
  work: (tx: Queryable, business: Business) => Promise<void>,
): Promise<Business> {
  return ctx.db.transaction(async (tx) => {
    const business = await getBusiness(tx, text, lockBusiness);
    await work(tx, business);
    return getBusiness(tx, business.address);
  });
}

/** The business with this address, which `find` reads or locks. @throws {Problem} business_not_found */
export async function getBusiness(
  db: Queryable,
  text: string,
  find: typeof findBusiness = findBusiness,
): Promise<Business> {
  const address = parseAddress(text);
  const business = address === null ? null : await find(db, address);
  if (business === null) throw new Problem("business_not_found");
  return business;
}
