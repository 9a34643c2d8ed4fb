import { createBatcher } from "../../platform/database/batching.ts";
import type { Ctx } from "../../platform/context.ts";
import type { TokenContext } from "../token-context.ts";
import { listLiveClaims } from "./token-store.ts";

/** Questions in one call: the answer comes in about a millisecond. */
const questionsMax = 64;

/** Whether a token still says something is asked by every introspection and userinfo: questions that wait go together. */
export function openLiveClaims({ db, clock }: Pick<Ctx, "db" | "clock">) {
  const findLiveClaims: TokenContext["findLiveClaims"] = createBatcher({
    most: questionsMax,
    answerAll: async (familyIds: readonly string[]) => listLiveClaims(db, familyIds, clock.now()),
  });
  return { findLiveClaims };
}
