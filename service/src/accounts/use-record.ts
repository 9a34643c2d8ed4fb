import type { Ctx } from "../platform/context.ts";

/** Remembers when secrets and keys were last used, off the path of the requests that use them. */
export interface UseRecord extends AsyncDisposable {
  /** Returns at once; written within seconds, at most once a minute for each id. */
  note(id: string): void;
  /** Writes what has been noted; the next flush retries what could not be written. */
  flush(): Promise<void>;
}

export interface Use {
  readonly id: string;
  /** Unix seconds. */
  readonly at: number;
}

const resolutionSeconds = 60;
const flushMs = 5_000;
/** Beyond this, the record forgets when it last wrote each id, which costs an extra write each. */
const idsMax = 10_000;

/** Opens a record that writes with `save`. */
export function openUseRecord(
  ctx: Pick<Ctx, "clock" | "log">,
  save: (uses: readonly Use[]) => Promise<void>,
): UseRecord {
  const noted = new Map<string, number>();
  const written = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    // Sorted: two processes that lock the same rows in different orders could deadlock.
    const uses = [...noted]
      .map(([id, at]) => ({ id, at }))
      .toSorted((a, b) => (a.id < b.id ? -1 : 1));
    if (uses.length === 0) return;
    noted.clear();
    try {
      await save(uses);
    } catch (error) {
      for (const { id, at } of uses) if (!noted.has(id)) noted.set(id, at);
      ctx.log.warn({ err: error }, "the last use of secrets and keys could not be written");
    }
  };
  // One flush at a time: closing waits for the flush under way, and retries what failed in it.
  const flush = async (): Promise<void> => {
    writing = writing.then(write);
    return writing;
  };

  return {
    note(id) {
      const now = ctx.clock.now();
      if (now - (written.get(id) ?? -Infinity) < resolutionSeconds) return;
      if (written.size >= idsMax) written.clear();
      if (noted.size >= idsMax) return;
      written.set(id, now);
      noted.set(id, now);
      timer ??= setTimeout(() => void flush(), flushMs).unref();
    },
    flush,
    [Symbol.asyncDispose]: flush,
  };
}
