import { type Queryable, sql } from "../platform/db.ts";
import type { Balance, Movement, Purse } from "./ledger.ts";

export const accountKinds = ["funding", "available", "held", "spent"] as const;
export type AccountKind = (typeof accountKinds)[number];

/** Makes the accounts of a purse that are missing. @param ids one for each of {@link accountKinds} */
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
 * Takes from one account what it gives to the other. Where it is not `moved`, the caller's transaction must be rolled
 * back: `short` where there is too little, `booked` where the account gave for this before.
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

export async function readBalance(db: Queryable, purse: Purse): Promise<Balance> {
  const rows = await db.query<{ kind: AccountKind; balance: string }>(
    sql`select kind, balance_rappen::text as balance from ledger_account
      where organization_id = ${purse.organizationId} and environment = ${purse.environment}`,
  );
  const of = (kind: AccountKind): bigint =>
    BigInt(rows.find((row) => row.kind === kind)?.balance ?? 0);
  return {
    availableRappen: of("available"),
    heldRappen: of("held"),
    spentRappen: of("spent"),
  };
}
