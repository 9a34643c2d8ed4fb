import { type Client, escapeIdentifier } from "pg";

/** Makes this connection receive what is notified on `channel`; repeating it changes nothing. */
export async function listen(client: Client, channel: string): Promise<void> {
  await client.query(`listen ${escapeIdentifier(channel)}`);
}
