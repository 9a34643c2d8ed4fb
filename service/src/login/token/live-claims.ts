import { createBatcher } from "../../platform/database/batching.ts";
import type { Ctx } from "../../platform/context.ts";
import type { TokenContext } from "../token-context.ts";
import { listLiveClaims } from "./token-store.ts";

/** Every introspection and userinfo asks whether its token still says something: questions that wait go together. */
export function openLiveClaims({ db, clock }: Pick<Ctx, "db" | "clock">) {
  const findLiveClaims: TokenContext["findLiveClaims"] = createBatcher(
    async (familyIds: readonly string[]) => listLiveClaims(db, familyIds, clock.now()),
  );
  return { findLiveClaims };
}
