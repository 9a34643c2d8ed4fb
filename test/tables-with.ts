// Where the database holds something, whatever table that is.
import type { Queryable } from "../service/src/platform/database/db.ts";

/** The tables that hold the text, or bytes that are it in hex; by name. */
export async function tablesWith(db: Queryable, text: string): Promise<string[]> {
  const query = async <Row extends object>(statement: string, values: unknown[]): Promise<Row[]> =>
    db.query<Row>({ name: "", text: statement, values });
  const tables = await query<{ name: string }>(
    `select table_name as name from information_schema.tables
      where table_schema = current_schema() and table_type = 'BASE TABLE' order by 1`,
    [],
  );
  const found = await Promise.all(
    tables.map(async ({ name }) =>
      query(`select from "${name}" as row where row::text ilike $1 limit 1`, [`%${text}%`]),
    ),
  );
  return tables.flatMap(({ name }, at) => (found[at]?.length === 0 ? [] : [name]));
}
