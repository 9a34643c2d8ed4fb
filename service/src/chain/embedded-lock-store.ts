import type { Client } from "pg";

/** Held by the process that runs the embedded chain's node, for as long as the connection lives. */
export async function tryLock(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ locked: boolean }>(
    "select pg_try_advisory_lock(hashtext('embedded-chain')) as locked",
  );
  return rows[0]?.locked === true;
}
