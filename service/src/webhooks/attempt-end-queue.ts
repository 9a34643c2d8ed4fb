import { setTimeout as pause } from "node:timers/promises";
import { createNewsFilter } from "../platform/telemetry/repetition.ts";
import { recordEnds } from "./attempt-ends.ts";
import type { Ended } from "./delivery-store.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** Attempts that end within this time are recorded by one statement. */
const gatherMs = 5;
const recordMax = 512;

interface Options {
  readonly leaseMs: number;
  /**
   * Called after each statement, not only once the queue is empty, which it may never be under load: the recorded
   * attempts have made room for others.
   *
   * @param isDue whether any of the recorded deliveries is due again at once
   */
  readonly onRecorded: (isDue: boolean) => void;
}

/** Collects how the attempts of one process ended, and records many with one statement. */
export class AttemptEndQueue {
  readonly #ctx: WebhooksContext;
  readonly #leaseMs: number;
  readonly #onRecorded: Options["onRecorded"];
  readonly #isNews = createNewsFilter();
  #waiting: Ended[] = [];
  #recording: Promise<void> | null = null;

  constructor(ctx: WebhooksContext, options: Options) {
    this.#ctx = ctx;
    this.#leaseMs = options.leaseMs;
    this.#onRecorded = options.onRecorded;
  }

  /** Whether ends wait for the next statement, or for a new try because the last one failed. */
  get hasWaiting(): boolean {
    return this.#waiting.length > 0;
  }

  get isRecording(): boolean {
    return this.#recording !== null;
  }

  add(ended: Ended): void {
    this.#waiting.push(ended);
    this.record();
  }

  /** Begins to record what waits; does not wait until that is done. */
  record(): void {
    if (!this.hasWaiting) return;
    this.#recording ??= this.#recordWaiting().finally(() => {
      this.#recording = null;
    });
  }

  /** Resolves when nothing is being recorded; if the database failed, ends may still wait. */
  async settled(): Promise<void> {
    await this.#recording;
  }

  async #recordWaiting(): Promise<void> {
    await pause(gatherMs);
    while (this.hasWaiting) {
      const part = this.#waiting.splice(0, recordMax);
      let isDue: boolean;
      try {
        isDue = await recordEnds(this.#ctx, part);
      } catch (error) {
        // Kept for the next call of record(), except those whose lease has ended: their attempts are made again anyway.
        const oldestMs = this.#ctx.clock.nowMs() - this.#leaseMs;
        this.#waiting.push(...part.filter((each) => each.begunAtMs > oldestMs));
        if (this.#isNews(error))
          this.#ctx.log.error(
            { err: error },
            "results of webhook attempts could not be stored; they are stored later, or the attempts are made again",
          );
        return;
      }
      this.#onRecorded(isDue);
    }
  }
}
