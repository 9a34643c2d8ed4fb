/**
 * Resolves when the process is asked to stop by SIGTERM or SIGINT. Later signals change nothing: a group's signal often
 * comes twice, from the shell and from npm, and must not cut the drain short.
 */
export async function stopSignal(): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  process.on("SIGTERM", () => resolve(undefined));
  process.on("SIGINT", () => resolve(undefined));
  return promise;
}
