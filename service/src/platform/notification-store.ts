import pg from "pg";

/** Makes this connection receive what is notified on `channel`; repeating it changes nothing. */
export async function listen(client: pg.Client, channel: string): Promise<void> {
  await client.query(`listen ${pg.escapeIdentifier(channel)}`);
}
