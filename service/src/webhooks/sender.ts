import { setTimeout as pause } from "node:timers/promises";
import { uuidv7 } from "../platform/ids.ts";
import { makeAttempt } from "./attempt.ts";
import { holdDeliveries } from "./endpoint-store.ts";
import { recordEnds } from "./attempt-ends.ts";
import { didHang, type Outcome } from "./schedule.ts";
import * as store from "./delivery-store.ts";
import { readTargets, type Target } from "./targets.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** Under way to one endpoint at a time, of all processes together (decisions section 7). */
const slots = 8;
/**
 * Deliveries under way in one process. One that hangs stays for 15 s, so a client domain gets no more while it has as
 * many as are free: it takes half of what the others leave. Of a thousand receivers of one domain a hundred that hang
 * leave the others enough (`npm run bench -- kyc`).
 */
const underWayMaxDefault = 4096;
/** Large bodies that one process holds: up to 14 MiB each. */
const largeMax = 16;
const claimMax = 512;
const endpointsMax = 1024;
/** Longer than an attempt, the wait for its turn and its bookkeeping take. */
const leaseMs = 30_000;
/** What ends within this time is kept by one statement. */
const gatherMs = 5;
const finishMax = 512;
/** Where there is more to do than room, claims pause for as long as the last one took, and for this long at least. */
const hungryMsMin = 20;
/** Waiting deliveries of endpoints in quarantine that one statement holds. */
const heldMax = 5000;
/** Endpoints remembered for hanging; those get one delivery at a time until they answer. */
const slowMax = 1024;

interface UnderWay {
  readonly delivery: store.Delivery;
  readonly lease: string;
}

/** Makes the deliveries of one process. Any number of processes work side by side. */
export class Sender implements AsyncDisposable {
  readonly #ctx: WebhooksContext;
  readonly #underWayMax: number;
  readonly #underWay = new Map<UnderWay, Promise<void>>();
  readonly #slow = new Set<string>();
  readonly #closing = new AbortController();
  #ended: store.Ended[] = [];
  #after = store.firstEndpoint;
  /** Something due was left for want of room: it is asked for again when an attempt has ended. */
  #isHungry = false;
  /** An attempt has ended since the claims under way began, which may not have seen the room. */
  #hasRoom = false;
  #claimMs = 0;
  #isWoken = false;
  #pumping: Promise<void> | null = null;
  #flushing: Promise<void> | null = null;

  constructor(ctx: WebhooksContext, { underWayMax = underWayMaxDefault } = {}) {
    this.#ctx = ctx;
    this.#underWayMax = underWayMax;
  }

