import type { RecordedCompany } from "../credentials/index.ts";
import type { Queryable } from "../platform/db.ts";
import { lockBusiness } from "./business-store.ts";
import type { KybContext } from "./kyb-context.ts";
import { stopBusiness } from "./standing.ts";
import * as store from "./company-standing-store.ts";

/** A business that is, or was until it was suspended; one that nobody founded yet, or that went, gets no record. */
const recordable = new Set(["deploying", "active", "suspended"]);

/** Locks a business until the transaction ends. @returns whether an issuer of this side may issue a record for it */
export async function holdCompany(
  tx: Queryable,
  { business, environment }: RecordedCompany,
): Promise<boolean> {
  const found = await lockBusiness(tx, business);
  return found?.environment === environment && recordable.has(found.status);
}

/** Marks a held business verified, or no longer: then everything asked of it and held by it elsewhere ends. */
export async function noteCompanyRecord(
  ctx: KybContext,
  tx: Queryable,
  { business, isVouchedFor }: RecordedCompany & { readonly isVouchedFor: boolean },
): Promise<void> {
  if (isVouchedFor) await store.noteVerified(tx, business, ctx.clock.now());
  else if (await store.noteUnverified(tx, business))
    await stopBusiness(ctx, tx, { business, reason: "business_not_verified" });
}
