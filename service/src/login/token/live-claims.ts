import { createBatcher } from "../../platform/database/batching.ts";
import type { Ctx } from "../../platform/context.ts";
import type { ClaimSource } from "../business/business-claims.ts";
import type { TokenContext } from "../token-context.ts";
import { findLiveClaimsOnce, listLiveClaims } from "./token-store.ts";
import type { OneTimeValue } from "./used-once-store.ts";

/** Introspection and userinfo ask on every call whether a token is still live; concurrent questions share a database call. */
export function createLiveClaims({
  db,
  clock,
}: Pick<Ctx, "db" | "clock">): TokenContext["findLiveClaims"] {
  return createBatcher(async (familyIds: readonly string[]) =>
    listLiveClaims(db, familyIds, clock.now()),
  );
}

/**
 * The live claims of a family, null if it is not live; in one database call, which also spends the one-time values.
 *
 * @param given.refuseReplay throws; called if a value was used before
 */
export async function readLiveClaims(
  ctx: TokenContext,
  familyId: string,
  given: { now: number; oneTime: readonly OneTimeValue[]; refuseReplay: () => never },
): Promise<ClaimSource | null> {
  const { now, oneTime, refuseReplay } = given;
  if (oneTime.length === 0) return ctx.findLiveClaims(familyId);
  const { row, spent } = await findLiveClaimsOnce(ctx.db, familyId, { now, oneTime });
  if (spent.length < oneTime.length) refuseReplay();
  return row;
}
