const toldEveryMs = 60_000;

/**
 * For work that is retried all the time: during an outage of the database, every poll of every process fails, every
 * second.
 *
 * @returns whether a failure is worth a line: if it differs from the one before, or a minute has passed since the last
 * line
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

  /** How many since the last success. */
  get count(): number {
    return this.#count;
  }

  end(): void {
    this.#count = 0;
  }

  /**
   * Counts one more.
   *
   * @param what equal for failures of the same kind
   * @returns whether it is worth a line: the first is, each that differs from the one before, and one a minute
   */
  add(what: unknown): boolean {
    this.#count += 1;
    if (this.#count === 1) this.#isNews = openRepetition();
    return this.#isNews(what);
  }

  /** Fields for a line of the log: the number of failures, if there were several. */
  get told(): { readonly failures?: number } {
    return this.#count > 1 ? { failures: this.#count } : {};
  }
}
