import type { Pool } from "undici";

const sweepEveryMs = 10_000;
const unusedMsMax = 60_000;

interface Entry {
  dispatcher: Pool;
  usedMs: number;
}

/**
 * Connections that are kept between requests, each under a key that contains everything that was checked before it was
 * opened. Idle connections close by themselves; a place that was not used for a minute is forgotten.
 */
export class KeptConnections {
  readonly #entries = new Map<string, Entry>();
  #sweptMs = 0;

  find(key: string, open: () => Pool): Pool {
    const nowMs = performance.now();
    if (nowMs - this.#sweptMs > sweepEveryMs) this.#sweep(nowMs);
    const entry = this.#entries.get(key) ?? { dispatcher: open(), usedMs: 0 };
    entry.usedMs = nowMs;
    this.#entries.set(key, entry);
    return entry.dispatcher;
  }

  /** Call it when no request is under way any more. */
  close(): void {
    for (const { dispatcher } of this.#entries.values()) discard(dispatcher);
    this.#entries.clear();
  }

  /** A minute is longer than any request takes, so no request is under way on connections that are swept. */
  #sweep(nowMs: number): void {
    this.#sweptMs = nowMs;
    for (const [key, { dispatcher, usedMs }] of this.#entries) {
      if (nowMs - usedMs <= unusedMsMax) continue;
      this.#entries.delete(key);
      discard(dispatcher);
    }
  }
}

/** Not awaited: it also waits for a peer that never finishes its TLS handshake. */
function discard(pool: Pool): void {
  pool.destroy().catch(() => undefined);
}
