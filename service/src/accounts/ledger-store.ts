import { type Queryable, sql } from "../platform/database/db.ts";
import type { Balance, Movement, Purse } from "./ledger.ts";

export const accountKinds = ["funding", "available", "held", "spent"] as const;
export type AccountKind = (typeof accountKinds)[number];

/** Creates the accounts that a purse lacks. @param ids one for each of {@link accountKinds} */
export async function ensureAccounts(
  tx: Queryable,
  purse: Purse,
  ids: readonly string[],
): Promise<void> {
  await tx.query(
    sql`insert into ledger_account (id, organization_id, environment, kind)
      select given.id, ${purse.organizationId}, ${purse.environment}, given.kind
      from unnest(${ids}::uuid[], ${accountKinds}::text[]) as given (id, kind)
      on conflict (organization_id, environment, kind) do nothing`,
  );
}

/**
 * Moves money from one account to the other. If the result is not `moved`, the caller's transaction must be rolled
 * back: `short` means that there is too little, `booked` that the account has paid for this before.
 */
export async function moveMoney(
  tx: Queryable,
  given: Movement & {
    id: string;
    purse: Purse;
    from: AccountKind;
    to: AccountKind;
    at: number;
  },
): Promise<"moved" | "short" | "booked"> {
  const { organizationId, environment } = given.purse;
  const amount = String(given.amountRappen);
  const [row] = await tx.query<{ taken: boolean; booked: boolean }>(
    sql`with taken as (
        update ledger_account set balance_rappen = balance_rappen - ${amount}::bigint
        where organization_id = ${organizationId} and environment = ${environment} and kind = ${given.from}
          and (kind = 'funding' or balance_rappen >= ${amount}::bigint)
        returning id
      ), given as (
        update ledger_account set balance_rappen = balance_rappen + ${amount}::bigint
        where organization_id = ${organizationId} and environment = ${environment} and kind = ${given.to}
          and exists (select 1 from taken)
        returning id
      ), booked as (
        insert into ledger_movement (id, from_account_id, to_account_id, amount_rappen, kind, subject, created_at)
        select ${given.id}, taken.id, given.id, ${amount}::bigint, ${given.kind}, ${given.subject}, ${given.at}
        from taken, given
        on conflict (from_account_id, kind, subject) do nothing
        returning id
      )
      select exists (select 1 from taken) as taken, exists (select 1 from booked) as booked`,
  );
  if (row?.taken !== true) return "short";
  return row.booked ? "moved" : "booked";
}

/**
 * Holds available money for one subject. `short` if there is too little, `held` if the subject has or had a hold: in
 * both cases the caller's transaction must be rolled back.
 */
export async function insertHold(
  tx: Queryable,
  given: { id: string; purse: Purse; subject: string; amountRappen: bigint; at: number },
): Promise<"moved" | "short" | "held"> {
  const { organizationId, environment } = given.purse;
  const amount = String(given.amountRappen);
  // Every statement locks the row of the available money before the others, so that statements cannot deadlock.
  const [row] = await tx.query<{ taken: boolean; booked: boolean }>(
    sql`with taken as (
        update ledger_account set balance_rappen = balance_rappen - ${amount}::bigint
        where organization_id = ${organizationId} and environment = ${environment} and kind = 'available'
          and balance_rappen >= ${amount}::bigint
        returning id
      ), given as (
        update ledger_account set balance_rappen = balance_rappen + ${amount}::bigint
        where organization_id = ${organizationId} and environment = ${environment} and kind = 'held'
          and exists (select 1 from taken)
        returning id
      ), booked as (
        insert into ledger_hold (subject, account_id, amount_rappen, created_at)
        select ${given.subject}, given.id, ${amount}::bigint, ${given.at} from given
        on conflict (subject) do nothing
        returning subject
      ), moved as (
        insert into ledger_movement (id, from_account_id, to_account_id, amount_rappen, kind, subject, created_at)
        select ${given.id}, taken.id, given.id, ${amount}::bigint, 'hold', booked.subject, ${given.at}
        from taken, given, booked
      )
      select exists (select 1 from taken) as taken, exists (select 1 from booked) as booked`,
  );
  if (row?.taken !== true) return "short";
  return row.booked ? "moved" : "held";
}

/**
 * Ends an open hold: the given amount is spent, and the rest is available again.
 *
 * @param given.ids of the two movements
 * @returns false if the purse has no such open hold, or a smaller one
 */
export async function endHold(
  tx: Queryable,
  given: {
    ids: readonly [string, string];
    purse: Purse;
    subject: string;
    capturedRappen: bigint;
    at: number;
  },
): Promise<boolean> {
  const { organizationId, environment } = given.purse;
  const captured = String(given.capturedRappen);
  const [row] = await tx.query<{ moved: boolean }>(
    sql`with ended as (
        update ledger_hold as h set captured_rappen = ${captured}::bigint, ended_at = ${given.at}
        from ledger_account as a
        where h.subject = ${given.subject} and h.ended_at is null and h.amount_rappen >= ${captured}::bigint
          and a.id = h.account_id and a.organization_id = ${organizationId} and a.environment = ${environment}
        returning h.account_id, h.amount_rappen, h.amount_rappen - ${captured}::bigint as rest
      ), freed as (
        update ledger_account as a set balance_rappen = a.balance_rappen + ended.rest
        from ended
        where a.organization_id = ${organizationId} and a.environment = ${environment} and a.kind = 'available'
        returning a.id
      ), taken as (
        update ledger_account as a set balance_rappen = a.balance_rappen - ended.amount_rappen
        from ended, freed
        where a.id = ended.account_id
        returning a.id
      ), spent as (
        update ledger_account as a set balance_rappen = a.balance_rappen + ${captured}::bigint
        from taken
        where a.organization_id = ${organizationId} and a.environment = ${environment} and a.kind = 'spent'
        returning a.id
      ), moved as (
        insert into ledger_movement (id, from_account_id, to_account_id, amount_rappen, kind, subject, created_at)
        select ${given.ids[0]}::uuid, taken.id, spent.id, ${captured}::bigint, 'capture', ${given.subject}, ${given.at}::bigint
        from taken, spent where ${captured}::bigint > 0
        union all
        select ${given.ids[1]}::uuid, taken.id, freed.id, ended.rest, 'free', ${given.subject}, ${given.at}::bigint
        from taken, freed, ended where ended.rest > 0
      )
      select exists (select 1 from spent) as moved`,
  );
  return row?.moved === true;
}

export async function readBalance(db: Queryable, purse: Purse): Promise<Balance> {
  const rows = await db.query<{ kind: AccountKind; balance: string; packages: string | null }>(
    sql`select kind, balance_rappen::text as balance,
        (select sum(amount_rappen)::text from ledger_movement
          where from_account_id = ledger_account.id and ledger_movement.kind = 'package') as packages
      from ledger_account
      where organization_id = ${purse.organizationId} and environment = ${purse.environment}`,
  );
  const of = (kind: AccountKind): bigint =>
    BigInt(rows.find((row) => row.kind === kind)?.balance ?? 0);
  return {
    availableRappen: of("available"),
    heldRappen: of("held"),
    spentRappen: of("spent"),
    packagesRappen: BigInt(rows.find((row) => row.kind === "available")?.packages ?? 0),
    paidInRappen: -of("funding"),
  };
}
