import { createBatcher } from "../platform/batching.ts";
import type { Ctx } from "../platform/context.ts";
import * as store from "./check-store.ts";
import type { KnownLeaf } from "./leaf.ts";

/** The lookups of the hot path: those that come at the same time share a database call. */
export interface Lookups {
  findLiveFields(question: store.FieldsQuestion): Promise<string[]>;
  findOpenedLeaves(question: store.OpeningsQuestion): Promise<KnownLeaf[]>;
}

/** Questions in one call: the answer comes in about a millisecond. */
const questionsMax = 64;

export function openLookups({ db, clock }: Pick<Ctx, "db" | "clock">): Lookups {
  return {
    findLiveFields: createBatcher({
      most: questionsMax,
      answerAll: async (questions: readonly store.FieldsQuestion[]) =>
        store.listLiveFields(db, questions, clock.now()),
    }),
    findOpenedLeaves: createBatcher({
      most: questionsMax,
      answerAll: async (questions: readonly store.OpeningsQuestion[]) =>
        store.listOpenedLeaves(db, questions),
    }),
  };
}
