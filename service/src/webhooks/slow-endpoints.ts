import { didHang, type Outcome } from "./schedule.ts";

const slowMax = 1024;

/** Endpoints that timed out when this process last called them: they get one delivery at a time until they answer. */
export class SlowEndpoints {
  readonly #ids = new Set<string>();

  note(endpointId: string, outcome: Outcome): void {
    this.#ids.delete(endpointId);
    if (!didHang(outcome)) return;
    this.#ids.add(endpointId);
    const [oldest] = this.#ids;
    if (this.#ids.size > slowMax && oldest !== undefined) this.#ids.delete(oldest);
  }

  list(): string[] {
    return [...this.#ids];
  }
}
