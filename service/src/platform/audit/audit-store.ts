import type { AuditEntry } from "./audit.ts";
import type { ChainEnd } from "./audit-chain.ts";
import { advisoryLocks } from "../database/advisory-locks.ts";
import { columns, type Queryable, sql } from "../database/db.ts";

export interface EntryRow {
  readonly id: number;
  readonly at: number;
  readonly actor: string;
  readonly action: string;
  readonly subject: string;
  /** As jsonb prints it: one spelling per value. */
  readonly details: string;
}

/** An entry as the operator reads it. */
export interface ListedEntry extends AuditEntry {
  readonly id: number;
  readonly recordedAt: number;
}

/** The entries with an id below `before`, from the newest. */
export interface EntryPage {
  readonly before: number;
  readonly limit: number;
}

export interface Link extends ChainEnd {
  readonly entryId: number;
  readonly seal: Buffer;
}

export interface LinkedEntry extends Link {
  /** Null if it was deleted. */
  readonly entry: EntryRow | null;
}

export interface SealedEnd extends ChainEnd {
  readonly seal: Buffer | null;
}

export interface ChainState {
  readonly head: SealedEnd;
  readonly checkpoint: SealedEnd;
  /** Entries of transactions older than this have been processed (a decimal xid8). */
  readonly horizon: string;
}

/** Transactions that have ended and whose entries are not linked yet: including `from`, excluding `before`. */
export interface Window {
  readonly from: string;
  readonly before: string;
  /**
   * The first transaction id that has not been assigned yet: rows above it come from another cluster (a restored dump).
   */
  readonly foreignFrom: string;
}

export async function insertEntry(tx: Queryable, entry: AuditEntry, now: number): Promise<void> {
  await tx.query(sql`
    insert into audit_entry (at, actor, action, subject, details)
    values (${now}, ${entry.actor}, ${entry.action}, ${entry.subject}, ${JSON.stringify(entry.details ?? {})})`);
}

const listed = columns`id, at as "recordedAt", actor, action, subject, details`;

export async function listEntries(db: Queryable, page: EntryPage): Promise<ListedEntry[]> {
  return db.query<ListedEntry>(sql`
    select ${listed} from audit_entry where id < ${page.before} order by id desc limit ${page.limit}`);
}

/** Entries that have this actor or subject. */
export async function listEntriesAbout(
  db: Queryable,
  about: string,
  { before, limit }: EntryPage,
): Promise<ListedEntry[]> {
  return db.query<ListedEntry>(sql`
    (select ${listed} from audit_entry where actor = ${about} and id < ${before} order by id desc limit ${limit})
    union
    (select ${listed} from audit_entry where subject = ${about} and id < ${before} order by id desc limit ${limit})
    order by id desc limit ${limit}`);
}

/** Takes the lock of the audit chain until the transaction ends. @returns false if another process has it */
export async function tryLockChain(tx: Queryable): Promise<boolean> {
  const [row] = await tx.query<{ is_ours: boolean }>(
    sql`select pg_try_advisory_xact_lock(${advisoryLocks.auditChain}) as is_ours`,
  );
  return row?.is_ours === true;
}

