/** How long a start may say nothing of how far it is: one that says nothing any more is tried again. */
const silenceMsMax = 120_000;

/**
 * After a crash a server first flushes all its files, and then replays what it had written since the last checkpoint. On
 * a slow disk that takes minutes, of which it tells every 10 s (`log_startup_progress_interval`); begun anew, it would
 * take as long again.
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
  // Nobody may be waiting for it when the start is called off.
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
      // What a server says after its start is no matter.
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
