import { type Queryable, sql } from "../../platform/database/db.ts";

/** A value that counts once in its kind: the `jti` of a client assertion or of a DPoP proof. */
export interface OneTimeValue {
  readonly kind: "assertion" | "dpop";
  readonly sha256: Buffer;
  /** Unix seconds after which the value could not be accepted anyway. */
  readonly expiresAt: number;
}

/** One-time values as three lists for `spend_once`, to be spent in the statement that uses them. */
export interface OneTimeColumns {
  readonly count: number;
  readonly kinds: readonly string[];
  readonly hashes: readonly Buffer[];
  readonly expiries: readonly number[];
}

export function columnsOf(values: readonly OneTimeValue[]): OneTimeColumns {
  return {
    count: values.length,
    kinds: values.map((value) => value.kind),
    hashes: values.map((value) => value.sha256),
    expiries: values.map((value) => value.expiresAt),
  };
}

/** Spends values on their own, for an endpoint that has no statement to do it in. @returns the kinds that were fresh */
export async function spendOnce(
  db: Queryable,
  values: readonly OneTimeValue[],
): Promise<readonly string[]> {
  const once = columnsOf(values);
  const [row] = await db.query<{ spent: string[] }>(
    sql`select spend_once(${once.kinds}, ${once.hashes}, ${once.expiries}) as spent`,
  );
  return row?.spent ?? [];
}

/** Forgets values that could not be accepted anyway. @returns how many went */
export async function deleteUsedOnce(
  db: Queryable,
  before: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(sql`
    delete from used_once where ctid = any(array(
      select ctid from used_once where expires_at < ${before} order by expires_at limit ${limit}
      for update skip locked))
    returning 1 as gone`);
  return rows.length;
}
