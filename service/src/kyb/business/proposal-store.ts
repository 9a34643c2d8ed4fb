import { type Address, type Hex, hexOfBytes } from "@svc/protocol";
import { advisoryLocks, lockSeeds } from "../../platform/database/advisory-locks.ts";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { purgeOf } from "../../platform/database/purge-store.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { Proposal, ProposalStatus } from "./proposal.ts";

interface ProposalRow extends Omit<Proposal, "arguments"> {
  readonly arguments: Buffer;
}

const proposalColumns = columns`
  id, business, operation, arguments, names_sealed as "namesSealed", member, proposer, nonce, status,
  created_at as "createdAt"`;

const toProposal = (row: ProposalRow): Proposal => ({
  ...row,
  arguments: hexOfBytes(row.arguments),
});

export async function insertProposal(
  tx: Queryable,
  proposal: Omit<Proposal, "status">,
): Promise<void> {
  await tx.query(
    sql`insert into business_proposal (id, business, operation, arguments, names_sealed, member, proposer, nonce, status,
        created_at)
      values (${proposal.id}, ${proposal.business}, ${proposal.operation}, ${bufferOfHex(proposal.arguments)},
        ${proposal.namesSealed}, ${proposal.member}, ${proposal.proposer}, ${proposal.nonce}, 'open',
        ${proposal.createdAt})`,
  );
}

/**
 * How many proposals are open or on their way to the chain. Takes a lock, so that new proposals of one business take
 * turns and cannot exceed the limit together.
 */
export async function countPending(
  tx: Queryable,
  of: { business: Address; proposer: Address },
): Promise<{ all: number; own: number }> {
  await tx.query(
    sql`select pg_advisory_xact_lock(hashtextextended(${of.business}, ${lockSeeds.proposalsOfBusiness}))`,
  );
  const [row] = await tx.query<{ all: number; own: number }>(
    sql`select count(*)::int as "all", (count(*) filter (where proposer = ${of.proposer}))::int as own
      from business_proposal where business = ${of.business} and status in ('open', 'relaying')`,
  );
  return row ?? { all: 0, own: 0 };
}

/** A proposal with an open ballot. */
export type AskedProposal = Proposal & { readonly expiresAt: number; readonly needed: number };

/** The proposals of a member for the same act that are still open, the oldest first. */
export async function listSame(
  tx: Queryable,
  of: Pick<Proposal, "business" | "proposer" | "operation" | "arguments"> & { now: number },
): Promise<AskedProposal[]> {
  const rows = await tx.query<ProposalRow & Pick<AskedProposal, "expiresAt" | "needed">>(
    sql`select ${proposalColumns}, expires_at as "expiresAt", needed
      from business_proposal
        join lateral (select expires_at, needed from ballot where ballot.id = business_proposal.id
          and ballot.status = 'open' and ballot.expires_at >= ${of.now} offset 0) as asked on true
      where business = ${of.business} and status = 'open' and proposer = ${of.proposer}
        and operation = ${of.operation} and arguments = ${bufferOfHex(of.arguments)}
      order by id`,
  );
  return rows.map((row) => Object.assign(row, { arguments: hexOfBytes(row.arguments) }));
}

export async function listProposals(db: Queryable, ids: readonly string[]): Promise<Proposal[]> {
  const rows = await db.query<ProposalRow>(
    sql`select ${proposalColumns} from business_proposal where id = any(${[...ids]}::text[])`,
  );
  return rows.map(toProposal);
}

/**
 * The last approved proposal of this charter, which has the names of its members. Only an approved one: another
 * proposal of the same charter may have other names.
 */
export async function findCharterChange(
  db: Queryable,
  of: { business: Address; arguments: Hex },
): Promise<Proposal | null> {
  const [row] = await db.query<ProposalRow>(
    sql`select ${proposalColumns}
      from business_proposal where business = ${of.business} and operation = 'changeCharter'
        and arguments = ${bufferOfHex(of.arguments)}
        and exists (select from ballot where ballot.id = business_proposal.id and ballot.status = 'approved' offset 0)
      order by nonce desc, id desc limit 1`,
  );
  return row === undefined ? null : toProposal(row);
}

