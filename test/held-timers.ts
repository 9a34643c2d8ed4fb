import { mock } from "node:test";

/** For `query_timeout` of `openDb`, the bound of a statement: nothing else sets a timer of this length. */
export const heldBoundMs = 600_000;

export interface HeldTimers extends Disposable {
  /** Lets the time of the timer that was set last pass. */
  pass(): void;
}

/**
 * Stops the timers of one length that this process sets until the result is disposed of. They are the bounds of what
 * should be answered: one of a second or two also ends what is answered, on a machine that stalls.
 */
export function holdTimers(lengthMs: number): HeldTimers {
  const plain = globalThis.setTimeout;
  const ends: (() => void)[] = [];
  const held = (then: () => void, ms?: number, ...given: []): NodeJS.Timeout => {
    if (ms !== lengthMs) return plain(then, ms, ...given);
    ends.push(then);
    return plain(() => undefined);
  };
  const { mock: holding } = mock.method(globalThis, "setTimeout", held as typeof setTimeout);
  return { pass: () => ends.at(-1)?.(), [Symbol.dispose]: () => holding.restore() };
}
