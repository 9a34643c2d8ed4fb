import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";

/** All that is stored about a user's wallets. Times are Unix seconds. */
export interface WalletReport {
  /** Also those that are over; each of them newest first. */
  readonly walletSessions: readonly { readonly createdAt: number; readonly expiresAt: number }[];
  /** Boxes that nobody took yet, or somebody within the last minute. */
  readonly mailboxes: readonly { readonly expiresAt: number }[];
  /** Devices that get push hints. */
  readonly devices: readonly { readonly createdAt: number }[];
  /** Push hints that were sent, and what they were about. */
  readonly hints: readonly { readonly subject: string; readonly createdAt: number }[];
}

/** @param limit the most entries of each list */
export async function reportWallets(
  db: Queryable,
  user: Address,
  limit: number,
): Promise<WalletReport> {
  return {
    walletSessions: await db.query(sql`
      select created_at as "createdAt", expires_at as "expiresAt" from wallet_session
      where user_address = ${user} order by created_at desc limit ${limit}`),
    mailboxes: await db.query(sql`
      select expires_at as "expiresAt" from mailbox where user_address = ${user} order by expires_at desc limit ${limit}`),
    devices: await db.query(sql`
      select created_at as "createdAt" from push_subscription
      where user_address = ${user} order by created_at desc limit ${limit}`),
    hints: await db.query(sql`
      select subject, created_at as "createdAt" from push_sent
      where member = ${user} order by created_at desc, subject limit ${limit}`),
  };
}
