import type { Address } from "@svc/protocol";
import { lockSeeds } from "../platform/database/advisory-locks.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { purgeOf } from "../platform/database/purge-store.ts";

export interface NewBox {
  readonly idSha256: Buffer;
  readonly user: Address;
  readonly box: string;
  readonly createdAt: number;
  readonly expiresAt: number;
}

/**
 * Inserts a box, unless the user has `most` already that nobody took: false then. Takes a lock, so that boxes of one
 * user are counted and made one after the other.
 */
export async function insertBox(
  tx: Queryable,
  { idSha256, user, box, createdAt, expiresAt }: NewBox,
  most: number,
): Promise<boolean> {
  await tx.query(
    sql`select pg_advisory_xact_lock(hashtextextended(${user}, ${lockSeeds.boxesOfUser}))`,
  );
  const rows = await tx.query(sql`
    insert into mailbox (id_sha256, user_address, box, expires_at)
    select ${idSha256}, ${user}, ${box}, ${expiresAt}
    where (select count(*) from mailbox
      where user_address = ${user} and expires_at > ${createdAt} and reader_sha256 is null) < ${most}
    returning id_sha256`);
  return rows.length === 1;
}

/** Reads and removes in one statement, so that only one of two simultaneous readers gets the box. */
export async function takeBox(
  db: Queryable,
  idSha256: Buffer,
  now: number,
): Promise<string | null> {
  const [row] = await db.query<{ box: string }>(sql`
    delete from mailbox where id_sha256 = ${idSha256} and expires_at > ${now} returning box`);
  return row?.box ?? null;
}

/**
 * Gives the box to its first reader, and again to the same one for `againSeconds`, but not beyond the box's own time.
 * From then on it is stored under `readerSha256`, where nobody else finds it, nor a process of an older version, which
 * knows of no readers.
 */
export async function takeBoxAgain(
  db: Queryable,
  { idSha256, readerSha256 }: { idSha256: Buffer; readerSha256: Buffer },
  { now, againSeconds }: { now: number; againSeconds: number },
): Promise<string | null> {
  const [row] = await db.query<{ box: string }>(sql`
    update mailbox set id_sha256 = ${readerSha256}, reader_sha256 = ${readerSha256},
      expires_at = case when reader_sha256 is null then least(expires_at, ${now + againSeconds}) else expires_at end
    where id_sha256 in (${idSha256}, ${readerSha256}) and expires_at > ${now}
    returning box`);
  return row?.box ?? null;
}

export const deleteBoxes = purgeOf({
  table: "mailbox",
  key: "id_sha256",
  time: "expires_at",
  isInclusive: true,
});

/** @returns how many went */
export async function deleteBoxesOf(tx: Queryable, user: Address): Promise<number> {
  const rows = await tx.query(
    sql`delete from mailbox where user_address = ${user} returning 1 as gone`,
  );
  return rows.length;
}
