import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

/**
 * Makes pauses of `node:timers/promises` that begin from now on never end: what happens all the same waited for none of
 * them, however slow the machine is.
 *
 * @returns their lengths, and a function that ends them; later ones are ordinary again, as they are after the test
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
