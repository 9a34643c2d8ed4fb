import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import { chfOfRappen } from "../platform/money.ts";
import { Problem } from "../platform/problems.ts";
import { type Environment, parseEnvironment } from "./client-domain.ts";
import { parseId } from "./id.ts";
import * as store from "./ledger-store.ts";
import { lockOrganization } from "./organization-store.ts";
import { refuse } from "./refusal.ts";

/** Whose money: an organization has a live balance and one of play money. */
export interface Purse {
  readonly organizationId: string;
  readonly environment: Environment;
}

/** What an organization has, in Rappen. */
export interface Balance {
  readonly availableRappen: bigint;
  /** Promised to open requests. */
  readonly heldRappen: bigint;
  readonly spentRappen: bigint;
}

/** One movement of money, named by what it was for: the same one again is refused. */
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

/** A million CHF: beyond it somebody mistyped. */
const topUpRappenMax = 100_000_000n;

/**
 * Adds money that was paid in.
 *
 * @param given.subject the payment; each counts once
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
    refuse("the amount is above 0 and at most 1'000'000 CHF");
  return ctx.db.transaction(async (tx) => {
    const organizationId = parseId(given.organizationId);
    if (organizationId === null || !(await lockOrganization(tx, organizationId)))
      throw new Problem("organization_not_found");
    const purse = { organizationId, environment };
    const subject = given.subject ?? uuidv7(ctx.clock, ctx.random);
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

/** Nothing but zeros where there was never any money. */
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

/** Moves money between two accounts of one purse, which are made when they are first used. */
async function move(ctx: Ctx, tx: Queryable, given: Way & Movement): Promise<void> {
  const { purse } = given;
  const ids = store.accountKinds.map(() => uuidv7(ctx.clock, ctx.random));
  await store.ensureAccounts(tx, purse, ids);
  const id = uuidv7(ctx.clock, ctx.random);
  const outcome = await store.moveMoney(tx, { ...given, id, at: ctx.clock.now() });
  if (outcome === "moved") return;
  if (outcome === "booked") throw new Problem("payment_booked");
  const { availableRappen } = await store.readBalance(tx, purse);
  throw new Problem("insufficient_credit", {
    details: {
      requiredChf: chfOfRappen(given.amountRappen),
      availableChf: chfOfRappen(availableRappen),
    },
  });
}
