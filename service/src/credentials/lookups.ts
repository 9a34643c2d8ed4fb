import type { Address } from "@svc/protocol";
import { openUseRecord } from "../accounts/index.ts";
import { auditRetentionSeconds } from "../platform/audit/audit.ts";
import { createBatcher } from "../platform/database/batching.ts";
import type { Ctx } from "../platform/context.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { Problem } from "../platform/http/problems.ts";
import * as store from "./check-store.ts";
import type { KnownLeaf } from "./leaf.ts";
import { deleteLookups, insertLookups } from "./lookup-store.ts";

/** The lookups of the hot path: those that come at the same time share a database call. */
export interface Lookups extends AsyncDisposable {
  findLiveFields(question: store.FieldsQuestion): Promise<string[]>;
  findOpenedLeaves(question: store.OpeningsQuestion): Promise<KnownLeaf[]>;
  /**
   * Writes down, within seconds, that a key asked about a user: once for each minute (decisions section 8, Audit).
   *
   * @throws {Problem} unavailable where it cannot be written down: then nobody may be told either
   */
  note(keyId: string, user: Address): void;
}

export function openLookups(ctx: Pick<Ctx, "db" | "clock" | "log">): Lookups {
  const { db, clock } = ctx;
  const asked = openUseRecord(ctx, "lookups", async (uses) =>
    insertLookups(
      db,
      uses.map(({ id }) => {
        const [keyId = "", user = "", at] = id.split(" ");
        return { keyId, user, at: Number(at) };
      }),
    ),
  );
  return {
    findLiveFields: createBatcher(async (questions: readonly store.FieldsQuestion[]) =>
      store.listLiveFields(db, questions, clock.now()),
    ),
    findOpenedLeaves: createBatcher(async (questions: readonly store.OpeningsQuestion[]) =>
      store.listOpenedLeaves(db, questions),
    ),
    note: (keyId, user) => {
      const now = clock.now();
      // The minute is part of what is noted: one that begins a few seconds later is another.
      if (!asked.note(`${keyId} ${user} ${now - (now % 60)}`)) throw new Problem("unavailable");
    },
    [Symbol.asyncDispose]: async () => asked[Symbol.asyncDispose](),
  };
}

/** Lookups are forgotten with the entries of the audit trail. */
export async function purgeLookups({ db, clock }: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = clock.now() - auditRetentionSeconds;
  await purgeInBatches(async (limit) => deleteLookups(db, before, limit));
}
