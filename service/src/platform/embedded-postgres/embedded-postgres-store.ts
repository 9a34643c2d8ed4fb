import type { Client } from "pg";

/** Whether somebody else is connected to the server. */
export async function hasOtherSessions(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    "select from pg_stat_activity where backend_type = 'client backend' and pid <> pg_backend_pid() limit 1",
  );
  return rows.length > 0;
}
