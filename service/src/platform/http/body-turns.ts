import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/** Nobody's large body takes so long that all others have to wait for longer. */
const restMsMax = 1_000;

/**
 * Begins work that keeps the process busy, piece by piece. After each the process has as long for everything else as that
 * piece took, along with what followed from it in the same turn of the event loop. Owners whose work waits take turns.
 *
 * @param work throws nothing
 */
export type BodyTurns = (owner: string, work: () => void) => void;

export function createBodyTurns(): BodyTurns {
  const waiting = new Map<string, (() => void)[]>();
  let isWorking = false;
  const takeNext = (): (() => void) | undefined => {
    const [first] = waiting;
    if (first === undefined) return undefined;
    const [owner, [work, ...others]] = first;
    waiting.delete(owner);
    if (others.length > 0) waiting.set(owner, others);
    return work;
  };
  const workThrough = async (): Promise<void> => {
    isWorking = true;
    for (let work = takeNext(); work !== undefined; work = takeNext()) {
      const startedMs = performance.now();
      work();
      await nextTurn();
      await pause(Math.min(restMsMax, performance.now() - startedMs));
    }
    isWorking = false;
  };
  return (owner, work) => {
    const own = waiting.get(owner) ?? [];
    waiting.set(owner, [...own, work]);
    if (!isWorking) void workThrough();
  };
}
