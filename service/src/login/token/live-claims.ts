import { createBatcher } from "../../platform/database/batching.ts";
import type { Ctx } from "../../platform/context.ts";
import type { TokenContext } from "../token-context.ts";
import { listLiveClaims } from "./token-store.ts";

/** Introspection and userinfo ask on every call whether a token is still live; concurrent questions share a database call. */
export function createLiveClaims({
  db,
  clock,
}: Pick<Ctx, "db" | "clock">): TokenContext["findLiveClaims"] {
  return createBatcher(async (familyIds: readonly string[]) =>
    listLiveClaims(db, familyIds, clock.now()),
  );
}