  /** Begins everything that is due and has room; does not wait for its end. */
  async pump(): Promise<void> {
    this.#isWoken = true;
    if (this.#ended.length > 0) this.#flush();
    this.#pumping ??= this.#claimWhileWoken().finally(() => this.#endPump());
    return this.#pumping;
  }

  /** Whether ends of attempts wait that the database did not take, which the next pump hands in again. */
  get hasUnrecorded(): boolean {
    return this.#ended.length > 0;
  }

  /** Resolves when nothing is under way; what is due later does not count. */
  async idle(): Promise<void> {
    while (this.#underWay.size > 0 || this.#pumping !== null || this.#flushing !== null) {
      await Promise.all(this.#underWay.values());
      await this.#flushing;
      await this.#pumping;
    }
  }

  /** Lets attempts under way end for as long as the process drains, and gives back the rest. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    const drained = new AbortController();
    const late = pause(this.#ctx.config.drainSeconds * 1000, undefined, drained);
    await this.#pumping?.catch(() => undefined);
    const ends = Promise.all(this.#underWay.values());
    await Promise.race([ends, late]);
    drained.abort();
    late.catch(() => undefined);
    await this.#flushing;
    const left = [...this.#underWay.keys()];
    if (left.length > 0) await this.#release(left);
  }

  async #claimWhileWoken(): Promise<void> {
    while (this.#isWoken && !this.#closing.signal.aborted) {
      this.#isWoken = false;
      await this.#claimAll();
    }
  }

  /** Goes round the endpoints until nothing more can begin. */
  async #claimAll(): Promise<void> {
    let isFullRound = this.#after === store.firstEndpoint;
    let claimedInRound = 0;
    [this.#isHungry, this.#hasRoom] = [false, false];
    while (!this.#closing.signal.aborted) {
      // All of it may be one domain's, so a claim leaves half of what is free.
      const limit = Math.min(claimMax, Math.ceil(this.#free() / 2));
      if (limit <= 0) {
        this.#isHungry = true;
        return;
      }
      const claimed = await this.#claim(limit);
      const count = claimed.deliveries.length;
      if (claimed.due <= count) return;
      // Another process had the turn: what it left is asked for anew.
      if (!claimed.hasTurn) continue;
      this.#isHungry = true;
      claimedInRound += count;
      this.#after = followingOf(claimed, limit);
      if (this.#after !== store.firstEndpoint) continue;
      if (claimedInRound === 0 && isFullRound) return;
      isFullRound = true;
      claimedInRound = 0;
    }
  }

  async #claim(limit: number): Promise<store.Claimed> {
    const nowMs = Math.floor(this.#ctx.clock.nowMs());
    const lease = uuidv7(this.#ctx.clock, this.#ctx.random);
    const { fullDomains, large } = this.#load();
    const startedMs = performance.now();
    const claimed = await store.claim(this.#ctx.db, {
      nowMs,
      lease,
      leasedUntilMs: nowMs + leaseMs,
      limit,
      after: this.#after,
      endpointsMax,
      slots,
      slow: [...this.#slow],
      fullDomains,
      largeMax: Math.max(0, largeMax - large),
    });
    this.#claimMs = performance.now() - startedMs;
    const targetOf = await readTargets(this.#ctx, claimed.deliveries);
    const held: UnderWay[] = [];
    for (const delivery of claimed.deliveries) {
      const target = targetOf(delivery);
      if (target === "held") held.push({ delivery, lease });
      else this.#begin({ delivery, lease }, target);
    }
    if (held.length > 0) await this.#hold(held);
    return claimed;
  }

  #free(): number {
    return this.#underWayMax - this.#underWay.size;
  }

  #load(): { fullDomains: string[]; large: number } {
    const domains = new Map<string, number>();
    let large = 0;
    for (const { delivery } of this.#underWay.keys()) {
      const { clientDomainId: domain } = delivery;
      domains.set(domain, (domains.get(domain) ?? 0) + 1);
      if (delivery.isLarge) large += 1;
    }
    const free = this.#free();
    const full = [...domains].filter(([, count]) => count >= free);
    return { fullDomains: full.map(([domain]) => domain), large };
  }

  async #hold(held: readonly UnderWay[]): Promise<void> {
    const given = held.map(({ delivery, lease }) => ({
      eventId: delivery.eventId,
      endpointId: delivery.endpointId,
      lease,
    }));
    const nowMs = this.#ctx.clock.nowMs();
    await holdDeliveries(this.#ctx.db, given, { nowMs, most: heldMax });
  }

  #begin(work: UnderWay, target: Target | null): void {
    const made = this.#make(work, target).then(
      () => void this.#underWay.delete(work),
      (error: unknown) => {
        // Our own end, not the receiver's: it stays claimed and is given back, or its lease ends.
        if (this.#closing.signal.aborted) return;
        const { eventId } = work.delivery;
        this.#ctx.log.error({ err: error, eventId }, "an attempt broke off");
        this.#underWay.delete(work);
      },
    );
    this.#underWay.set(work, made);
  }

  async #make({ delivery, lease }: UnderWay, target: Target | null): Promise<void> {
    const waitMs = Math.min(store.paceMsMax, delivery.startAtMs - this.#ctx.clock.nowMs());
    if (waitMs > 0) await pause(waitMs, undefined, { signal: this.#closing.signal });
    const { ended, outcome } = await makeAttempt(this.#ctx, delivery, { target, lease });
    if (outcome !== null) this.#noteSpeed(delivery.endpointId, outcome);
    this.#ended.push(ended);
    this.#flush();
  }

  #noteSpeed(endpointId: string, outcome: Outcome): void {
    this.#slow.delete(endpointId);
    if (!didHang(outcome)) return;
    this.#slow.add(endpointId);
    const [oldest] = this.#slow;
    if (this.#slow.size > slowMax && oldest !== undefined) this.#slow.delete(oldest);
  }

  #flush(): void {
    this.#flushing ??= this.#recordEnded().finally(() => {
      this.#flushing = null;
    });
  }

  async #recordEnded(): Promise<void> {
    await pause(gatherMs);
    while (this.#ended.length > 0) {
      const part = this.#ended.splice(0, finishMax);
      try {
        await recordEnds(this.#ctx, part);
      } catch (error) {
        // Kept for the next pump; once a lease is over, the attempt is made again instead.
        const oldestMs = this.#ctx.clock.nowMs() - leaseMs;
        this.#ended.push(...part.filter((each) => each.begunAtMs > oldestMs));
        this.#ctx.log.error({ err: error }, "ends of webhook attempts could not be kept");
        return;
      }
    }
    this.#hasRoom = true;
    if (this.#pumping === null) this.#endPump();
  }

  #endPump(): void {
    this.#pumping = null;
    if (this.#isHungry && this.#hasRoom && !this.#closing.signal.aborted) this.#pumpSoon();
  }

  #pumpSoon(): void {
    this.#isHungry = false;
    this.#pumping = pause(Math.max(hungryMsMin, this.#claimMs))
      .then(async () => this.#claimAll())
      .then(async () => this.#claimWhileWoken())
      .catch((error: unknown) => this.#ctx.log.error({ err: error }, "webhooks are not claimed"))
      .finally(() => this.#endPump());
  }

  async #release(left: readonly UnderWay[]): Promise<void> {
    const given = left.map(({ delivery, lease }) => ({ eventId: delivery.eventId, lease }));
    try {
      await store.release(this.#ctx.db, given, Math.floor(this.#ctx.clock.nowMs()));
    } catch (error) {
      // Their leases end by themselves, and a process that stops has nobody to tell.
      this.#ctx.log.error({ err: error }, "claimed webhooks could not be given back");
    }
  }
}

/** Where the next claim goes on: behind what this one reached, or from the start. */
function followingOf({ deliveries, scanned, lastEndpoint }: store.Claimed, limit: number): string {
  if (deliveries.length >= limit)
    return deliveries.map((each) => each.endpointId).reduce((a, b) => (a > b ? a : b));
  return scanned >= endpointsMax && lastEndpoint !== null ? lastEndpoint : store.firstEndpoint;
}
