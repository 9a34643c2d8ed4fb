import { type Queryable, sql } from "../../platform/database/db.ts";

/** Every web origin that some enabled client has registered a redirect URI on. */
export async function listOrigins(db: Queryable): Promise<string[]> {
  const rows = await db.query<{ origin: string }>(sql`
    select distinct substring(uri from '^https?://[^/?#]+') as origin
    from oauth_client, unnest(redirect_uris) as uri
    where disabled_at is null and uri ~ '^https?://'`);
  return rows.map((row) => row.origin);
}
