const toldEveryMs = 60_000;

/**
 * Decides which failures of retried work to log: during an outage of the database, every poll fails, every second.
 *
 * @returns whether a failure is news: if it differs from the one before, or a minute has passed since the last news
 */
export function createNewsFilter(): (error: unknown) => boolean {
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
export class FailureStreak {
  #isNews = createNewsFilter();
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
    if (this.#count === 1) this.#isNews = createNewsFilter();
    return this.#isNews(what);
  }

  /** Fields for a line of the log: the number of failures, if there were several. */
  get logFields(): { readonly failures?: number } {
    return this.#count > 1 ? { failures: this.#count } : {};
  }
}
