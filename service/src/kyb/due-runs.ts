import { doDueWork } from "../platform/due-work.ts";
import type { Due } from "./due-store.ts";

/** One kind of the work that becomes due by itself. */
export interface DueKind {
  isDue(due: Due): boolean;
  /** Does all that is due. */
  run(): Promise<void>;
}

/** Between two looks, and from the beginning of one run of a kind to that of its next. */
const lookAgainMs = 1_000;

/**
 * Does the work that is due, each kind beside the others: thousands of ballots that end in the same second hold up no
 * refusal that is to be announced meanwhile, and a kind that fails none of the others.
 *
 * @throws what failed, after the others have ended
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
      // Never reached, since each kind runs once at a time.
      limitBeside: () => kinds.length + 1,
      async lease(_limit, underWay) {
        const due = await readDue();
        const nowMs = performance.now();
        // What cannot be done now, such as while the chain's node is away, stays due.
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
