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
  /** The API key; null if the user answers, because then nobody asks about the user. */
  readonly keyId: string | null;
  readonly user: Address;
}

/**
 * The lookups of the hot path: those that arrive at the same time share a database call. It is recorded that a key
 * asked about a user before the key gets its answer, once for each minute (decisions section 8, Audit).
 */
export interface Lookups {
  findLiveFields(question: Asking & store.FieldsQuestion): Promise<string[]>;
  findOpenedLeaves(question: Asking & store.OpeningsQuestion): Promise<KnownLeaf[]>;
  /** Records a question that is answered elsewhere. */
  note(asking: Asking): Promise<void>;
}

export function openLookups({ db, clock }: Pick<Ctx, "db" | "clock">): Lookups {
  const written = createWritten();
  /** Answers questions together, by a call that also records those that this process has not recorded yet. */
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

/** Beyond this the process forgets what it has recorded, which only costs recording it again. */
const writtenMax = 10_000;

const keyOf = ({ keyId, user }: Lookup): string => `${keyId} ${user}`;

/** The lookups that have been recorded, as far as this process remembers. */
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
