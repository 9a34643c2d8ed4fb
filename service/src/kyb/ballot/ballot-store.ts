import { type Address, type Hex, hexOfBytes, type Hex32 } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { purgeOf } from "../../platform/database/purge-store.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { Business } from "../business/business.ts";
import { holdBusinessOfBallot } from "../business/business-store.ts";
import type { StoredRequester } from "../request/shown-requester.ts";
import type { Ballot, MemberApproval } from "./ballot.ts";

const ballotColumns = columns`
  ballot.id, ballot.kind, ballot.business, ballot.category, '0x' || encode(ballot.hash, 'hex') as hash,
  ballot.client_domain_id as "clientDomainId", ballot.epoch, ballot.voters, ballot.needed,
  ballot.valid_until as "validUntil", ballot.expires_at as "expiresAt", ballot.status`;

const bytesOrNull = (hex: Hex | null): Buffer | null => (hex === null ? null : bufferOfHex(hex));

export async function insertBallot(
  tx: Queryable,
  ballot: Omit<Ballot, "status">,
  now: number,
): Promise<void> {
  await tx.query(
    sql`insert into ballot (id, kind, business, category, hash, client_domain_id, epoch, voters, needed, valid_until,
        expires_at, status, created_at)
      values (${ballot.id}, ${ballot.kind}, ${ballot.business}, ${ballot.category}, ${bytesOrNull(ballot.hash)},
        ${ballot.clientDomainId}, ${ballot.epoch}, ${[...ballot.voters]}, ${ballot.needed}, ${ballot.validUntil},
        ${ballot.expiresAt}, 'open', ${now})`,
  );
}

/**
 * Locks the ballot, and its business against changes. The business is locked first, as by a change of its roster, so
 * that the two cannot deadlock.
 *
 * @param options.voter if given, the result is null for anybody but a voter, and without waiting for locks: otherwise a
 *   stranger could tell from the time of the answer that a member is voting
 */
export async function lockBallot(
  tx: Queryable,
  id: string,
  options: { voter?: Address } = {},
): Promise<{ ballot: Ballot; business: Business } | null> {
  const { voter = null } = options;
  const business = await holdBusinessOfBallot(tx, { id, voter });
  if (business === null) return null;
  const [ballot] = await tx.query<Ballot>(
    sql`select ${ballotColumns} from ballot
      where id = ${id} and (${voter}::text is null or ${voter} = any(voters)) for update`,
  );
  return ballot === undefined ? null : { ballot, business };
}

/** Whether members or rules have changed since the ballot began. */
export async function isOfEarlierEpoch(db: Queryable, id: string): Promise<boolean> {
  const rows = await db.query(
    sql`select from ballot join business on address = business where id = ${id} and ballot.epoch <> business.epoch`,
  );
  return rows.length === 1;
}

