import type { Queryable } from "./db.ts";
import * as store from "./same-server-store.ts";

const toldEveryMs = 60_000;
const formerMax = 10;

/**
 * Makes a look at the server that a connection of the pool leads to, to be taken again and again. A server that is
 * restarted or takes over never gives way to the one before. If that one answers again, some connections stayed at a
 * former primary that still lives, and what they store is lost.
 *
 * @param told called when a former server answers, at most once a minute
 */
export function watchServer(
  db: Queryable,
  told: () => void,
  elapsedMs: () => number = () => performance.now(),
): () => Promise<void> {
  let current: string | null = null;
  let former: readonly string[] = [];
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return async () => {
    const found = await store.readServerStart(db);
    if (found === current) return;
    if (former.includes(found) && elapsedMs() - toldAtMs >= toldEveryMs) {
      toldAtMs = elapsedMs();
      told();
    }
    if (current !== null) former = [...former, current].slice(-formerMax);
    current = found;
  };
}
