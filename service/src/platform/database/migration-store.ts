import { advisoryLocks } from "./advisory-locks.ts";
import { type Queryable, sql, type Statement } from "./db.ts";
import type { Migration } from "./migrate.ts";

/**
 * Waits until no other process migrates. From then on, statements of this transaction may take as long as they need,
 * but wait only 2 s for a table: less than callers wait for theirs, since they queue behind it, and longer than
 * PostgreSQL takes to end a vacuum in the way (`deadlock_timeout`, 1 s).
 */
export async function lockMigrations(tx: Queryable): Promise<void> {
  await tx.query(sql`set local statement_timeout = 0`);
  await tx.query(sql`set local lock_timeout = 0`);
  await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.migration})`);
  await tx.query(sql`set local lock_timeout = '2s'`);
}

export async function createMigrationTable(tx: Queryable): Promise<void> {
  await tx.query(sql`create table if not exists migration (
    number int primary key, name text not null, sha256 text not null, applied_at timestamptz not null default now())`);
}

export async function hasMigrationTable(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ exists: boolean }>(
    sql`select to_regclass('migration') is not null as exists`,
  );
  return row?.exists === true;
}

export interface AppliedMigration {
  readonly number: number;
  readonly sha256: string;
}

export async function listApplied(db: Queryable): Promise<AppliedMigration[]> {
  return db.query(sql`select number, sha256 from migration order by number`);
}

export async function runMigration(tx: Queryable, migration: Migration): Promise<void> {
  // Without a name and values the text is sent by the simple protocol, which accepts several statements at once.
  const script: Statement = { name: "", text: migration.text, values: [] };
  await tx.query(script);
  await tx.query(
    sql`insert into migration (number, name, sha256) values (${migration.number}, ${migration.name}, ${migration.sha256})`,
  );
}
