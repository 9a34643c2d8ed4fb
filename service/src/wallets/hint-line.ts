import { setTimeout as delay } from "node:timers/promises";
import type { DueHint } from "./push-store.ts";

/** The most hints under way at the same time. */
const placesTotal = 256;
/**
 * A device may name an address that accepts a hint and never answers. Push services answer within a second, so a hint
 * that takes longer gives its place up and goes on without it; at most five times as many are under way until they time
 * out.
 */
const placeMs = 2_000;

/**
 * The hints of one process. Those of each business wait in a line of their own, and a free place goes to the business
 * that has the fewest, so that none holds up the others.
 */
export class HintLine {
  readonly #send: (due: DueHint) => Promise<void>;
  readonly #lines = new Map<string, DueHint[]>();
  /** How many places each business has. */
  readonly #places = new Map<string, number>();
  readonly #underWay = new Set<Promise<void>>();
  #waiting = 0;
  #taken = 0;
  #change = Promise.withResolvers<void>();

  /** @param send throws nothing */
  constructor(send: (due: DueHint) => Promise<void>) {
    this.#send = send;
  }

  get isEmpty(): boolean {
    return this.#waiting === 0 && this.#underWay.size === 0;
  }

  add(hints: readonly DueHint[]): void {
    for (const due of hints) {
      const line = this.#lines.get(due.business) ?? [];
      line.push(due);
      this.#lines.set(due.business, line);
    }
    this.#waiting += hints.length;
    this.#fill();
  }

  /** Resolves when fewer hints wait than there are places. */
  async untilRoom(): Promise<void> {
    while (this.#waiting >= placesTotal) await this.#change.promise;
  }

  /** Resolves when all have been sent, at the latest after this time. */
  async untilEmpty(ms = Infinity): Promise<void> {
    const end = ms === Infinity ? [] : [delay(ms, true, { ref: false })];
    while (!this.isEmpty) {
      const isOver = await Promise.race([this.#change.promise, ...end]);
      if (isOver === true) return;
    }
  }

  #fill(): void {
    while (this.#taken < placesTotal) {
      const due = this.#next();
      if (due === null) return;
      this.#begin(due);
    }
  }

  /** The next of the business that has the fewest places. */
  #next(): DueHint | null {
    const placesOf = (business: string): number => this.#places.get(business) ?? 0;
    const [fewest] = [...this.#lines.keys()].toSorted((a, b) => placesOf(a) - placesOf(b));
    const line = fewest === undefined ? undefined : this.#lines.get(fewest);
    const due = line?.shift();
    if (fewest === undefined || line === undefined || due === undefined) return null;
    this.#lines.delete(fewest);
    // Inserted again, behind businesses with as many places.
    if (line.length > 0) this.#lines.set(fewest, line);
    this.#waiting -= 1;
    return due;
  }

  #begin(due: DueHint): void {
    const sending = this.#send(due).finally(() => {
      this.#underWay.delete(sending);
      this.#tell();
    });
    this.#underWay.add(sending);
    void this.#holdPlace(due.business, sending);
  }

  async #holdPlace(business: string, sending: Promise<void>): Promise<void> {
    this.#take(business, 1);
    await Promise.race([sending, delay(placeMs, undefined, { ref: false })]);
    this.#take(business, -1);
    this.#fill();
    this.#tell();
  }

  #take(business: string, places: 1 | -1): void {
    const left = (this.#places.get(business) ?? 0) + places;
    if (left === 0) this.#places.delete(business);
    else this.#places.set(business, left);
    this.#taken += places;
  }

  #tell(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}
