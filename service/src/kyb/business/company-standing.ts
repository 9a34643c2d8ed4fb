import type { RecordedCompany } from "../../credentials/index.ts";
import type { Ctx } from "../../platform/context.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { lockBusiness } from "./business-store.ts";
import * as store from "./standing-store.ts";

/** Businesses that may get a record: not those still being founded, lapsed or moved. */
const recordable = new Set(["deploying", "active", "suspended"]);

/** Locks a business until the transaction ends. @returns whether it may get a record in this environment */
export async function holdCompany(
  tx: Queryable,
  { business, environment }: RecordedCompany,
): Promise<boolean> {
  const found = await lockBusiness(tx, business);
  return found?.environment === environment && recordable.has(found.status);
}

/**
 * Marks a business, which the caller has locked, as verified or no longer verified, unless the operator has declared
 * the opposite. If it is no longer verified, new requests are refused from this transaction on, and a running service
 * ends open requests and its logins.
 */
export async function noteCompanyRecord(
  { clock }: Pick<Ctx, "clock">,
  tx: Queryable,
  { business, isVouchedFor }: RecordedCompany & { readonly isVouchedFor: boolean },
): Promise<void> {
  const word = await store.findOperatorWord(tx, business);
  if (word !== null && word !== isVouchedFor) return;
  const isChanged = await store.setVerified(tx, business, isVouchedFor ? clock.now() : null);
  if (isChanged && !isVouchedFor) await store.requestStop(tx, business);
}
