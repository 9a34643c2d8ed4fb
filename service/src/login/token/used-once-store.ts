import { type Queryable, sql } from "../../platform/database/db.ts";
import { purgeOf } from "../../platform/database/purge-store.ts";

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

/** Forgets values that could not be accepted anyway. */
export const deleteUsedOnce = purgeOf({ table: "used_once", key: "ctid", time: "expires_at" });
