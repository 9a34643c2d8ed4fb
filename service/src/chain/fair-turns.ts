/** Runs work of many owners, some of it at once; of those who wait, each owner has its turn after the others. */
export type FairTurns = <Result>(owner: string, work: () => Promise<Result>) => Promise<Result>;

/** @param options.atOnce how many run; @param options.onFull what whoever comes when `waitingMax` wait is told */
export function createFairTurns(options: {
  atOnce: number;
  waitingMax: number;
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
      if (waitingTotal >= options.waitingMax) throw options.onFull();
      const { promise, resolve } = Promise.withResolvers<void>();
      waiting.set(owner, [...(waiting.get(owner) ?? []), resolve]);
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
