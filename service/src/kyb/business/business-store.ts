import type { Address } from "@svc/protocol";
import { columns, type Queryable, sql } from "../../platform/database/db.ts";
import { type Business, charterOfBytes } from "./business.ts";

interface BusinessRow extends Omit<Business, "charter"> {
  readonly charter: Buffer;
}

const businessColumns = columns`
  address, environment, name, status, creator, charter, epoch, nonce, verified_at as "verifiedAt",
  registered_at as "registeredAt", successor`;

const toBusiness = (row: BusinessRow): Business => ({
  ...row,
  charter: charterOfBytes(row.charter),
});

/** The business at an address, whatever its status. */
export async function findBusiness(db: Queryable, address: Address): Promise<Business | null> {
  const [row] = await db.query<BusinessRow>(
    sql`select ${businessColumns} from business where address = ${address}`,
  );
  return row === undefined ? null : toBusiness(row);
}

/** The businesses at those of these addresses that have one. */
export async function listBusinessesAt(
  db: Queryable,
  addresses: readonly Address[],
): Promise<Business[]> {
  const rows = await db.query<BusinessRow>(
    sql`select ${businessColumns} from business where address = any(${[...addresses]}::text[])`,
  );
  return rows.map(toBusiness);
}

/** As {@link findBusiness}, with a shared lock: the business does not change until the transaction ends. */
export async function holdBusiness(tx: Queryable, address: Address): Promise<Business | null> {
  const [row] = await tx.query<BusinessRow>(
    sql`select ${businessColumns} from business where address = ${address} for share`,
  );
  return row === undefined ? null : toBusiness(row);
}

/** As {@link holdBusiness}, by a ballot. @param of.voter if given, anybody but a voter gets null, and locks nothing */
export async function holdBusinessOfBallot(
  tx: Queryable,
  { id, voter }: { id: string; voter: Address | null },
): Promise<Business | null> {
  const [row] = await tx.query<BusinessRow>(
    sql`select ${businessColumns} from business where address = (
        select business from ballot where id = ${id} and (${voter}::text is null or ${voter} = any(voters)))
      for share`,
  );
  return row === undefined ? null : toBusiness(row);
}

/** As {@link findBusiness}, with an exclusive lock, for a change. */
export async function lockBusiness(tx: Queryable, address: Address): Promise<Business | null> {
  const [row] = await tx.query<BusinessRow>(
    sql`select ${businessColumns} from business where address = ${address} for update`,
  );
  return row === undefined ? null : toBusiness(row);
}

/** The sort key of a business among those of a member. */
export interface Place {
  readonly isInvited: boolean;
  readonly createdAt: number;
  readonly address: string;
}

/** The position before all others. */
export const firstPlace: Place = { isInvited: false, createdAt: -1, address: "" };

/** A business of a member, with its invitation. */
export interface PlacedBusiness extends Place {
  readonly address: Address;
  readonly invitationId: string;
  readonly deadline: number;
}

/**
 * Businesses of a member, except lapsed ones, oldest first. Those to which the member never agreed, by accepting an
 * invitation or by a vote, come last: anybody can found them with this member.
 */
export async function listBusinessesOf(
  db: Queryable,
  member: Address,
  page: { after: Place; limit: number },
): Promise<PlacedBusiness[]> {
  const { after } = page;
  return db.query<PlacedBusiness>(
    sql`select address, created_at as "createdAt", invitation_id as "invitationId", invitation_deadline as deadline,
        invitation_signature is null and not has_voted as "isInvited"
      from business_member join business on address = business
      where member = ${member} and status <> 'lapsed'
        and (invitation_signature is null and not has_voted, created_at, address)
          > (${after.isInvited}::boolean, ${after.createdAt}::bigint, ${after.address}::text)
      order by invitation_signature is null and not has_voted, created_at, address limit ${page.limit}`,
  );
}

/** Records that the member has acted as such, and was not only made one by others. */
export async function noteKnown(
  tx: Queryable,
  { business, member }: { business: Address; member: Address },
): Promise<void> {
  await tx.query(
    sql`update business_member set has_voted = true
      where business = ${business} and member = ${member} and not has_voted`,
  );
}

export interface MemberRow {
  readonly id: string;
  readonly business: Address;
  readonly member: Address;
  readonly nameSealed: Buffer;
  readonly isVoting: boolean;
  readonly isCreator: boolean;
}

/** By address, compared as numbers: hence `collate "C"`, since a Danish database sorts "aa" behind "z". */
export async function listMemberRows(
  db: Queryable,
  businesses: readonly Address[],
): Promise<MemberRow[]> {
  return db.query<MemberRow>(
    sql`select id, business, member, name_sealed as "nameSealed", is_voting as "isVoting", is_creator as "isCreator"
      from business_member where business = any(${[...businesses]}::text[]) order by member collate "C"`,
  );
}
