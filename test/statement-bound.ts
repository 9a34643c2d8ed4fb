import type { TestContext } from "node:test";

/** For `query_timeout` of `openDb`, the bound of a statement. The driver sets the only timer of this length. */
export const heldBoundMs = 600_000;

/**
 * Until the test ends, a statement's bound passes only when the test says so: a bound of a second or two also ends
 * statements that are answered, on a machine that stalls.
 *
 * @returns lets the bound of the statement that was sent last pass
 */
export function holdStatementBound(t: TestContext): () => void {
  const plain = globalThis.setTimeout;
  const bounds: (() => void)[] = [];
  const held = (then: () => void, ms?: number, ...given: []): NodeJS.Timeout => {
    if (ms !== heldBoundMs) return plain(then, ms, ...given);
    bounds.push(then);
    return plain(() => undefined);
  };
  t.mock.method(globalThis, "setTimeout", held as typeof setTimeout);
  return () => bounds.at(-1)?.();
}
