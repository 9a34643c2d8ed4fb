/** The longest that anything may take that depends on foreign hosts. */
export const timeoutMsMax = 60_000;

/**
 * Settles as the work does, or rejects as soon as the signal fires: work that ignores the signal does not hold up the
 * caller.
 */
export function orAborted<T>(work: Promise<T>, signal: AbortSignal): Promise<T> {
  const aborted = new Promise<never>((_resolve, reject) => {
    const giveUp = (): void => reject(new Error("Given up"));
    if (signal.aborted) giveUp();
    else signal.addEventListener("abort", giveUp, { once: true });
  });
  return Promise.race([work, aborted]);
}
