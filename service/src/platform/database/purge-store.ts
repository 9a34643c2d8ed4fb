import { escapeIdentifier } from "pg";
import { nameOfText, type Queryable } from "./db.ts";

/** How a table tells which of its rows are the oldest. */
interface AgingTable {
  /** Names of tables and columns cannot be parameters; these are constants of the code, never input. */
  readonly table: string;
  readonly key: string;
  readonly time: string;
  /** Rows of the very moment go too. */
  readonly isInclusive?: true;
}

/**
 * Makes the purge of a table, for `purgeInBatches`: it deletes rows whose time is before a moment, oldest first, at
 * most `limit` of them, and returns how many. Rows that somebody holds are left for the next time.
 */
export function purgeOf({
  table,
  key,
  time,
  isInclusive,
}: AgingTable): (db: Queryable, before: number, limit: number) => Promise<number> {
  const [rows, id, at] = [escapeIdentifier(table), escapeIdentifier(key), escapeIdentifier(time)];
  const isOld = isInclusive === true ? "<=" : "<";
  const text = `delete from ${rows} where ${id} = any(array(
      select ${id} from ${rows} where ${at} ${isOld} $1 order by ${at} limit $2 for update skip locked))
    returning 1 as gone`;
  const name = nameOfText(text);
  return async (db, before, limit) =>
    (await db.query({ name, text, values: [before, limit] })).length;
}
