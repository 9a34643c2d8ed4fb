const toldEveryMs = 60_000;

/**
 * For what is tried again all the time: while the database is away every poll of every process fails, every second.
 *
 * @returns whether a failure is worth a line: if the one before said something else, or a minute has passed since the
 *   last that was
 */
export function openRepetition(): (error: unknown) => boolean {
  let told = { what: "", atMs: -Infinity };
  return (error) => {
    const what = String(error);
    const atMs = performance.now();
    if (what === told.what && atMs - told.atMs < toldEveryMs) return false;
    told = { what, atMs };
    return true;
  };
}
