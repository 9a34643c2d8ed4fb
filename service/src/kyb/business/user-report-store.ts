import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";

/** A user's seat in a business, even if the user never agreed to it. */
export interface Seat {
  readonly address: Address;
  /** The status of the business. */
  readonly status: string;
  readonly isVoting: boolean;
  /** Unix seconds. */
  readonly joinedAt: number;
}

/** Newest first. */
export async function listSeatsOf(db: Queryable, member: Address, limit: number): Promise<Seat[]> {
  return db.query<Seat>(sql`
    select address, status, is_voting as "isVoting", joined_at as "joinedAt"
    from business_member join business on address = business
    where member = ${member} order by joined_at desc, address limit ${limit}`);
}
