import type { Ctx } from "../platform/context.ts";

/** Remembers when something was last used, off the path of the requests that use it. */
export interface UseRecord extends AsyncDisposable {
  /**
   * Returns at once; written within seconds, at most once a minute for each id.
   *
   * @returns false where it is not remembered, since too much waits to be written
   */
  note(id: string): boolean;
  /** Writes what is noted; the next flush tries again what could not be written. */
  flush(): Promise<void>;
}

export interface Use {
  readonly id: string;
  /** Unix seconds. */
  readonly at: number;
}

const resolutionSeconds = 60;
const flushMs = 5_000;
/** So many wait to be written at most; of as many it is known when they were last written. */
const idsMax = 10_000;
/** Above this they do not wait for their time. */
const flushAt = idsMax / 2;

/**
 * Opens a record that writes with `save`.
 *
 * @param what what is used, as the log names it
 */
export function openUseRecord(
  ctx: Pick<Ctx, "clock" | "log">,
  what: string,
  save: (uses: readonly Use[]) => Promise<void>,
): UseRecord {
  const noted = new Map<string, number>();
  const written = new Map<string, number>();
  let timer: NodeJS.Timeout | undefined;
  let writing: Promise<void> = Promise.resolve();

  const write = async (): Promise<void> => {
    clearTimeout(timer);
    timer = undefined;
    const uses = [...noted].map(([id, at]) => ({ id, at }));
    if (uses.length === 0) return;
    noted.clear();
    try {
      await save(uses);
    } catch (error) {
      for (const { id, at } of uses) if (!noted.has(id)) noted.set(id, at);
      ctx.log.warn({ err: error, what }, "when it was last used could not be written");
    }
  };
  // One after the other: whoever closes waits for what is on its way, and writes again what failed there.
  const flush = async (): Promise<void> => {
    writing = writing.then(write);
    return writing;
  };

  return {
    note(id) {
      const now = ctx.clock.now();
      if (now - (written.get(id) ?? -Infinity) < resolutionSeconds) return true;
      if (written.size >= idsMax) written.clear();
      if (noted.size >= idsMax && !noted.has(id)) return false;
      written.set(id, now);
      noted.set(id, now);
      timer ??= setTimeout(() => void flush(), flushMs).unref();
      if (noted.size === flushAt) void flush();
      return true;
    },
    flush,
    [Symbol.asyncDispose]: flush,
  };
}