/** Locks ballots that have expired, and skips those that are locked by a vote. */
export async function lockDueBallots(tx: Queryable, now: number, limit: number): Promise<Ballot[]> {
  return tx.query<Ballot>(
    sql`select ${ballotColumns} from ballot where status = 'open' and expires_at >= 0 and expires_at < ${now}
      order by expires_at limit ${limit} for update skip locked`,
  );
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const open = "open";

/** Locks those of the given ballots that have expired, by id to avoid deadlocks; waits for their locks. */
export async function lockDueAmong(
  tx: Queryable,
  ids: readonly string[],
  now: number,
): Promise<Ballot[]> {
  return tx.query<Ballot>(
    sql`select ${ballotColumns} from ballot
      where id = any(${[...ids]}) and status = ${open} and expires_at < ${now}
      order by id for update`,
  );
}

/** Ids of the open ballots of a client domain that have expired. */
export async function listDueOf(
  db: Queryable,
  clientDomainId: string,
  now: number,
): Promise<{ id: string }[]> {
  return db.query<{ id: string }>(
    sql`select id from ballot
      where client_domain_id = ${clientDomainId} and status = 'open' and expires_at >= 0 and expires_at < ${now}`,
  );
}

/**
 * Locks the open ballots of a business by id, and returns them sorted by the requesting organization: whoever ends them
 * in one transaction then locks the organizations' ledgers in that order, so that no two such transactions deadlock.
 */
export async function lockOpenBallots(tx: Queryable, business: Address): Promise<Ballot[]> {
  return tx.query<Ballot>(
    sql`with locked as (
        select * from ballot where business = ${business} and status = ${open} order by id for update)
      select ${ballotColumns} from locked as ballot
      order by (select organization_id from client_domain where client_domain.id = client_domain_id), id`,
  );
}

/** Fixes the hash that approvals sign. */
export async function fixHash(tx: Queryable, id: string, hash: Hex32): Promise<void> {
  await tx.query(sql`update ballot set hash = ${bufferOfHex(hash)} where id = ${id}`);
}

/** Ends a ballot that is open; one that has ended stays as it is. */
export async function endBallot(
  tx: Queryable,
  ended: { id: string; status: Exclude<Ballot["status"], "open">; now: number },
): Promise<void> {
  await tx.query(
    sql`update ballot set status = ${ended.status}, ended_at = ${ended.now} where id = ${ended.id} and status = ${open}`,
  );
}

/** Reopens an approved ballot; {@link restartBallot} then makes its votes void. */
export async function reopenBallot(tx: Queryable, id: string): Promise<void> {
  await tx.query(
    sql`update ballot set status = 'open', ended_at = null where id = ${id} and status = 'approved'`,
  );
}

/**
 * Restarts the collection of votes and the hints to devices. Votes of another epoch do not count anyway. Those of this
 * epoch are deleted, since they approved something else: an act with another nonce, or the chain took the epoch back.
 *
 * @param next.hash null if the first approval fixes it
 */
export async function restartBallot(
  tx: Queryable,
  next: {
    id: string;
    epoch: number;
    voters: readonly Address[];
    needed: number;
    hash: Hex32 | null;
  },
): Promise<void> {
  await tx.query(
    sql`with forgotten as (delete from ballot_vote where ballot_id = ${next.id} and epoch = ${next.epoch})
      update ballot set epoch = ${next.epoch}, voters = ${[...next.voters]}, needed = ${next.needed},
        hash = ${bytesOrNull(next.hash)}, hinted_epoch = null, restarts = restarts + 1
      where id = ${next.id}`,
  );
}

interface VoteRow {
  member: Address;
  approval: Buffer | null;
  refusal: Buffer | null;
}

/**
 * Adds a vote to a ballot that the caller has locked, so that the statement sees every earlier one.
 *
 * @returns all votes of this epoch, this one included; null if the member has voted in it before
 */
export async function insertVote(
  tx: Queryable,
  vote: {
    ballotId: string;
    epoch: number;
    member: Address;
    kind: "approve" | "reject";
    signature: Hex;
    now: number;
  },
): Promise<{ approvals: MemberApproval[]; refusals: number } | null> {
  const signature = bytesOrNull(vote.signature);
  const isApproval = vote.kind === "approve";
  const rows = await tx.query<VoteRow>(
    sql`with added as (
        insert into ballot_vote (ballot_id, epoch, member, approval, refusal, created_at)
        values (${vote.ballotId}, ${vote.epoch}, ${vote.member}, ${isApproval ? signature : null},
          ${isApproval ? null : signature}, ${vote.now})
        on conflict do nothing returning member, approval, refusal),
      known as (
        update business_member set has_voted = true
        where business = (select business from ballot where id = ${vote.ballotId} and exists (select from added))
          and business_member.member = ${vote.member} and not has_voted)
      select member, approval, refusal from (
        select member, approval, refusal from added
        union all
        select member, approval, refusal from ballot_vote
        where ballot_id = ${vote.ballotId} and epoch = ${vote.epoch} and exists (select from added)) as votes
      order by member collate "C"`,
  );
  if (rows.length === 0) return null;
  const approvals = rows.flatMap(({ member, approval }) =>
    approval === null ? [] : [{ member, signature: hexOfBytes(approval) }],
  );
  return { approvals, refusals: rows.length - approvals.length };
}

/** How the member voted in this epoch; null if it did not. */
export async function findVote(
  db: Queryable,
  of: { ballotId: string; epoch: number; member: Address },
): Promise<"approve" | "reject" | null> {
  const [row] = await db.query<{ approves: boolean }>(
    sql`select approval is not null as approves from ballot_vote
      where ballot_id = ${of.ballotId} and epoch = ${of.epoch} and member = ${of.member}`,
  );
  if (row === undefined) return null;
  return row.approves ? "approve" : "reject";
}

/** A ballot as a member's inbox shows it. */
export interface InboxRow {
  readonly ballot: Ballot;
  readonly businessName: string;
  /** Null if the members ask themselves. */
  readonly requester: StoredRequester | null;
}

interface InboxColumns extends Ballot {
  readonly businessName: string;
  readonly organizationName: string | null;
  readonly domain: string | null;
  readonly provedAt: number | null;
}

/**
 * Open ballots on which the member may vote and has not, by id. With `hasAgreed` those of businesses whose member it
 * has agreed to be, by accepting an invitation or by a vote; otherwise those of all others. Each `offset 0` makes
 * PostgreSQL start from the member's businesses and ballots; by statistics that say there are none, it would read all
 * open ballots and all votes instead.
 *
 * @param page.after the id after which the page begins; empty for the first page
 */
export async function listInbox(
  db: Queryable,
  member: Address,
  page: { hasAgreed: boolean; after: string; limit: number; now: number },
): Promise<InboxRow[]> {
  const rows = await db.query<InboxColumns>(
    sql`select ${ballotColumns}, business.name as "businessName", organization.name as "organizationName",
        client_domain.domain, client_domain.proved_at as "provedAt"
      from business_member
        cross join lateral (
          select * from ballot
          where ballot.business = business_member.business and status = 'open' and expires_at >= ${page.now}
            and id > ${page.after} and ${member} = any(voters) offset 0) as ballot
        join business on business.address = ballot.business
        left join client_domain on client_domain.id = ballot.client_domain_id
        left join organization on organization.id = client_domain.organization_id
      where business_member.member = ${member}
        and (has_voted or invitation_signature is not null) = ${page.hasAgreed}
        and (business.status = 'active' or (business.status = 'moved' and ballot.kind = 'governance'))
        and not exists (select 1 from ballot_vote
          where ballot_id = ballot.id and ballot_vote.epoch = ballot.epoch and ballot_vote.member = ${member} offset 0)
      order by ballot.id limit ${page.limit}`,
  );
  return rows.map(({ businessName, organizationName, domain, provedAt, ...ballot }) => {
    const isAsked = organizationName !== null && domain !== null;
    return {
      ballot,
      businessName,
      requester: isAsked ? { organizationName, domain, provedAt } : null,
    };
  });
}

/** Deletes ballots that ended before a time, with their votes. */
export const deleteBallots = purgeOf({ table: "ballot", key: "id", time: "ended_at" });
