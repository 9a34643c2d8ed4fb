import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import { chfOfRappen } from "../platform/money.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { type Environment, parseEnvironment } from "./client-domain.ts";
import * as store from "./ledger-store.ts";
import { parsePayment } from "./organization.ts";
import { lockOrganization } from "./organizations.ts";

/** Whose money it is: each organization has a live balance, and one of play money for the sandbox. */
export interface Purse {
  readonly organizationId: string;
  readonly environment: Environment;
}

/** The money of an organization, in Rappen. */
export interface Balance {
  readonly availableRappen: bigint;
  /** Money promised to open requests. */
  readonly heldRappen: bigint;
  readonly spentRappen: bigint;
  /** The part of the money spent that went to packages. */
  readonly packagesRappen: bigint;
  /** All that was ever paid in: the sum of available, held and spent money. */
  readonly paidInRappen: bigint;
}

/** One movement of money, named by what it is for: a second movement for the same subject is refused. */
export interface Movement {
  readonly kind: string;
  readonly subject: string;
  readonly amountRappen: bigint;
}

interface Way {
  readonly purse: Purse;
  readonly from: store.AccountKind;
  readonly to: store.AccountKind;
}

/** A million CHF: a larger amount is a typing error. */
const topUpRappenMax = 100_000_000n;

/**
 * Adds money that was paid in.
 *
 * @param given.subject names the payment; each is booked once. Default: a new one each time
 * @throws {Problem} invalid_request, organization_not_found, payment_booked
 */
export async function topUp(
  ctx: Ctx,
  given: { organizationId: string; environment: string; amountRappen: bigint; subject?: string },
  actor: string,
): Promise<Balance> {
  const environment = parseEnvironment(given.environment);
  const { amountRappen } = given;
  if (amountRappen <= 0n || amountRappen > topUpRappenMax)
    throw invalidRequest("the amount is above 0 and at most 1,000,000 CHF");
  const subject =
    given.subject === undefined ? uuidv7(ctx.clock, ctx.random) : parsePayment(given.subject);
  return ctx.db.transaction(async (tx) => {
    const organizationId = await lockOrganization(tx, given.organizationId);
    const purse = { organizationId, environment };
    await move(ctx, tx, {
      purse,
      from: "funding",
      to: "available",
      kind: "top-up",
      subject,
      amountRappen,
    });
    await ctx.audit.record(tx, {
      actor,
      action: "ledger.top-up",
      subject: organizationId,
      details: { environment, amountRappen: String(amountRappen), payment: subject },
    });
    return store.readBalance(tx, purse);
  });
}

/** All zeros if there was never any money. */
export async function readBalance(ctx: Pick<Ctx, "db">, purse: Purse): Promise<Balance> {
  return store.readBalance(ctx.db, purse);
}

/**
 * Spends what is available, in the caller's transaction.
 *
 * @throws {Problem} insufficient_credit, with both amounts in CHF as details
 */
export async function spend(
  ctx: Ctx,
  tx: Queryable,
  given: { purse: Purse } & Movement,
): Promise<void> {
  await move(ctx, tx, { ...given, from: "available", to: "spent" });
}

/** Money that is held, named by what it is for: each subject has only one hold ever. */
export interface Hold {
  readonly purse: Purse;
  readonly subject: string;
  readonly amountRappen: bigint;
}

/**
 * Holds money, in the caller's transaction: {@link capture} or {@link releaseHold} ends the hold, once.
 *
 * @throws {Problem} no_credit_account if there was never any money; insufficient_credit; with both amounts in CHF
 * @throws {Problem} payment_booked if the subject has or had a hold
 */
export async function hold(ctx: Ctx, tx: Queryable, given: Hold): Promise<void> {
  const id = uuidv7(ctx.clock, ctx.random);
  const outcome = await store.insertHold(tx, { ...given, id, at: ctx.clock.now() });
  if (outcome === "moved") return;
  if (outcome === "held") throw new Problem("payment_booked");
  await refuseShort(tx, given);
}

/**
 * Spends the given amount of a hold and releases the rest, in the caller's transaction.
 *
 * @param given.amountRappen 0 to the whole hold
 * @throws when the purse has no open hold of that subject, or a smaller one: a caller ends each hold once
 */
export async function capture(ctx: Ctx, tx: Queryable, given: Hold): Promise<void> {
  const { purse, subject, amountRappen: capturedRappen } = given;
  const ids = [uuidv7(ctx.clock, ctx.random), uuidv7(ctx.clock, ctx.random)] as const;
  const end = { ids, purse, subject, capturedRappen, at: ctx.clock.now() };
  if (!(await store.endHold(tx, end))) throw new Error(`no such open hold for ${subject}`);
}

/** Releases the whole of a hold, in the caller's transaction. @throws as {@link capture} */
export async function releaseHold(
  ctx: Ctx,
  tx: Queryable,
  given: Omit<Hold, "amountRappen">,
): Promise<void> {
  await capture(ctx, tx, { ...given, amountRappen: 0n });
}

/** @throws {Problem} no_credit_account, insufficient_credit */
async function refuseShort(
  tx: Queryable,
  { purse, amountRappen }: Pick<Hold, "purse" | "amountRappen">,
): Promise<never> {
  const balance = await store.readBalance(tx, purse);
  const reason = balance.paidInRappen === 0n ? "no_credit_account" : "insufficient_credit";
  throw new Problem(reason, { details: shortage(amountRappen, balance) });
}

function shortage(requiredRappen: bigint, { availableRappen }: Balance): Record<string, number> {
  return {
    requiredChf: chfOfRappen(requiredRappen),
    availableChf: chfOfRappen(availableRappen),
  };
}

/** Moves money between two accounts of one purse, which are created when they are first used. */
async function move(ctx: Ctx, tx: Queryable, given: Way & Movement): Promise<void> {
  const { purse } = given;
  const ids = store.accountKinds.map(() => uuidv7(ctx.clock, ctx.random));
  await store.ensureAccounts(tx, purse, ids);
  const id = uuidv7(ctx.clock, ctx.random);
  const outcome = await store.moveMoney(tx, { ...given, id, at: ctx.clock.now() });
  if (outcome === "moved") return;
  if (outcome === "booked") throw new Problem("payment_booked");
  const balance = await store.readBalance(tx, purse);
  throw new Problem("insufficient_credit", { details: shortage(given.amountRappen, balance) });
}