/** As {@link tryLockChain}, but waits while another process has it. */
export async function lockChain(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.auditChain})`);
}

/** Sets the horizon back to 0 if it comes from another cluster, before the transaction ids of this cluster reach it. */
export async function dropForeignHorizon(db: Queryable): Promise<void> {
  await db.query(sql`
    update audit_chain set horizon = '0' where horizon > pg_snapshot_xmax(pg_current_snapshot())`);
}

/**
 * Whether a run would find something: entries of ended transactions, or a horizon of another cluster or none at all.
 */
export async function hasUnlinked(db: Queryable): Promise<boolean> {
  const [row] = await db.query<{ is_found: boolean }>(sql`
    select horizon = '0' or horizon > pg_snapshot_xmax(pg_current_snapshot()) or exists (
      select from audit_entry as entry
      where entry.tx >= horizon and entry.tx < pg_snapshot_xmin(pg_current_snapshot())
        and not exists (select from audit_link where entry_id = entry.id)) as is_found
    from audit_chain`);
  return row?.is_found === true;
}

/** Unix seconds: when the oldest entry without a link was written, even if no run can link it yet; null for none. */
export async function findOldestUnlinkedAt(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ at: number | null }>(sql`
    select (
      select min(entry.at) from audit_entry as entry
      where entry.tx >= horizon and not exists (select from audit_link where entry_id = entry.id)) as at
    from audit_chain`);
  return row?.at ?? null;
}

/** Covers every entry after a restore from another cluster, whose transaction ids mean nothing here. */
export async function readWindow(tx: Queryable, horizon: string): Promise<Window> {
  const [row] = await tx.query<{ before: string; foreign_from: string }>(sql`
    select pg_snapshot_xmin(pg_current_snapshot())::text as before,
      pg_snapshot_xmax(pg_current_snapshot())::text as foreign_from`);
  if (row === undefined) throw new Error("no snapshot");
  const isForeign = BigInt(horizon) > BigInt(row.foreign_from);
  return { from: isForeign ? "0" : horizon, before: row.before, foreignFrom: row.foreign_from };
}

/** With the transaction that wrote it (a decimal xid8). */
export interface UnlinkedRow extends EntryRow {
  readonly tx: string;
}

/**
 * Entries of the window that have no link, in the order of the transactions that wrote them, so that nothing before the
 * last one is read again; by id if transactions of another cluster may be among them. Each `offset 0` holds PostgreSQL
 * to the window: without the first one it might go through all entries by their ids, and without the others through all
 * links, because it expects many more entries than a window has.
 */
export async function listUnlinked(
  tx: Queryable,
  window: Window,
  limit: number,
): Promise<UnlinkedRow[]> {
  return tx.query<UnlinkedRow>(
    window.from === "0"
      ? sql`
        select id, at, actor, action, subject, details::text as details, tx::text as tx from (
          select * from audit_entry
          where tx >= '0' and (tx < ${window.before}::xid8 or tx >= ${window.foreignFrom}::xid8) offset 0) as entry
        where not exists (select from audit_link where entry_id = entry.id offset 0)
        order by id limit ${limit}`
      : sql`
        select id, at, actor, action, subject, details::text as details, tx::text as tx from audit_entry as entry
        where tx >= ${window.from}::xid8 and tx < ${window.before}::xid8
          and not exists (select from audit_link where entry_id = entry.id offset 0)
        order by entry.tx, id limit ${limit}`,
  );
}

export async function insertLinks(
  tx: Queryable,
  links: readonly Link[],
  now: number,
): Promise<void> {
  const positions = links.map((each) => each.position);
  const entryIds = links.map((each) => each.entryId);
  const hashes = links.map((each) => each.hash);
  const seals = links.map((each) => each.seal);
  await tx.query(sql`
    insert into audit_link (position, entry_id, hash, seal, sealed_at)
    select position, entry_id, hash, seal, ${now}
    from unnest(${positions}::bigint[], ${entryIds}::bigint[], ${hashes}::bytea[], ${seals}::bytea[])
      as made (position, entry_id, hash, seal)`);
}

export async function moveHead(
  tx: Queryable,
  head: ChainEnd & { seal: Buffer; horizon: string },
): Promise<void> {
  await tx.query(sql`
    update audit_chain set head_position = ${head.position}, head_hash = ${head.hash},
      head_seal = ${head.seal}, horizon = ${head.horizon}::xid8`);
}

export async function moveCheckpoint(
  tx: Queryable,
  checkpoint: ChainEnd & { seal: Buffer },
): Promise<void> {
  await tx.query(sql`
    update audit_chain set checkpoint_position = ${checkpoint.position},
      checkpoint_hash = ${checkpoint.hash}, checkpoint_seal = ${checkpoint.seal}`);
}

export async function getChainState(tx: Queryable): Promise<ChainState> {
  const [row] = await tx.query<{
    head_position: number;
    head_hash: Buffer;
    head_seal: Buffer | null;
    checkpoint_position: number;
    checkpoint_hash: Buffer;
    checkpoint_seal: Buffer | null;
    horizon: string;
  }>(sql`
    select head_position, head_hash, head_seal, checkpoint_position, checkpoint_hash, checkpoint_seal,
      horizon::text as horizon
    from audit_chain`);
  if (row === undefined) throw new Error("the state of the audit chain was deleted");
  return {
    head: { position: row.head_position, hash: row.head_hash, seal: row.head_seal },
    checkpoint: {
      position: row.checkpoint_position,
      hash: row.checkpoint_hash,
      seal: row.checkpoint_seal,
    },
    horizon: row.horizon,
  };
}

/** Removes the links up to this position, and their entries. */
export async function deleteLinks(tx: Queryable, upTo: number): Promise<void> {
  await tx.query(sql`
    with removed as (delete from audit_link where position <= ${upTo} returning entry_id)
    delete from audit_entry where id = any(array(select entry_id from removed))`);
}

/** Makes everything that follows in this transaction see one state of the database, and unable to change anything. */
export async function useSnapshot(tx: Queryable): Promise<void> {
  await tx.query(sql`set transaction isolation level repeatable read, read only`);
}

export async function listLinks(
  tx: Queryable,
  page: { after: number; limit: number },
): Promise<LinkedEntry[]> {
  type Row = { position: number; entry_id: number; hash: Buffer; seal: Buffer } & {
    [K in keyof EntryRow]: EntryRow[K] | null;
  };
  const rows = await tx.query<Row>(sql`
    select link.position, link.entry_id, link.hash, link.seal,
      entry.id, entry.at, entry.actor, entry.action, entry.subject, entry.details::text as details
    from audit_link as link left join audit_entry as entry on entry.id = link.entry_id
    where link.position > ${page.after} order by link.position limit ${page.limit}`);
  return rows.map(({ position, entry_id, hash, seal, ...entry }) => ({
    position,
    entryId: entry_id,
    hash,
    seal,
    entry: entry.id === null ? null : (entry as EntryRow),
  }));
}

export interface Tail {
  readonly count: number;
  readonly oldestAt: number | null;
  /** Entries without a link although their transaction has been processed. */
  readonly insertedIds: readonly number[];
}

/** The entries without a link. */
export async function describeTail(tx: Queryable, horizon: string): Promise<Tail> {
  const [row] = await tx.query<{ count: number; oldest: number | null; inserted: string[] | null }>(
    sql`
      select count(*) as count, min(at) as oldest,
        (array_agg(id order by id) filter (where tx < ${horizon}::xid8))[1:100]::text[] as inserted
      from audit_entry as entry
      where not exists (select from audit_link where entry_id = entry.id)`,
  );
  return {
    count: row?.count ?? 0,
    oldestAt: row?.oldest ?? null,
    insertedIds: (row?.inserted ?? []).map(Number),
  };
}
