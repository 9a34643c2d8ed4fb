import { setImmediate as nextTurn, setTimeout as pause } from "node:timers/promises";

/** The longest rest, so that one large body does not hold up all others for longer. */
const restMsMax = 1_000;

/**
 * Runs work that keeps the process busy, piece by piece. After each piece, the process has as much time for everything
 * else as the piece took, including what followed from it in the same turn of the event loop. Owners whose work waits
 * take turns.
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
