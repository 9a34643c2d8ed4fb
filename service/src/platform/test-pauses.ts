import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

/**
 * Pauses of `node:timers/promises` that begin from now on do not end: what is done all the same waited for none of them,
 * however slow the machine is.
 *
 * @returns how long they were to be, and what ends them: later ones are as ever then, as at the end of the test
 */
export function keepPauses(t: TestContext): { readonly asked: number[]; end(): void } {
  const timers = process.getBuiltinModule("node:timers/promises");
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const asked: number[] = [];
  const pauses = t.mock.method(timers, "setTimeout", async (milliseconds = 0) => {
    asked.push(milliseconds);
    return ended;
  });
  syncBuiltinESMExports();
  const end = (): void => {
    pauses.mock.restore();
    syncBuiltinESMExports();
    resolve();
  };
  t.after(end);
  return { asked, end };
}
