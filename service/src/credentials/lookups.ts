import type { Address } from "@svc/protocol";
import { auditRetentionSeconds } from "../platform/audit/audit.ts";
import { createBatcher } from "../platform/database/batching.ts";
import type { Ctx } from "../platform/context.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import * as store from "./check-store.ts";
import type { KnownLeaf } from "./leaf.ts";
import { deleteLookups, insertLookups, type Lookup } from "./lookup-store.ts";

/** Who asks about whom. */
interface Asking {
  /** The API key; null if the question comes from the user, which is not recorded. */
  readonly keyId: string | null;
  readonly user: Address;
}

/**
 * The lookups of the hot path; concurrent ones share a database call. Before a key gets its answer, it is recorded that
 * it asked about the user, once per minute (decisions section 8, Audit).
 */
export interface Lookups {
  findLiveFields(question: Asking & store.FieldsQuestion): Promise<string[]>;
  findOpenedLeaves(question: Asking & store.OpeningsQuestion): Promise<KnownLeaf[]>;
  /** Only records a question, which the caller answers itself. */
  note(asking: Asking): Promise<void>;
}

export function openLookups({ db, clock }: Pick<Ctx, "db" | "clock">): Lookups {
  const written = createWritten();
  /** Batches questions; the call that answers them gets the lookups that this process has not recorded yet. */
  const batch = <Question extends Asking, Answer>(
    answerAll: (
      questions: readonly Question[],
      lookups: readonly Lookup[],
    ) => Promise<readonly Answer[]>,
  ) =>
    createBatcher(async (questions: readonly Question[]) => {
      const now = clock.now();
      const lookups = questions
        .flatMap(({ keyId, user }) =>
          keyId === null ? [] : [{ keyId, user, at: now - (now % 60) }],
        )
        .filter((lookup) => !written.has(lookup));
      const answers = await answerAll(questions, lookups);
      for (const lookup of lookups) written.add(lookup);
      return answers;
    });
  const note = batch(async (questions: readonly Asking[], lookups) => {
    if (lookups.length > 0) await insertLookups(db, lookups);
    return questions.map(() => null);
  });
  return {
    findLiveFields: batch(async (questions: readonly (Asking & store.FieldsQuestion)[], lookups) =>
      store.listLiveFields(db, questions, { lookups, now: clock.now() }),
    ),
    findOpenedLeaves: batch(
      async (questions: readonly (Asking & store.OpeningsQuestion)[], lookups) =>
        store.listOpenedLeaves(db, questions, lookups),
    ),
    note: async (asking) => void (await note(asking)),
  };
}

/** The most entries; then all are forgotten, which only means that lookups are recorded again. */
const writtenMax = 10_000;

const keyOf = ({ keyId, user }: Lookup): string => `${keyId} ${user}`;

/** The lookups that this process remembers to have recorded: the last minute for each key and user. */
function createWritten() {
  const minutes = new Map<string, number>();
  return {
    has: (lookup: Lookup): boolean => minutes.get(keyOf(lookup)) === lookup.at,
    add(lookup: Lookup): void {
      if (minutes.size >= writtenMax) minutes.clear();
      minutes.set(keyOf(lookup), lookup.at);
    },
  };
}

/** Deletes lookups at the same age as entries of the audit trail. */
export async function purgeLookups({ db, clock }: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = clock.now() - auditRetentionSeconds;
  await purgeInBatches(async (limit) => deleteLookups(db, before, limit));
}
