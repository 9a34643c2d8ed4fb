import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

/**
 * Pauses of `node:timers/promises` that begin from now on do not end: what is done all the same waited for none of them,
 * however slow the machine is.
 *
 * @returns ends them, and later ones are as ever; so does the end of the test
 */
export function keepPauses(t: TestContext): () => void {
  const timers = process.getBuiltinModule("node:timers/promises");
  const { promise: ended, resolve } = Promise.withResolvers<void>();
  const pauses = t.mock.method(timers, "setTimeout", async () => ended);
  syncBuiltinESMExports();
  const end = (): void => {
    pauses.mock.restore();
    syncBuiltinESMExports();
    resolve();
  };
  t.after(end);
  return end;
}
