import { doDueWork } from "../platform/due-work.ts";
import type { Due } from "./due-store.ts";

/** A kind of work that becomes due at a time. */
export interface DueKind {
  isDue(due: Due): boolean;
  /** Does all that is due. */
  run(): Promise<void>;
}

/** The least time between two looks for due work, and between the starts of two runs of one kind. */
const lookAgainMs = 1_000;

/**
 * Does the work that is due, the kinds concurrently: thousands of ballots that end in the same second then do not delay
 * the announcement of a refusal, and a kind that fails does not stop the others.
 *
 * @throws {AggregateError} of all failures, after all kinds have ended
 */
export async function runDueKinds(
  readDue: () => Promise<Due>,
  kinds: readonly DueKind[],
  closing?: AbortSignal,
): Promise<void> {
  const begunAtMs = new Map<DueKind, number>();
  const faults: unknown[] = [];
  await doDueWork<DueKind>(
    {
      // No limit: each kind runs at most once at a time.
      limitBeside: () => kinds.length + 1,
      async lease(_limit, underWay) {
        const due = await readDue();
        const nowMs = performance.now();
        // Work that cannot be done now, for example while the chain's node is away, stays due: without a pause it would
        // be tried again and again.
        const mayBegin = (kind: DueKind): boolean =>
          !underWay.includes(kind) && nowMs - (begunAtMs.get(kind) ?? -Infinity) >= lookAgainMs;
        const begun = kinds.filter((kind) => kind.isDue(due) && mayBegin(kind));
        for (const kind of begun) begunAtMs.set(kind, nowMs);
        return begun;
      },
      carryOut: async (kind) => kind.run(),
      brokeOff: (error) => void faults.push(error),
      lookAgainMs,
    },
    { closing },
  );
  if (faults.length > 0) throw new AggregateError(faults, "work on businesses failed");
}
