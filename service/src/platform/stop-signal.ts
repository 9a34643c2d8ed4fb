/**
 * Watches for SIGTERM and SIGINT. While the process starts they end it at once with status 0: nobody relies on it yet,
 * and what it embeds ends with it. A start may take minutes, where a chain has to mine the contracts.
 *
 * @returns to be called at the end of the start; resolves when the process is asked to stop. Later signals change
 *   nothing: a group's signal often comes twice, from the shell and from npm, and must not cut the drain short.
 */
export function watchStopSignal(): () => Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  let stop = endAtOnce;
  process.on("SIGTERM", () => stop());
  process.on("SIGINT", () => stop());
  return async () => {
    stop = () => resolve(undefined);
    return promise;
  };
}

function endAtOnce(): void {
  process.exit(0);
}
