/** How long a start may report no progress before it is tried again. */
const silenceMsMax = 120_000;

/**
 * After a crash, a server first flushes all its files, then replays what it wrote since the last checkpoint. On a slow
 * disk that takes minutes, with a report every 10 s (`log_startup_progress_interval`). Started again, it would take as
 * long once more.
 */
const progress = /elapsed time: /;

/** How long one start is waited for. */
export interface StartPatience extends Disposable {
  /** Resolves once the server has told of no progress for two minutes; rejects as soon as the start is called off. */
  readonly late: Promise<"late">;
  /** Takes a line of the server's log. */
  hear(line: string): void;
}

/** @param over calls the start off */
export function openStartPatience(over?: AbortSignal): StartPatience {
  const { promise: late, resolve, reject } = Promise.withResolvers<"late">();
  // It may be that nobody awaits it when the start is called off.
  late.catch(() => undefined);
  const callOff = (): void => reject(new Error("the start is called off"));
  if (over?.aborted === true) callOff();
  over?.addEventListener("abort", callOff);
  const wait = (): NodeJS.Timeout => setTimeout(() => resolve("late"), silenceMsMax);
  let timer: NodeJS.Timeout | null = wait();
  const stopWaiting = (): void => {
    if (timer !== null) clearTimeout(timer);
    timer = null;
  };
  return {
    late,
    hear(line) {
      // Lines after the start mean nothing here.
      if (timer === null || !progress.test(line)) return;
      stopWaiting();
      timer = wait();
    },
    [Symbol.dispose]() {
      stopWaiting();
      over?.removeEventListener("abort", callOff);
    },
  };
}