/** Sets the status of proposals that have not ended; any status but `relaying` ends them. */
export async function setProposalStatus(
  tx: Queryable,
  ids: readonly string[],
  change: { status: Exclude<ProposalStatus, "open">; now: number },
): Promise<void> {
  const endedAt = change.status === "relaying" ? null : change.now;
  await tx.query(
    sql`update business_proposal set status = ${change.status}, ended_at = ${endedAt}
      where id = any(${[...ids]}::text[]) and ended_at is null`,
  );
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const relaying = "relaying";

/** Records the block in which the transaction was reverted; the next look at the wallet decides what follows. */
export async function noteRefusedProposal(tx: Queryable, id: string, block: number): Promise<void> {
  await tx.query(
    sql`update business_proposal set refused_block = ${block} where id = ${id} and status = ${relaying}`,
  );
}

/** Approved proposals whose transaction was reverted in `block` or before. @param of.block of the last look */
export async function listRefusedProposals(
  tx: Queryable,
  of: { business: Address; block: number },
): Promise<Proposal[]> {
  const rows = await tx.query<ProposalRow>(
    sql`select ${proposalColumns} from business_proposal
      where business = ${of.business} and status = 'relaying' and refused_block <= ${of.block} order by id`,
  );
  return rows.map(toProposal);
}

/**
 * Proposals to withdraw a signature that may have been withdrawn already: their transaction was reverted, or they are
 * open and another act has used their nonce.
 *
 * @param of.nonce the nonce of the wallet's next act
 */
export async function listDoubtfulWithdrawals(
  db: Queryable,
  of: { business: Address; block: number; nonce: number },
): Promise<Proposal[]> {
  const rows = await db.query<ProposalRow>(
    sql`select ${proposalColumns} from business_proposal
      where business = ${of.business} and operation = 'withdraw'
        and (status = 'relaying' and refused_block <= ${of.block} or status = 'open' and nonce <> ${of.nonce})`,
  );
  return rows.map(toProposal);
}

/** Reopens a proposal with the nonce of the wallet's next act. */
export async function restartProposal(tx: Queryable, id: string, nonce: number): Promise<void> {
  await tx.query(
    sql`update business_proposal set nonce = ${nonce}, status = 'open', refused_block = null where id = ${id}`,
  );
}

/** Whether members have withdrawn this signature, which cannot be undone. */
export async function isWithdrawn(
  tx: Queryable,
  of: { business: Address; arguments: Hex },
): Promise<boolean> {
  const rows = await tx.query(
    sql`select from business_proposal where business = ${of.business} and operation = 'withdraw'
      and arguments = ${bufferOfHex(of.arguments)} and status = 'executed' limit 1`,
  );
  return rows.length === 1;
}

/** The most wallets over which a chain of moves is followed. */
const chainMax = 100;

/** Lets proposals of moves take turns, for all businesses, since each is checked against the earlier ones. */
export async function lockMoves(tx: Queryable): Promise<void> {
  await tx.query(sql`select pg_advisory_xact_lock(${advisoryLocks.businessMoves})`);
}

/**
 * Whether the business `from` may end up in the wallet `to`, by moves that were made, are announced, or wait for votes
 * or the chain.
 */
export async function mayMoveOnTo(db: Queryable, from: Address, to: Address): Promise<boolean> {
  const rows = await db.query(
    sql`with recursive wallet as (
        select ${from}::text as address
        union select next.address from wallet cross join lateral (
          select successor as address from business where business.address = wallet.address and successor is not null
          union all select successor from business_move where business_move.business = wallet.address
          union all select '0x' || encode(substring(arguments from 13), 'hex') from business_proposal
            where business_proposal.business = wallet.address and operation = 'moveTo'
              and status in ('open', 'relaying', 'executed')) as next)
      select from (select address from wallet limit ${chainMax}) as wallet where address = ${to}`,
  );
  return rows.length === 1;
}

/** The votes on an open proposal. */
interface Tally {
  readonly expiresAt: number;
  /** How many have to approve. */
  readonly needed: number;
  readonly approvals: number;
  readonly refusals: number;
}

/** A proposal in a list, with its tally while it is open. */
export interface ListedProposal extends Proposal {
  readonly tally: Tally | null;
}

/** The newest proposals of businesses, newest first. @param limit for each business */
export async function listProposalsOf(
  db: Queryable,
  businesses: readonly Address[],
  limit: number,
): Promise<ListedProposal[]> {
  const rows = await db.query<ProposalRow & { tally: Tally | null }>(
    sql`select proposal.id, proposal.business, operation, arguments, names_sealed as "namesSealed", member, proposer,
        nonce, proposal.status, proposal.created_at as "createdAt",
        case when ballot.status = 'open' then json_build_object('expiresAt', ballot.expires_at, 'needed', needed,
          'approvals', approvals, 'refusals', refusals) end as tally
      from unnest(${[...businesses]}::text[]) as asked (address)
        cross join lateral (
          select * from business_proposal where business = asked.address order by id desc limit ${limit}) as proposal
        left join lateral (
          select * from ballot where id = proposal.id and proposal.status = 'open' offset 0) as ballot on true
        left join lateral (
          select count(approval) as approvals, count(refusal) as refusals from ballot_vote
          where ballot_id = ballot.id and ballot_vote.epoch = ballot.epoch) as votes on true
      order by proposal.id desc`,
  );
  return rows.map((row) => Object.assign(toProposal(row), { tally: row.tally }));
}

/** Deletes proposals that ended before a time, with the names in them. */
export const deleteProposals = purgeOf({ table: "business_proposal", key: "id", time: "ended_at" });
