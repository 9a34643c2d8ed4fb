import type { Queryable } from "./db.ts";
import * as store from "./same-server-store.ts";

const toldEveryMs = 60_000;
const formerMax = 10;

/**
 * Makes a check, to be run again and again, of which server the connections of the pool lead to. After a restart or a
 * failover, the earlier server never answers again. If it does, some connections have stayed at a former primary that
 * is still alive, and what they write is lost.
 *
 * @param onFormer called when a former server answers, at most once a minute
 */
export function watchServer(
  db: Queryable,
  onFormer: () => void,
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
      onFormer();
    }
    if (current !== null) former = [...former, current].slice(-formerMax);
    current = found;
  };
}
