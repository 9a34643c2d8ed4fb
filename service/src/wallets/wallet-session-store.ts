import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";

export interface NewWalletSession {
  readonly tokenSha256: Buffer;
  readonly user: Address;
  readonly challengeSha256: Buffer;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/** False if the challenge has been used before. */
export async function insertWalletSession(
  db: Queryable,
  session: NewWalletSession,
): Promise<boolean> {
  const rows = await db.query(sql`
    insert into wallet_session (token_sha256, user_address, challenge_sha256, created_at, expires_at)
    values (${session.tokenSha256}, ${session.user}, ${session.challengeSha256}, ${session.createdAt}, ${session.expiresAt})
    on conflict (challenge_sha256) do nothing returning token_sha256`);
  return rows.length === 1;
}

export async function findWalletUser(
  db: Queryable,
  tokenSha256: Buffer,
  now: number,
): Promise<Address | null> {
  const [row] = await db.query<{ user_address: Address }>(sql`
    select user_address from wallet_session where token_sha256 = ${tokenSha256} and expires_at > ${now}`);
  return row?.user_address ?? null;
}

/** Ends a session. The row stays, because it records that its challenge was used. */
export async function endWalletSession(
  db: Queryable,
  tokenSha256: Buffer,
  now: number,
): Promise<void> {
  await db.query(
    sql`update wallet_session set expires_at = least(expires_at, ${now}) where token_sha256 = ${tokenSha256}`,
  );
}

export const deleteWalletSessions = purgeOf({
  table: "wallet_session",
  key: "token_sha256",
  time: "expires_at",
});

/** Ends all sessions of a user; their rows stay, as in {@link endWalletSession}. @returns how many were open */
export async function endSessionsOf(tx: Queryable, user: Address, now: number): Promise<number> {
  const rows = await tx.query(sql`
    update wallet_session set expires_at = ${now} where user_address = ${user} and expires_at > ${now}
    returning 1 as ended`);
  return rows.length;
}

/** Users whose wallets have open sessions, by address. @param page.after an address, or empty */
export async function listSessionUsers(
  db: Queryable,
  { after, limit, now }: { after: string; limit: number; now: number },
): Promise<Address[]> {
  const rows = await db.query<{ address: Address }>(sql`
    select distinct user_address as address from wallet_session where expires_at > ${now} and user_address > ${after}
    order by user_address limit ${limit}`);
  return rows.map(({ address }) => address);
}

/** The user of rows that are kept only because of their challenge; nobody has the key of this address. */
const nobody = `0x${"0".repeat(40)}`;

/**
 * Ends all sessions of a user and removes the user from their rows. These stay, as in {@link endWalletSession}.
 *
 * @returns how many there were
 */
export async function forgetSessionsOf(tx: Queryable, user: Address, now: number): Promise<number> {
  const rows = await tx.query(sql`
    update wallet_session set user_address = ${nobody}, expires_at = least(expires_at, ${now})
    where user_address = ${user} returning 1 as ended`);
  return rows.length;
}
