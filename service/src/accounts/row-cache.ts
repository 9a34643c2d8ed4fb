import type { Ctx } from "../platform/context.ts";
import { forgetOldest } from "../platform/forget-oldest.ts";

/** Rows kept in memory for the hot path, at most {@link lifetimeMs} old and dropped as soon as they are announced as changed. */
export interface RowCache<Row> extends Disposable {
  /** The row, or null when there is none. Callers that ask at the same time share one statement. */
  find(id: string): Promise<Row | null>;
  /** Reads the row anew, for a caller about to refuse because of the cached one, which may be out of date. */
  findAnew(id: string): Promise<Row | null>;
}

export interface RowCacheOptions<Row> {
  /** Notifications on this channel carry the id of a changed row, and are sent in the transaction that changes it. */
  readonly channel: string;
  load(id: string): Promise<Row | null>;
}

const entriesMax = 10_000;
/** Ids that do not exist are cached separately, so that a flood of invented ids cannot push out real rows. */
const absentMax = 1_000;
/** Notifications are hints: this bounds how long a lost one matters. */
const lifetimeMs = 60_000;
const absentLifetimeMs = 5_000;

interface Entry<Row> {
  readonly value: Promise<Row | null>;
  readonly storedAtMs: number;
  readonly lifetimeMs: number;
}

/** Opens a cache that follows its channel; after a gap in the notifications it starts empty. */
export async function openRowCache<Row>(
  ctx: Pick<Ctx, "clock" | "notifications">,
  options: RowCacheOptions<Row>,
): Promise<RowCache<Row>> {
  const present = new Map<string, Entry<Row>>();
  const absent = new Map<string, Entry<Row>>();
  const loading = new Map<string, Promise<Row | null>>();
  const unsubscribe = await ctx.notifications.subscribe(options.channel, (id) => {
    for (const known of [present, absent, loading]) {
      if (id === "") known.clear();
      else known.delete(id);
    }
  });

  const load = async (id: string): Promise<Row | null> => {
    const value = options.load(id);
    loading.set(id, value);
    try {
      const row = await value;
      // Cached only if no change was announced while it was read; the announcement removed the entry.
      if (loading.get(id) === value) {
        const storedAtMs = ctx.clock.nowMs();
        if (row === null) absent.set(id, { value, storedAtMs, lifetimeMs: absentLifetimeMs });
        else present.set(id, { value, storedAtMs, lifetimeMs });
        forgetOldest(absent, absentMax);
        forgetOldest(present, entriesMax);
      }
      return row;
    } finally {
      if (loading.get(id) === value) loading.delete(id);
    }
  };

  const forget = (id: string): void => {
    present.delete(id);
    absent.delete(id);
  };

  return {
    find(id) {
      const known = present.get(id) ?? absent.get(id);
      if (known !== undefined && isFresh(known, ctx.clock.nowMs())) {
        // The least recently used entry is the first of the map.
        if (present.delete(id)) present.set(id, known);
        return known.value;
      }
      forget(id);
      return loading.get(id) ?? load(id);
    },
    findAnew(id) {
      forget(id);
      // Does not share a read under way, which may return an older row.
      return load(id);
    },
    [Symbol.dispose]: unsubscribe,
  };
}

/** An entry from the future is stale: if the clock was set back, it would otherwise live on. */
function isFresh(entry: { storedAtMs: number; lifetimeMs: number }, nowMs: number): boolean {
  const ageMs = nowMs - entry.storedAtMs;
  return ageMs >= 0 && ageMs < entry.lifetimeMs;
}
