import type { Address, Hex, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import type { Spending } from "./spending-cap.ts";
import type { Fees, SentTransaction } from "./transaction.ts";

export async function addSigner(db: Queryable, address: Address): Promise<void> {
  await db.query(
    sql`insert into chain_signer (address) values (${address}) on conflict (address) do nothing`,
  );
}

/** Whether the account ever signed a transaction of this installation. */
export async function hasSigned(db: Queryable, address: Address): Promise<boolean> {
  const rows = await db.query(
    sql`select from chain_signer where address = ${address} and next_nonce > 0`,
  );
  return rows.length === 1;
}

/** A call of a contract that has to be mined once. */
export interface NewTransaction {
  /** What it does. Also selects the handler that is called when it is final. */
  readonly kind: string;
  /** The id of what it is for. There is at most one transaction of a kind for a subject. */
  readonly subjectId: string;
  readonly to: Address;
  readonly data: Hex;
}

/** Returns the id; null if there is a transaction of this kind and subject with another target or other data. */
export async function insertTransaction(
  db: Queryable,
  given: NewTransaction,
  now: number,
): Promise<string | null> {
  const [row] = await db.query<{ id: string; isSame: boolean | null }>(sql`
    with kept as (
      insert into chain_transaction as t (kind, subject_id, to_address, data, created_at, due_at)
      values (${given.kind}, ${given.subjectId}, ${given.to}, ${bufferOfHex(given.data)}, ${now}, ${now})
      on conflict (kind, subject_id) do update set kind = excluded.kind
      returning t.id::text, t.to_address = ${given.to} and coalesce(t.data = ${bufferOfHex(given.data)}, true) as "isSame")
    select id, "isSame", pg_notify('chain_outbox', '') from kept`);
  return row?.isSame === true ? row.id : null;
}

/** The status of the transaction of a subject; null if there is none. */
export async function findStatus(
  db: Queryable,
  kind: string,
  subjectId: string,
): Promise<string | null> {
  const [row] = await db.query<{ status: string }>(
    sql`select status from chain_transaction where kind = ${kind} and subject_id = ${subjectId}`,
  );
  return row?.status ?? null;
}

/** Whether there is anything to do: one cheap query of two partial indexes. */
export async function readBacklog(
  db: Queryable,
  now: number,
): Promise<{ hasDue: boolean; hasSent: boolean }> {
  const [row] = await db.query<{ hasDue: boolean; hasSent: boolean }>(sql`
    select exists (select from chain_transaction where status = 'queued' and due_at <= ${now}) as "hasDue",
      exists (select from chain_transaction where status = 'sent') as "hasSent"`);
  return row ?? { hasDue: false, hasSent: false };
}

/** A time further in the future was written by a process with a wrong clock, and is ignored. */
const aheadMsMax = 10_000;

/** True for the one process that may observe sent transactions in this interval. */
export async function claimObservation(
  db: Queryable,
  signer: Address,
  { nowMs, intervalMs }: { nowMs: number; intervalMs: number },
): Promise<boolean> {
  const rows = await db.query(sql`
    update chain_signer set observed_at_ms = ${Math.floor(nowMs)}
    where address = ${signer} and (observed_at_ms <= ${Math.floor(nowMs - intervalMs)}
      or observed_at_ms > ${Math.floor(nowMs + aheadMsMax)}) returning address`);
  return rows.length > 0;
}

export interface DueTransaction {
  readonly id: string;
  readonly kind: string;
  readonly to: Address;
  readonly data: Hex;
  readonly refusals: number;
}

/**
 * Due transactions in rounds over the kinds, oldest first, so that a long queue of one kind does not delay the others.
 * Kinds that share a turn stay in the order in which they were queued. Each kind is read by the index on status and
 * kind from its beginning, and only as far as the limit.
 */
export async function listDue(
  db: Queryable,
  given: {
    now: number;
    limit: number;
    only: string | null;
    /** Kinds that are one turn together. */
    sharing: readonly string[];
  },
): Promise<DueTransaction[]> {
  const { now, limit, only, sharing } = given;
  return db.query<DueTransaction>(sql`
    with recursive waiting_kind as (
      (select kind from chain_transaction where status = 'queued' order by kind limit 1)
      union all
      select (select t.kind from chain_transaction t where t.status = 'queued' and t.kind > w.kind order by t.kind limit 1)
      from waiting_kind w where w.kind is not null),
    oldest as (
      select due.id, case when w.kind = any(${sharing}::text[]) then '' else w.kind end as turn
      from waiting_kind w cross join lateral (
        select id from chain_transaction t where t.status = 'queued' and t.kind = w.kind and t.due_at <= ${now}
        order by t.due_at, t.id limit ${limit}) as due
      where ${only}::text is null or w.kind = ${only}),
    chosen as (
      select id, row_number() over (partition by turn order by id) as place from oldest order by place, id limit ${limit})
    select t.id::text, t.kind, t.to_address as "to", '0x' || encode(t.data, 'hex') as data, t.refusals
    from chosen cross join lateral (
      select * from chain_transaction where id = chosen.id offset 0) as t
    order by chosen.place, chosen.id`);
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const queued = "queued";

/** Deletes a transaction if it was never signed; a signed one may be mined at any time, so it stays. */
export async function withdrawUnsigned(
  tx: Queryable,
  { kind, subjectId }: Pick<NewTransaction, "kind" | "subjectId">,
): Promise<void> {
  await tx.query(sql`
    delete from chain_transaction
    where kind = ${kind} and subject_id = ${subjectId} and status = ${queued} and signed_at is null`);
}

/** Postpones transactions that cannot be sent now, without counting a refusal. */
export async function putOff(db: Queryable, ids: readonly string[], until: number): Promise<void> {
  await db.query(sql`
    update chain_transaction set due_at = ${until}
    where id = any(${ids}::bigint[]) and status = ${queued}`);
}

/**
 * Postpones a transaction that would revert, and counts the refusal. Several processes that see it at the same time
 * count it once.
 *
 * @returns false if another process has counted it, or the transaction is not queued any more, since one that was mined
 * meanwhile would revert too
 */
export async function putOffRefused(
  db: Queryable,
  { id, refusals }: Pick<DueTransaction, "id" | "refusals">,
  until: number,
): Promise<boolean> {
  const rows = await db.query(sql`
    update chain_transaction set due_at = ${until}, refusals = refusals + 1
    where id = ${id} and status = ${queued} and refusals = ${refusals} returning id`);
  return rows.length === 1;
}

export interface LockedSigner {
  readonly nextNonce: number;
  readonly spent: Spending;
}

/** Locks the signer until the transaction ends; null while another process has it locked to give out nonces. */
export async function lockSigner(tx: Queryable, address: Address): Promise<LockedSigner | null> {
  const [row] = await tx.query<{ nextNonce: number; day: number; wei: string; unpaid: string }>(sql`
    select next_nonce as "nextNonce", spend_day as day, spent_wei::text as wei, spent_unpaid_wei::text as unpaid from chain_signer
    where address = ${address} for update skip locked`);
  if (row === undefined) return null;
  const spent = { day: row.day, wei: BigInt(row.wei), unpaidWei: BigInt(row.unpaid) };
  return { nextNonce: row.nextNonce, spent };
}

/**
 * Reads the nonces of a signer that the caller has locked, and locks those transactions that are still due: while the
 * operator's account is being changed, a process with the other account takes the same transactions under another
 * signer. The `offset 0` makes PostgreSQL look up each nonce by itself: a join would read all that the signer ever
 * sent.
 *
 * @returns `holes`: nonces that were given out, that no transaction has any more and that the chain has not used
 */
export async function readNonces(
  tx: Queryable,
  signer: Address,
  given: { ids: readonly string[]; chainCount: number; nextNonce: number },
): Promise<{ stillDue: string[]; inFlight: number; holes: number[] }> {
  const [row] = await tx.query<{ stillDue: string[]; inFlight: number; holes: number[] }>(sql`
    select
      array(select id::text from chain_transaction
        where id = any(${given.ids}::bigint[]) and status = ${queued} order by id for update skip locked) as "stillDue",
      (select count(*) from chain_transaction where status = 'sent' and signer = ${signer}) as "inFlight",
      array(select n::int from generate_series(${given.chainCount}::bigint, ${given.nextNonce - 1}::bigint) as n
        where not exists (select from chain_transaction where signer = ${signer} and nonce = n offset 0)
        order by n limit 100) as holes`);
  return row ?? { stillDue: [], inFlight: 0, holes: [] };
}

/** One signed form of a transaction, as it is stored before it is sent. */
export interface SignedForm {
  readonly id: string;
  readonly nonce: number;
  readonly hash: Hex32;
  readonly raw: Hex;
  readonly gasLimit: bigint;
  readonly fees: Fees;
}

/** Stores signed forms and the signer's new state. @returns how many of the transactions were still queued or sent */
export async function saveSigned(
  tx: Queryable,
  forms: readonly SignedForm[],
  signer: { address: Address; nextNonce: number; spent: Spending; now: number },
): Promise<number> {
  const rows = await tx.query(sql`
    with given as (
      select * from unnest(${forms.map((each) => each.id)}::bigint[], ${forms.map((each) => each.nonce)}::bigint[],
        ${forms.map((each) => bufferOfHex(each.hash))}::bytea[], ${forms.map((each) => bufferOfHex(each.raw))}::bytea[],
        ${forms.map((each) => String(each.gasLimit))}::bigint[], ${forms.map((each) => String(each.fees.maxFee))}::numeric[],
        ${forms.map((each) => String(each.fees.priorityFee))}::numeric[])
        as g (id, nonce, hash, raw, gas_limit, max_fee, priority_fee)),
    kept as (
      insert into chain_transaction_hash (hash, transaction_id, nonce, raw, signed_at)
      select hash, id, nonce, raw, ${signer.now} from given),
    counted as (
      update chain_signer set next_nonce = ${signer.nextNonce}, spend_day = ${signer.spent.day},
        spent_wei = ${String(signer.spent.wei)}::numeric,
        spent_unpaid_wei = ${String(signer.spent.unpaidWei)}::numeric
      where address = ${signer.address})
    update chain_transaction t set status = 'sent', signer = ${signer.address}, nonce = g.nonce,
      gas_limit = g.gas_limit, max_fee_wei = g.max_fee, priority_fee_wei = g.priority_fee,
      signed_at = ${signer.now}, sent_at = ${signer.now}, foreign_since = null
    from given g where t.id = g.id and t.status in ('queued', 'sent') returning t.id`);
  return rows.length;
}

/** Sent transactions by nonce, also those of former operators' accounts. */
export async function listSent(
  db: Queryable,
  { limit, only }: { limit: number; only: string | null },
): Promise<(SentTransaction & { readonly signer: Address })[]> {
  return db.query<SentTransaction & { readonly signer: Address }>(sql`
    select id::text, kind, subject_id as "subjectId", signer, nonce, foreign_since as "foreignSince",
      signed_at as "signedAt", sent_at as "sentAt", '0x' || encode(mined_block_hash, 'hex') as "minedBlockHash",
      array(select '0x' || encode(h.hash, 'hex') from chain_transaction_hash h
        where h.transaction_id = t.id order by h.signed_at desc, h.hash) as hashes
    from chain_transaction t where status = 'sent' and (${only}::text is null or kind = ${only})
    order by nonce limit ${limit}`);
}

export interface FinalMark {
  readonly id: string;
  readonly status: "succeeded" | "reverted";
  readonly hash: Hex32;
  readonly blockHash: Hex32;
  readonly blockNumber: number;
}

/** Returns the ids of those that were not final before. */
export async function markFinal(
  tx: Queryable,
  marks: readonly FinalMark[],
  now: number,
): Promise<Set<string>> {
  const rows = await tx.query<{ id: string }>(sql`
    update chain_transaction t set status = g.status, mined_hash = g.hash, mined_block_hash = g.block_hash,
      mined_block = g.block, finished_at = ${now}
    from unnest(${marks.map((each) => each.id)}::bigint[], ${marks.map((each) => each.status)}::text[],
      ${marks.map((each) => bufferOfHex(each.hash))}::bytea[], ${marks.map((each) => bufferOfHex(each.blockHash))}::bytea[],
      ${marks.map((each) => each.blockNumber)}::bigint[]) as g (id, status, hash, block_hash, block)
    where t.id = g.id and t.status = 'sent' returning t.id::text`);
  return new Set(rows.map((row) => row.id));
}

/** Stores the block in which a transaction was seen; null if that block is gone. */
export async function markMined(
  db: Queryable,
  id: string,
  mined: { hash: Hex32; blockHash: Hex32; blockNumber: number } | null,
): Promise<void> {
  await db.query(sql`
    update chain_transaction set mined_hash = ${mined === null ? null : bufferOfHex(mined.hash)},
      mined_block_hash = ${mined === null ? null : bufferOfHex(mined.blockHash)},
      mined_block = ${mined?.blockNumber ?? null}, foreign_since = null
    where id = ${id} and status = 'sent'`);
}

/** Notes since when the nonce of a sent transaction seems to be used by another one. */
export async function markSuspected(db: Queryable, id: string, since: number): Promise<void> {
  await db.query(
    sql`update chain_transaction set foreign_since = ${since} where id = ${id} and status = 'sent'`,
  );
}

/** Queues a transaction again whose nonce another one has used; false if it does not have that nonce any more. */
export async function requeue(
  db: Queryable,
  { id, nonce }: { id: string; nonce: number },
  now: number,
): Promise<boolean> {
  const rows = await db.query(sql`
    update chain_transaction set status = 'queued', signer = null, nonce = null, foreign_since = null,
      mined_hash = null, mined_block_hash = null, mined_block = null, due_at = ${now}
    where id = ${id} and status = 'sent' and nonce = ${nonce} returning id`);
  return rows.length > 0;
}

/** The newest bytes of each, by nonce; marks them as sent now. */
export async function takeBytes(
  db: Queryable,
  ids: readonly string[],
  now: number,
): Promise<Hex[]> {
  const rows = await db.query<{ raw: Hex }>(sql`
    with taken as (
      update chain_transaction set sent_at = ${now}
      where id = any(${ids}::bigint[]) and status = 'sent' returning id, nonce)
    select '0x' || encode(h.raw, 'hex') as raw from taken t
    cross join lateral (select raw from chain_transaction_hash
      where transaction_id = t.id and nonce = t.nonce order by signed_at desc, hash limit 1) as h
    order by t.nonce`);
  return rows.map((row) => row.raw);
}

/** The newest bytes of the sent transactions that were not seen in a block, by nonce. */
export async function listUnminedBytes(db: Queryable, signer: Address): Promise<Hex[]> {
  const rows = await db.query<{ raw: Hex }>(sql`
    select '0x' || encode(h.raw, 'hex') as raw from chain_transaction t
    cross join lateral (select raw from chain_transaction_hash
      where transaction_id = t.id and nonce = t.nonce order by signed_at desc, hash limit 1) as h
    where t.status = 'sent' and t.signer = ${signer} and t.mined_block_hash is null order by t.nonce limit 100`);
  return rows.map((row) => row.raw);
}

/** The bytes of final transactions with these nonces, as far as they were not purged. */
export async function listFinalBytes(
  db: Queryable,
  signer: Address,
  { from, below }: { from: number; below: number },
): Promise<Hex[]> {
  const rows = await db.query<{ raw: Hex }>(sql`
    select '0x' || encode(h.raw, 'hex') as raw
    from chain_transaction t join chain_transaction_hash h on h.hash = t.mined_hash
    where t.signer = ${signer} and t.nonce >= ${from} and t.nonce < ${below} and t.finished_at is not null
      and h.raw is not null order by t.nonce limit 100`);
  return rows.map((row) => row.raw);
}

/** Whether a transaction of ours, sent or final, has this nonce. */
export async function hasNonce(db: Queryable, signer: Address, nonce: number): Promise<boolean> {
  const rows = await db.query(
    sql`select from chain_transaction where signer = ${signer} and nonce = ${nonce}`,
  );
  return rows.length === 1;
}

/** What a bump signs again; null if the transaction is final or queued by now, or was signed again since. */
export async function findForBump(
  tx: Queryable,
  { id, signedAt }: { id: string; signedAt: number },
): Promise<{ to: Address; data: Hex; nonce: number; gasLimit: bigint; fees: Fees } | null> {
  const [row] = await tx.query<{
    to: Address;
    data: Hex;
    nonce: number;
    gas: string;
    maxFee: string;
    priorityFee: string;
  }>(sql`
    select to_address as "to", '0x' || encode(data, 'hex') as data, nonce, gas_limit::text as gas,
      max_fee_wei::text as "maxFee", priority_fee_wei::text as "priorityFee"
    from chain_transaction where id = ${id} and status = 'sent' and signed_at = ${signedAt} for update`);
  if (row === undefined) return null;
  return {
    to: row.to,
    data: row.data,
    nonce: row.nonce,
    gasLimit: BigInt(row.gas),
    fees: { maxFee: BigInt(row.maxFee), priorityFee: BigInt(row.priorityFee) },
  };
}

/** Purges the bytes of transactions that became final before then; hash, block and outcome stay. @returns how many */
export async function forgetBytes(
  db: Queryable,
  finishedBefore: number,
  limit: number,
): Promise<number> {
  const rows = await db.query(sql`
    with old as (
      update chain_transaction set data = null where id = any(array(
        select id from chain_transaction where data is not null and finished_at < ${finishedBefore}
        order by finished_at limit ${limit} for update skip locked))
      returning id),
    emptied as (
      update chain_transaction_hash set raw = null where transaction_id = any(array(select id from old)))
    select id from old`);
  return rows.length;
}

/** For the gauges, at each scrape. */
export async function readTotals(
  db: Queryable,
  signer: Address,
): Promise<{ queued: number; sent: number; spent: Pick<Spending, "day" | "wei"> }> {
  const [row] = await db.query<{ queued: number; sent: number; day: number; wei: string }>(sql`
    select (select count(*) from chain_transaction where status = 'queued') as queued,
      (select count(*) from chain_transaction where status = 'sent') as sent,
      spend_day as day, spent_wei::text as wei from chain_signer where address = ${signer}`);
  return {
    queued: row?.queued ?? 0,
    sent: row?.sent ?? 0,
    spent: { day: row?.day ?? 0, wei: BigInt(row?.wei ?? 0) },
  };
}
