import { syncBuiltinESMExports } from "node:module";
import type { TestContext } from "node:test";

/**
 * Pauses of `node:timers/promises` that begin in this test never end: what is done all the same waited for none of them,
 * however slow the machine is.
 */
export function keepPauses(t: TestContext): void {
  const timers = process.getBuiltinModule("node:timers/promises");
  const pauses = t.mock.method(timers, "setTimeout", async () => new Promise(() => undefined));
  syncBuiltinESMExports();
  t.after(() => {
    pauses.mock.restore();
    syncBuiltinESMExports();
  });
}
