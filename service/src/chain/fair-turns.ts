/** Runs the work of many owners, a few pieces at a time; owners with waiting work take turns. */
export type FairTurns = <Result>(owner: string, work: () => Promise<Result>) => Promise<Result>;

/**
 * @param options.atOnce how many pieces run at a time
 * @param options.waitingMax how many may wait, of one owner at most `ofOwnerMax`; any more fail with `onFull`
 */
export function createFairTurns(options: {
  atOnce: number;
  waitingMax: number;
  ofOwnerMax: number;
  onFull: () => Error;
}): FairTurns {
  const waiting = new Map<string, (() => void)[]>();
  let [running, waitingTotal] = [0, 0];
  const next = (): void => {
    running -= 1;
    const [first] = waiting;
    if (first === undefined) return;
    const [owner, [begin, ...others]] = first;
    waiting.delete(owner);
    if (others.length > 0) waiting.set(owner, others);
    waitingTotal -= 1;
    running += 1;
    begin?.();
  };
  return async (owner, work) => {
    if (running < options.atOnce) running += 1;
    else {
      const own = waiting.get(owner) ?? [];
      const isFull = waitingTotal >= options.waitingMax || own.length >= options.ofOwnerMax;
      if (isFull) throw options.onFull();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(owner, [...own, resolve]);
      waitingTotal += 1;
      await promise;
    }
    try {
      return await work();
    } finally {
      next();
    }
  };
}
