import { setTimeout as pause } from "node:timers/promises";
import { openRepetition } from "../platform/telemetry/repetition.ts";
import { recordEnds } from "./attempt-ends.ts";
import type { Ended } from "./delivery-store.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** Attempts that end within this time are recorded by one statement. */
const gatherMs = 5;
const recordMax = 512;

interface Options {
  readonly leaseMs: number;
  /**
   * Called after each statement, as its attempts have made room by then: under load further ends may wait without end.
   *
   * @param isDue whether any of what it recorded is due again at once
   */
  readonly onRecorded: (isDue: boolean) => void;
}

/** Ends of one process's attempts on their way to the database, many in one statement. */
export class AttemptEndQueue {
  readonly #ctx: WebhooksContext;
  readonly #leaseMs: number;
  readonly #onRecorded: Options["onRecorded"];
  readonly #isNews = openRepetition();
  #waiting: Ended[] = [];
  #recording: Promise<void> | null = null;

  constructor(ctx: WebhooksContext, options: Options) {
    this.#ctx = ctx;
    this.#leaseMs = options.leaseMs;
    this.#onRecorded = options.onRecorded;
  }

  /** Whether ends wait, for the next statement or because the database did not take them. */
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

  /** Begins to record what waits; does not wait for its end. */
  record(): void {
    if (!this.hasWaiting) return;
    this.#recording ??= this.#recordWaiting().finally(() => {
      this.#recording = null;
    });
  }

  /** Resolves when nothing is being recorded; what the database did not take still waits then. */
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
        // They wait until they are asked for again; once a lease is over, the attempt is made again instead.
        const oldestMs = this.#ctx.clock.nowMs() - this.#leaseMs;
        this.#waiting.push(...part.filter((each) => each.begunAtMs > oldestMs));
        if (this.#isNews(error))
          this.#ctx.log.error({ err: error }, "ends of webhook attempts could not be kept");
        return;
      }
      this.#onRecorded(isDue);
    }
  }
}
