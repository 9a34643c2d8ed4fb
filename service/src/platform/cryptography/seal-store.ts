import { escapeIdentifier } from "pg";
import type { Queryable, Statement } from "../database/db.ts";
import type { SealedColumn } from "./seal.ts";

/** Names of tables and columns cannot be parameters; these are constants of the code, never input. */
function statement(text: string, values: readonly unknown[]): Statement {
  return { name: "", text, values };
}

export interface SealedRow {
  readonly id: string;
  readonly sealed: Buffer;
}

export async function listSealed(
  db: Queryable,
  { table, idColumn, column }: SealedColumn,
  page: { after: string | null; limit: number },
): Promise<SealedRow[]> {
  const id = escapeIdentifier(idColumn);
  const value = escapeIdentifier(column);
  const after = page.after === null ? "" : `and ${id} > $2`;
  const text = `select ${id}::text as id, ${value} as sealed from ${escapeIdentifier(table)}
    where ${value} is not null ${after} order by ${escapeIdentifier(table)}.${id} limit $1`;
  return db.query<SealedRow>(
    statement(text, page.after === null ? [page.limit] : [page.limit, page.after]),
  );
}

/** Replaces a sealed value unless it has changed meanwhile: the change sealed it with the newest key already. */
export async function replaceSealed(
  db: Queryable,
  { table, idColumn, column }: SealedColumn,
  row: { id: string; old: Buffer; fresh: Buffer },
): Promise<void> {
  const id = escapeIdentifier(idColumn);
  const value = escapeIdentifier(column);
  const text = `update ${escapeIdentifier(table)} set ${value} = $1 where ${id} = $2 and ${value} = $3`;
  await db.query(statement(text, [row.fresh, row.id, row.old]));
}
