import type { Address, Hex } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { BusinessStatus } from "./business.ts";

/** Jobs that follow the chain wake on it. */
export const rosterChannel = "kyb_roster";

/** Has those jobs look once this transaction commits. */
export async function wakeRoster(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_notify(${rosterChannel}, '')`);
}

/**
 * Has the chain looked at for what has become of a business, once this transaction commits: a transaction of it was
 * mined, or refused because it is not what it was here.
 */
export async function requestLook(tx: Queryable, business: Address): Promise<void> {
  await tx.query(
    sql`with marked as (update business set look_due_at = 0 where address = ${business})
      select pg_notify(${rosterChannel}, '')`,
  );
}

/** A business that this process looks at; the claim is given back by itself when it dies. */
export interface ClaimedLook {
  readonly address: Address;
  readonly claim: number;
}

/** Takes businesses that are due. @param given.until when others may take them again */
export async function claimLooks(
  db: Queryable,
  given: { now: number; until: number; limit: number },
): Promise<ClaimedLook[]> {
  return db.query<ClaimedLook>(
    sql`update business set look_due_at = ${given.until} where address in (
        select address from business where look_due_at <= ${given.now}
        order by look_due_at limit ${given.limit} for update skip locked)
      returning address, look_due_at as claim`,
  );
}

/**
 * Has everything looked at of which something is open: others may have called the contracts themselves. A look that
 * {@link requestLook} asks for goes before all of these.
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

/** The block as of which the row mirrors the chain. */
export async function findChainBlock(tx: Queryable, business: Address): Promise<number> {
  const [row] = await tx.query<{ block: number }>(
    sql`select chain_block as block from business where address = ${business}`,
  );
  return row?.block ?? 0;
}

/**
 * Stores what the chain says. The look is done, unless another was asked for meanwhile, or an event or refusal is known
 * from a later block than the node had that was read: then it stays due.
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

/** Those who are no longer on the roster. */
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

/** Up to which block events were looked for; null before the first time. */
export async function findWatchedBlock(db: Queryable): Promise<number | null> {
  const [row] = await db.query<{ block: number }>(sql`select block from business_watch`);
  return row?.block ?? null;
}

/** Has those of the addresses looked at that are businesses. Blocks up to `block` are done. */
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

/** Has every business looked at: nobody knows what the events of this block say, which counts as done. */
export async function saveUnread(tx: Queryable, block: number): Promise<void> {
  await tx.query(
    sql`update business set look_due_at = 0 where status in ('active', 'suspended', 'moved')`,
  );
  await saveWatched(tx, { addresses: [], block });
}
