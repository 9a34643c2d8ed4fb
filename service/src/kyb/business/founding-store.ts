import { type Address, type Hex, hexOfBytes, type Hex32 } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { lockSeeds } from "../../platform/database/advisory-locks.ts";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import type { BusinessStatus } from "./business.ts";

/** A business with the data of its founding. */
export interface Founding {
  readonly address: Address;
  readonly environment: Environment;
  readonly name: string;
  readonly status: BusinessStatus;
  readonly creator: Address;
  readonly invitationId: string;
  /** Unix seconds. */
  readonly deadline: number;
  readonly salt: Hex32;
  /** In the contract's form. */
  readonly charter: Hex;
}

interface FoundingRow extends Omit<Founding, "salt" | "charter"> {
  readonly salt: Buffer;
  readonly charter: Buffer;
}

const foundingColumns = columns`
  address, environment, name, status, creator, invitation_id as "invitationId", invitation_deadline as deadline,
  business.salt, charter`;

const toFounding = (row: FoundingRow): Founding => ({
  ...row,
  salt: hexOfBytes(row.salt),
  charter: hexOfBytes(row.charter),
});

/** @returns false if the address has a business already */
export async function insertFounding(
  tx: Queryable,
  founding: Omit<Founding, "status">,
  now: number,
): Promise<boolean> {
  const rows = await tx.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${founding.address}, ${founding.environment}, ${founding.name}, 'inviting', ${founding.creator},
        ${founding.invitationId}, ${founding.deadline}, ${bufferOfHex(founding.salt)}, ${bufferOfHex(founding.charter)}, ${now})
      on conflict (address) do nothing returning 1 as added`,
  );
  return rows.length === 1;
}

/** A member's row; its name is sealed for `id`. */
export interface NewMember {
  readonly id: string;
  readonly member: Address;
  readonly nameSealed: Buffer;
  readonly isVoting: boolean;
  readonly isCreator: boolean;
  /** The signature of the invitation; null until it is given, and for members who joined later. */
  readonly signature: Hex | null;
}

export async function insertMembers(
  tx: Queryable,
  business: Address,
  given: { members: readonly NewMember[]; now: number },
): Promise<void> {
  const { members, now } = given;
  await tx.query(
    sql`insert into business_member (id, business, member, name_sealed, is_voting, is_creator, invitation_signature, joined_at)
      select id, ${business}, member, name_sealed, is_voting, is_creator, signature, ${now}
      from unnest(${members.map(({ id }) => id)}::uuid[], ${members.map(({ member }) => member)}::text[],
        ${members.map(({ nameSealed }) => nameSealed)}::bytea[], ${members.map(({ isVoting }) => isVoting)}::boolean[],
        ${members.map(({ isCreator }) => isCreator)}::boolean[],
        ${members.map(({ signature }) => (signature === null ? null : bufferOfHex(signature)))}::bytea[])
        as given (id, member, name_sealed, is_voting, is_creator, signature)`,
  );
}

/**
 * How many foundings by this identity still wait for signatures. Takes a lock, so that concurrent foundings take turns
 * and cannot exceed the limit together.
 */
export async function countOpenFoundings(tx: Queryable, creator: Address): Promise<number> {
  await tx.query(
    sql`select pg_advisory_xact_lock(hashtextextended(${creator}, ${lockSeeds.foundingsOfCreator}))`,
  );
  const [row] = await tx.query<{ total: number }>(
    sql`select count(*)::int as total from business where creator = ${creator} and status = 'inviting'`,
  );
  return row?.total ?? 0;
}

export async function findFounding(db: Queryable, address: Address): Promise<Founding | null> {
  const [row] = await db.query<FoundingRow>(
    sql`select ${foundingColumns} from business where address = ${address}`,
  );
  return row === undefined ? null : toFounding(row);
}

/** Locks the founding that an invitation to this identity belongs to. */
export async function lockInvitation(
  tx: Queryable,
  of: { id: string; member: Address },
): Promise<(Founding & { hasSigned: boolean }) | null> {
  const [row] = await tx.query<FoundingRow>(
    sql`select ${foundingColumns} from business join business_member on business = address and member = ${of.member}
      where invitation_id = ${of.id} for update of business`,
  );
  if (row === undefined) return null;
  // In a second statement: after waiting for a lock, a statement sees the new version of the locked row, but old
  // versions of all other rows.
  const [invited] = await tx.query<{ hasSigned: boolean }>(
    sql`select invitation_signature is not null as "hasSigned" from business_member
      where business = ${row.address} and member = ${of.member}`,
  );
  return { ...toFounding(row), hasSigned: invited?.hasSigned ?? false };
}

/** Stores a signature of the invitation. @returns how many members have not signed yet */
export async function keepInvitationSignature(
  tx: Queryable,
  given: { business: Address; member: Address; signature: Hex },
): Promise<number> {
  const [row] = await tx.query<{ missing: number }>(
    sql`with signed as (
        update business_member set invitation_signature = ${bufferOfHex(given.signature)}
        where business = ${given.business} and member = ${given.member})
      select count(*)::int as missing from business_member
      where business = ${given.business} and member <> ${given.member} and invitation_signature is null`,
  );
  return row?.missing ?? 0;
}

export async function setFoundingStatus(
  tx: Queryable,
  address: Address,
  status: "deploying" | "lapsed",
): Promise<void> {
  await tx.query(sql`update business set status = ${status} where address = ${address}`);
}

/** Marks businesses as deployed. @returns those that were not marked before */
export async function activate(
  tx: Queryable,
  deployed: readonly { address: string; at: number }[],
): Promise<{ address: Address; environment: Environment }[]> {
  return tx.query<{ address: Address; environment: Environment }>(
    sql`update business set status = 'active', registered_at = given.at, look_due_at = 0
      from unnest(${deployed.map(({ address }) => address)}::text[], ${deployed.map(({ at }) => at)}::bigint[])
        as given (address, at)
      where business.address = given.address and status = 'deploying'
      returning business.address, environment`,
  );
}

/** A parameter in statements that find the row by another column, not a literal: {@link sql} says why. */
const inviting = "inviting";

/** Open invitations of this identity, oldest first, after the one with the id `page.after`. */
export async function listInvitationsTo(
  db: Queryable,
  member: Address,
  page: { after: string; limit: number; now: number },
): Promise<Founding[]> {
  const rows = await db.query<FoundingRow>(
    sql`select ${foundingColumns} from business_member join business on address = business
      where member = ${member} and invitation_signature is null and status = ${inviting}
        and invitation_deadline >= ${page.now} and invitation_id > ${page.after}
      order by invitation_id limit ${page.limit}`,
  );
  return rows.map(toFounding);
}

/** Lets foundings lapse that were not signed by everybody in time. @returns how many */
export async function lapseFoundings(db: Queryable, now: number, limit: number): Promise<number> {
  const rows = await db.query(
    sql`update business set status = 'lapsed' where address = any(array(
        select address from business where status = 'inviting' and invitation_deadline < ${now}
        order by invitation_deadline limit ${limit} for update skip locked))
      returning 1 as lapsed`,
  );
  return rows.length;
}

/** Deletes lapsed foundings, with the names in them. @returns how many */
export async function deleteLapsed(db: Queryable, before: number, limit: number): Promise<number> {
  const rows = await db.query(
    sql`with old as (
        select address from business where status = 'lapsed' and invitation_deadline < ${before} limit ${limit}),
      gone as (delete from business_member using old where business = old.address)
      delete from business using old where business.address = old.address returning business.address`,
  );
  return rows.length;
}
