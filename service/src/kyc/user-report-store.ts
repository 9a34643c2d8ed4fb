import type { Address } from "@svc/protocol";
import { type Queryable, sql } from "../platform/database/db.ts";
import type { Order } from "./order-row.ts";
import { orderColumns } from "./order-store.ts";

/** A user's orders, newest first. */
export async function listOrdersOf(db: Queryable, user: Address, limit: number): Promise<Order[]> {
  return db.query<Order>(
    sql`select ${orderColumns} from kyc_order where user_address = ${user} order by id desc limit ${limit}`,
  );
}
