import type { Address, Hex } from "@svc/protocol";
import { type Db, type Queryable, sql } from "../../platform/database/db.ts";
import { waitForRow } from "../../platform/database/held-row-store.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { BusinessStatus } from "./business.ts";

/** The channel that wakes the jobs that follow the chain. */
export const rosterChannel = "kyb_roster";

/** Wakes these jobs once this transaction commits. */
export async function wakeRoster(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_notify(${rosterChannel}, '')`);
}

/**
 * Has a business read from the chain once this transaction commits, because one of its transactions was mined, or was
 * reverted because the tables are outdated.
 */
export async function requestLook(tx: Queryable, business: Address): Promise<void> {
  await tx.query(
    sql`with marked as (update business set look_due_at = 0 where address = ${business})
      select pg_notify(${rosterChannel}, '')`,
  );
}

/** A business that this process reads from the chain; if the process dies, the claim expires. */
export interface ClaimedLook {
  readonly address: Address;
  readonly claim: number;
}

/** Claims businesses that are due and not locked. @param given.until when others may claim them again */
export async function claimLooks(
  db: Queryable,
  given: { now: number; until: number; limit: number },
): Promise<ClaimedLook[]> {
  return db.query<ClaimedLook>(
    sql`update business set look_due_at = ${given.until} where address = any(array(
        select address from business where look_due_at <= ${given.now}
        order by look_due_at limit ${given.limit} for no key update skip locked))
      returning address, look_due_at as claim`,
  );
}

/** Ends a claim whose business could not be read: it is due at `until`, or at once if that was requested meanwhile. */
export async function putOffLook(
  db: Queryable,
  { address, claim }: ClaimedLook,
  until: number,
): Promise<void> {
  await db.query(
    sql`update business set look_due_at = ${until} where address = ${address} and look_due_at = ${claim}`,
  );
}

/** Whether a business that is not one of `except` is due, locked or not. */
export async function isLookDue(
  db: Queryable,
  { now, except }: { now: number; except: readonly Address[] },
): Promise<boolean> {
  // Without `order by`, PostgreSQL expects a third of all businesses to be due, and scans the table.
  const [due] = await db.query(
    sql`select from business where look_due_at <= ${now} and address <> all(${[...except]}::text[])
      order by look_due_at limit 1`,
  );
  return due !== undefined;
}

/**
 * Waits for the lock on the business that has been due for longest; see {@link waitForRow}.
 *
 * @returns whether {@link claimLooks} can take it
 */
export async function waitForLook(
  db: Db,
  { now, except }: { now: number; except: readonly Address[] },
): Promise<boolean> {
  if (!(await isLookDue(db, { now, except }))) return false;
  return waitForRow(
    db,
    sql`select from business where look_due_at <= ${now} and address <> all(${[...except]}::text[])
      order by look_due_at limit 1 for no key update`,
  );
}

/**
 * Makes businesses due that have anything open, since others may have called their contracts directly. Those of
 * {@link requestLook} come first.
 */
export async function requestOpenLooks(db: Queryable, now: number): Promise<void> {
  await db.query(
    sql`update business set look_due_at = ${now}
      where look_due_at is null and status in ('active', 'suspended', 'moved') and address in (
        select business from business_removal
        union select business from ballot where status = 'open'
        union select business from business_proposal where status in ('open', 'relaying'))`,
  );
}

/** The block up to which the row mirrors the chain. */
export async function findChainBlock(tx: Queryable, business: Address): Promise<number> {
  const [row] = await tx.query<{ block: number }>(
    sql`select chain_block as block from business where address = ${business}`,
  );
  return row?.block ?? 0;
}

/**
 * Stores the state of a wallet. The business stays due if it was requested again meanwhile, or if events were read or a
 * transaction was reverted in a later block than the node had.
 */
export async function saveMirror(
  tx: Queryable,
  mirror: {
    address: Address;
    charter: Hex;
    epoch: number;
    nonce: number;
    successor: Address | null;
    status: BusinessStatus;
    block: number;
    claim: number;
  },
): Promise<void> {
  await tx.query(
    sql`update business set charter = ${bufferOfHex(mirror.charter)}, epoch = ${mirror.epoch}, nonce = ${mirror.nonce},
        successor = ${mirror.successor}, status = ${mirror.status}, chain_block = ${mirror.block},
        look_due_at = case when look_due_at = ${mirror.claim}
          and not exists (select from business_watch where block > ${mirror.block})
          and not exists (select from business_proposal where business = ${mirror.address} and status = 'relaying'
            and refused_block > ${mirror.block}) then null else look_due_at end
      where address = ${mirror.address}`,
  );
}

/** Deletes members who are no longer on the roster. */
export async function deleteMembers(
  tx: Queryable,
  business: Address,
  members: readonly Address[],
): Promise<void> {
  await tx.query(
    sql`delete from business_member where business = ${business} and member = any(${[...members]}::text[])`,
  );
}

export async function setVotingRights(
  tx: Queryable,
  business: Address,
  voters: readonly Address[],
): Promise<void> {
  await tx.query(
    sql`update business_member set is_voting = (member = any(${[...voters]}::text[])) where business = ${business}`,
  );
}

/** The block up to which events were read; null before the first time. */
export async function findWatchedBlock(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ block: number }>(sql`select block from business_watch`);
  return row?.block ?? null;
}

/** Makes those of the addresses due that are businesses, and marks the blocks up to `block` as done. */
export async function saveWatched(
  db: Queryable,
  watched: { addresses: readonly string[]; block: number },
): Promise<void> {
  await db.query(
    sql`with marked as (
        update business set look_due_at = 0
        where address = any(${[...watched.addresses]}::text[]) and status in ('active', 'suspended', 'moved')
        returning 1 as found),
      noted as (
        insert into business_watch (block) values (${watched.block})
        on conflict (single) do update set block = greatest(business_watch.block, excluded.block))
      select pg_notify(${rosterChannel}, '') from (select 1 from marked limit 1) as any_marked`,
  );
}

/** Makes every business due, because the events of this block cannot be read; marks the block as done. */
export async function saveUnread(tx: Queryable, block: number): Promise<void> {
  await tx.query(
    sql`update business set look_due_at = 0 where status in ('active', 'suspended', 'moved')`,
  );
  await saveWatched(tx, { addresses: [], block });
}

/**
 * Makes every business due, and marks blocks after this one as not done. The block as of which a business was read
 * stays: otherwise a node that has just begun to sync could set a roster back.
 */
export async function returnTo(tx: Queryable, block: number): Promise<void> {
  await tx.query(sql`update business_watch set block = ${block} where block > ${block}`);
  await saveUnread(tx, block);
}
