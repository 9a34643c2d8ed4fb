import type { Address, Hex, Hex32 } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import { bufferOfHex } from "../platform/hex.ts";
import type { SealedColumn } from "../platform/cryptography/seal.ts";

export const faucetKeyColumn: SealedColumn = {
  table: "embedded_chain",
  idColumn: "only_row",
  column: "faucet_key_sealed",
};

/** What was chosen at the first start, and defines the chain. */
export interface EmbeddedIdentity {
  readonly chainId: number;
  readonly genesisTime: number;
  readonly faucetAddress: Address;
  readonly faucetKeySealed: Buffer;
}

/** Stores the identity unless there is one. @returns the stored one, which may be another process's */
export async function keepIdentity(
  db: Queryable,
  given: EmbeddedIdentity,
): Promise<EmbeddedIdentity> {
  await db.query(
    sql`insert into embedded_chain (chain_id, genesis_time, faucet_address, faucet_key_sealed)
      values (${given.chainId}, ${given.genesisTime}, ${given.faucetAddress}, ${given.faucetKeySealed})
      on conflict (only_row) do nothing`,
  );
  const found = await findIdentity(db);
  if (found === null) throw new Error("the identity of the chain was written a moment ago");
  return found;
}

export async function findIdentity(db: Queryable): Promise<EmbeddedIdentity | null> {
  const [row] = await db.query<EmbeddedIdentity>(
    sql`select chain_id as "chainId", genesis_time as "genesisTime", faucet_address as "faucetAddress",
        faucet_key_sealed as "faucetKeySealed"
      from embedded_chain`,
  );
  return row ?? null;
}

/** Stores where the node listens now, and notifies every process. */
export async function announcePath(db: Queryable, path: string): Promise<void> {
  await db.query(
    sql`with told as (update embedded_chain set ipc_path = ${path} returning 1)
      select pg_notify('embedded_chain_owner', '') from told`,
  );
}

export async function findPath(db: Queryable): Promise<string | null> {
  const [row] = await db.query<{ ipc_path: string | null }>(
    sql`select ipc_path from embedded_chain`,
  );
  return row?.ipc_path ?? null;
}

/** A transaction that has passed the checks for the journal. */
export interface Admitted {
  readonly hash: Hex32;
  readonly raw: Hex;
  readonly signer: Address;
  readonly nonce: number;
  /** Its gas limit. */
  readonly gas: bigint;
  readonly costWei: bigint;
}

/** What the journal knows of a signer, for the admission of a transaction. */
export interface SignerJournal {
  readonly nextNonce: number;
  /** The most that its transactions can cost that the node had not mined. */
  readonly openWei: bigint;
  /** Whether the transaction is in the journal already. */
  readonly isKnown: boolean;
}

/** @param minedCount how many transactions of the signer the node had mined */
export async function readSigner(
  db: Queryable,
  signer: Address,
  { hash, minedCount }: { hash: Hex32; minedCount: number },
): Promise<SignerJournal> {
  // The seemingly redundant upper bound on `nonce` is for the planner: with a lower bound alone, PostgreSQL expects a
  // third of all nonces and reads them all.
  const [row] = await db.query<Omit<SignerJournal, "openWei"> & { openWei: string }>(
    sql`with newest as (
        select nonce from embedded_transaction where signer = ${signer} order by nonce desc limit 1)
      select coalesce((select nonce from newest), -1) + 1 as "nextNonce",
        (select coalesce(sum(cost_wei), 0)::text from embedded_transaction
          where signer = ${signer} and nonce >= ${minedCount} and nonce <= (select nonce from newest)) as "openWei",
        exists (select 1 from embedded_transaction where hash = ${hash}) as "isKnown"`,
  );
  return {
    nextNonce: row?.nextNonce ?? 0,
    openWei: BigInt(row?.openWei ?? 0),
    isKnown: row?.isKnown === true,
  };
}

export async function readNextNonce(db: Queryable, signer: Address): Promise<number> {
  const [row] = await db.query<{ next: number }>(
    sql`select nonce + 1 as next from embedded_transaction where signer = ${signer} order by nonce desc limit 1`,
  );
  return row?.next ?? 0;
}

export async function isJournaled(db: Queryable, hash: Hex32): Promise<boolean> {
  const rows = await db.query(sql`select from embedded_transaction where hash = ${hash}`);
  return rows.length === 1;
}

/** Writes a transaction to the journal. @returns false if its nonce was taken meanwhile */
export async function insertTransaction(
  db: Queryable,
  given: Admitted,
  now: number,
): Promise<boolean> {
  const rows = await db.query(
    sql`with written as (
        insert into embedded_transaction (hash, raw, signer, nonce, gas, cost_wei, created_at)
        values (${given.hash}, ${bufferOfHex(given.raw)}, ${given.signer}, ${given.nonce},
          ${String(given.gas)}::bigint, ${String(given.costWei)}::numeric, ${now})
        on conflict do nothing returning hash
      )
      select hash, pg_notify('embedded_chain', '') from written`,
  );
  return rows.length === 1;
}

