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

/** Failures in a row of one thing that is tried again all the time. */
export class FailureRow {
  #isNews = openRepetition();
  #count = 0;

  /** How many there are since it last went well. */
  get count(): number {
    return this.#count;
  }

  end(): void {
    this.#count = 0;
  }

  /**
   * Counts one more.
   *
   * @param what by which two are the same
   * @returns whether it is worth a line: the first is, each that differs from the one before, and one a minute
   */
  add(what: unknown): boolean {
    this.#count += 1;
    if (this.#count === 1) this.#isNews = openRepetition();
    return this.#isNews(what);
  }

  /** What a line about the last one says of those before it. */
  get told(): { readonly failures?: number } {
    return this.#count > 1 ? { failures: this.#count } : {};
  }
}
