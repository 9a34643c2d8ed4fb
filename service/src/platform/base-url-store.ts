import { type Queryable, sql } from "./database/db.ts";

/** Replaces the stored address. @returns the one before; null at the first start */
export async function replaceBaseUrl(db: Queryable, url: string): Promise<string | null> {
  const [row] = await db.query<{ url: string }>(sql`
    with kept as (
      insert into base_url (url) values (${url})
      on conflict (single) do update set url = excluded.url where base_url.url <> excluded.url)
    select url from base_url`);
  return row?.url ?? null;
}

/** @returns the address of the last start; null before the first */
export async function readBaseUrl(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ url: string }>(sql`select url from base_url`);
  return row?.url ?? null;
}