/** A block of the journal. */
export interface Block {
  readonly number: number;
  readonly time: number;
  /** Null if it has not been mined yet. */
  readonly hash: Hex32 | null;
  readonly raws: readonly Hex[];
  /** The sum of the gas limits. */
  readonly gas: number;
}

/**
 * Decides the next block for good: the waiting transactions in the order of the journal, at `time` or the time of the
 * previous block, whichever is later.
 *
 * @param db the connection that holds the lock: a former owner must not decide a block that the new owner does not know
 * of
 * @param given.max the most transactions
 * @param given.gasMax the most gas of all of them; the first is taken even if it alone exceeds this
 * @returns null if nothing waits and `mayBeEmpty` is false
 */
export async function decideBlock(
  db: Queryable,
  given: { time: number; max: number; gasMax: number; mayBeEmpty: boolean },
): Promise<Block | null> {
  const rows = await db.query<{
    number: number | string;
    time: number | string;
    raw: Buffer | null;
    gas: number | string | null;
  }>(
    sql`with next as (
        select position, gas from embedded_transaction where block_number is null order by position limit ${given.max}
      ), counted as (
        select position, row_number() over (order by position) - 1 as index, sum(gas) over (order by position) as gas from next
      ), waiting as (
        select position, index from counted where index = 0 or gas <= ${given.gasMax}
      ), last as (
        (select number, time from embedded_block order by number desc limit 1)
        union all select 0, (select genesis_time from embedded_chain)
        order by number desc limit 1
      ), block as (
        insert into embedded_block (number, time)
        select number + 1, greatest(time, ${given.time}::bigint) from last
        where ${given.mayBeEmpty} or exists (select 1 from waiting)
        returning number, time
      ), placed as (
        update embedded_transaction set block_number = block.number, block_index = waiting.index
        from waiting, block where embedded_transaction.position = waiting.position
        returning block_index, raw, gas
      )
      select block.number, block.time, placed.raw, placed.gas from block left join placed on true order by placed.block_index`,
  );
  const [first] = rows;
  if (first === undefined) return null;
  const raws = rows.flatMap(({ raw }): Hex[] => (raw === null ? [] : [`0x${raw.toString("hex")}`]));
  // The connection with the lock has no parsers of its own, so that it returns bigints as text.
  const gas = rows.reduce((sum, row) => sum + Number(row.gas ?? 0), 0);
  return { number: Number(first.number), time: Number(first.time), hash: null, raws, gas };
}

/** Stores the hash of a mined block, and wakes the processes that wait for its transactions. */
export async function keepHash(db: Queryable, number: number, hash: Hex32): Promise<void> {
  await db.query(
    sql`with kept as (update embedded_block set hash = ${hash} where number = ${number} returning 1)
      select pg_notify('chain_outbox', '') from kept`,
  );
}

/** The blocks after the one with the number `after`, in order. */
export async function listBlocks(
  db: Queryable,
  { after, limit }: { after: number; limit: number },
): Promise<Block[]> {
  const rows = await db.query<Omit<Block, "raws"> & { raws: Buffer[] | null }>(
    sql`select number, time, hash, raws, gas
      from (select * from embedded_block where number > ${after} order by number limit ${limit}) as block
        cross join lateral (
          select array_agg(raw order by block_index) as raws, coalesce(sum(gas), 0)::bigint as gas
          from embedded_transaction where block_number = number) as mined
      order by number`,
  );
  return rows.map(({ raws, ...block }) =>
    Object.assign(block, { raws: (raws ?? []).map((raw): Hex => `0x${raw.toString("hex")}`) }),
  );
}

/** A dump of the chain's state after a block. */
export interface Fold {
  readonly number: number;
  readonly state: Buffer;
}

/** A fold with the hash that its block has to have. */
export interface KeptFold extends Fold {
  readonly hash: Hex32 | null;
}

export async function findFold(db: Queryable): Promise<KeptFold | null> {
  const [row] = await db.query<{ number: number; state: Buffer; hash: Hex32 | null }>(
    sql`select folded_block as number, folded_state as state, hash
      from embedded_chain join embedded_block on number = folded_block
      where folded_state is not null`,
  );
  return row ?? null;
}

export async function keepFold(db: Queryable, fold: Fold): Promise<void> {
  await db.query(
    sql`update embedded_chain set folded_block = ${fold.number}, folded_state = ${fold.state}`,
  );
}
