import { type Queryable, sql } from "./db.ts";

/** @param settings each as `name=value` */
export async function findEncodingAndMissing(
  db: Queryable,
  settings: readonly string[],
): Promise<{ encoding: string; missing: string[] } | undefined> {
  const [row] = await db.query<{ encoding: string; missing: string[] }>(sql`
    select current_setting('server_encoding') as encoding, array(
      select setting from unnest(${settings}::text[]) as setting
      where current_setting(split_part(setting, '=', 1), true) is distinct from split_part(setting, '=', 2)) as missing`);
  return row;
}
