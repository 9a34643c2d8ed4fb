import { setTimeout as pause } from "node:timers/promises";
import { uuidv7 } from "../platform/ids.ts";
import { makeAttempt } from "./attempt.ts";
import { AttemptEndQueue } from "./attempt-end-queue.ts";
import { advanceRound, beginRound, endpointsMax } from "./claim-round.ts";
import * as store from "./delivery-store.ts";
import { holdDeliveries } from "./endpoint-store.ts";
import { type Room, roomBeside } from "./sender-load.ts";
import { SlowEndpoints } from "./slow-endpoints.ts";
import { readTargets, type Target } from "./targets.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** Deliveries under way to one endpoint at a time, by all processes together (decisions section 7). */
const slots = 8;
/** Deliveries under way in one process. */
const underWayMaxDefault = 4096;
/** Longer than the wait for the endpoint's pace, the attempt and its recording take together. */
const leaseMs = 30_000;
/** If more is due than there is room for, claims pause for as long as the last one took, but at least this long. */
const roundPauseMsMin = 20;
/**
 * After claiming, a process rests three times as long as that took, but at most this long: a claim costs nearly the
 * same for one delivery as for many, so events that are announced meanwhile are claimed together.
 */
const restMsMax = 50;
const restPerClaim = 3;
/** Further deliveries to endpoints in quarantine that one statement holds. */
const heldMax = 5000;

interface UnderWay {
  readonly delivery: store.Delivery;
  readonly lease: string;
}

/**
 * Claims deliveries that are due and makes them, for one process; any number of processes work side by side. A `pump`
 * claims until nothing more can begin; attempts that end make room, and then start the next pump by themselves.
 */
export class Sender implements AsyncDisposable {
  readonly #ctx: WebhooksContext;
  readonly #underWayMax: number;
  readonly #underWay = new Map<UnderWay, Promise<void>>();
  readonly #slow = new SlowEndpoints();
  readonly #ends: AttemptEndQueue;
  readonly #closing = new AbortController();
  /** Id of the endpoint after which the next round of claims begins. */
  #after = store.firstEndpoint;
  /** How long the last claim took. */
  #claimMs = 0;
  /** By the clock of `performance.now()`. */
  #restsUntilMs = 0;
  /** A pump was requested since the last claims began. */
  #isWoken = false;
  /** Due deliveries were left because there was no room, or a failed one is due again at once. */
  #hasDueLeft = false;
  /** Attempts have ended since the last claims began, which may not have seen the new room. */
  #hasNewRoom = false;
  #pumping: Promise<void> | null = null;

  constructor(ctx: WebhooksContext, { underWayMax = underWayMaxDefault } = {}) {
    this.#ctx = ctx;
    this.#underWayMax = underWayMax;
    const onRecorded = (isDue: boolean): void => {
      this.#hasNewRoom = true;
      this.#hasDueLeft ||= isDue;
      if (this.#pumping === null) this.#endPump();
    };
    this.#ends = new AttemptEndQueue(ctx, { leaseMs, onRecorded });
  }

  /** Begins all deliveries that are due and have room; does not wait for their end. */
  async pump(): Promise<void> {
    this.#isWoken = true;
    this.#ends.record();
    this.#pumping ??= this.#claimWhileWoken();
    return this.#pumping;
  }

  /** Whether results of attempts are still to be recorded; the next pump tries again. */
  get hasUnrecorded(): boolean {
    return this.#ends.hasWaiting;
  }

  /** Resolves when nothing is under way, or when this process closes. */
  async idle(): Promise<void> {
    while (!this.#closing.signal.aborted && this.#isBusy) {
      await Promise.all(this.#underWay.values());
      await this.#ends.settled();
      await this.#pumping;
    }
  }

  get #isBusy(): boolean {
    return this.#underWay.size > 0 || this.#pumping !== null || this.#ends.isRecording;
  }

  /** Lets attempts under way end within the drain time, then gives the rest back to other processes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort();
    const drained = new AbortController();
    const late = pause(this.#ctx.config.drainSeconds * 1000, undefined, drained);
    await this.#pumping?.catch(() => undefined);
    const ends = Promise.all(this.#underWay.values());
    await Promise.race([ends, late]);
    drained.abort();
    late.catch(() => undefined);
    await this.#ends.settled();
    const left = [...this.#underWay.keys()];
    if (left.length > 0) await this.#release(left);
  }

  async #claimWhileWoken(): Promise<void> {
    try {
      while (this.#isWoken && !this.#closing.signal.aborted) {
        await this.#rest();
        this.#isWoken = false;
        await this.#claimAll();
      }
    } finally {
      // In the same tick as the last look at #isWoken: a later call of pump() finds no pump and starts one.
      this.#endPump();
    }
  }

  /** Waits until the rest is over, or this process closes. */
  async #rest(): Promise<void> {
    const restMs = this.#restsUntilMs - performance.now();
    if (restMs <= 0) return;
    await pause(restMs, undefined, this.#closing).catch(() => undefined);
  }

  async #claimAll(): Promise<void> {
    const startedMs = performance.now();
    await this.#claimRounds();
    const endedMs = performance.now();
    this.#restsUntilMs = endedMs + Math.min(restMsMax, restPerClaim * (endedMs - startedMs));
  }

  /** Goes round the endpoints until nothing more can begin. */
  async #claimRounds(): Promise<void> {
    let round = beginRound(this.#after);
    [this.#hasDueLeft, this.#hasNewRoom] = [false, false];
    while (!this.#closing.signal.aborted) {
      const underWay = [...this.#underWay.keys()].map(({ delivery }) => delivery);
      const room = roomBeside(underWay, this.#underWayMax);
      if (room.limit === 0) {
        this.#hasDueLeft = true;
        return;
      }
      const claimed = await this.#claim(round.after, room);
      const next = advanceRound(round, claimed, room.limit);
      round = next.round;
      this.#after = round.after;
      this.#hasDueLeft ||= next.hasDueLeft;
      if (next.isOver) return;
    }
  }

  async #claim(after: string, room: Room): Promise<store.Claimed> {
    const nowMs = Math.floor(this.#ctx.clock.nowMs());
    const lease = uuidv7(this.#ctx.clock, this.#ctx.random);
    const startedMs = performance.now();
    const claimed = await store.claim(this.#ctx.db, {
      nowMs,
      lease,
      leasedUntilMs: nowMs + leaseMs,
      limit: room.limit,
      after,
      endpointsMax,
      slots,
      slow: this.#slow.list(),
      fullDomains: room.fullDomains,
      largeMax: room.large,
      fullOfLarge: room.fullOfLarge,
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
        // This process is closing: the delivery stays in #underWay, so that it is given back.
        if (this.#closing.signal.aborted) return;
        const { eventId } = work.delivery;
        this.#ctx.log.error(
          { err: error, eventId },
          "an attempt to deliver a webhook broke off; it is made again",
        );
        this.#underWay.delete(work);
      },
    );
    this.#underWay.set(work, made);
  }

  async #make(work: UnderWay, found: Target | null): Promise<void> {
    const { delivery, lease } = work;
    const target = (await this.#hadToWait(delivery))
      ? await this.#findAnew(delivery, found)
      : found;
    if (target === "held") return this.#hold([work]);
    const { ended, outcome } = await makeAttempt(this.#ctx, delivery, { target, lease });
    if (outcome !== null) this.#slow.note(delivery.endpointId, outcome);
    this.#ends.add(ended);
  }

  /** Waits until the delivery may start. @returns whether that took any time */
  async #hadToWait({ startAtMs }: store.Delivery): Promise<boolean> {
    const waitMs = Math.min(store.paceMsMax, startAtMs - this.#ctx.clock.nowMs());
    if (waitMs > 0) await pause(waitMs, undefined, { signal: this.#closing.signal });
    return waitMs > 0;
  }

  /** The target of a delivery that waited: a KYB endpoint may have been changed or put into quarantine meanwhile. */
  async #findAnew(delivery: store.Delivery, found: Target | null): Promise<Target | "held" | null> {
    if (delivery.channel !== "kyb") return found;
    const targetOf = await readTargets(this.#ctx, [delivery]);
    return targetOf(delivery);
  }

  #endPump(): void {
    this.#pumping = null;
    if (this.#hasDueLeft && this.#hasNewRoom && !this.#closing.signal.aborted) this.#pumpSoon();
  }

  #pumpSoon(): void {
    this.#hasDueLeft = false;
    this.#pumping = pause(Math.max(roundPauseMsMin, this.#claimMs))
      .then(async () => this.#claimAll())
      .then(
        async () => this.#claimWhileWoken(),
        (error: unknown) => {
          this.#endPump();
          throw error;
        },
      )
      .catch((error: unknown) =>
        this.#ctx.log.error(
          { err: error },
          "due webhooks could not be fetched; they are fetched again later",
        ),
      );
  }

  async #release(left: readonly UnderWay[]): Promise<void> {
    const given = left.map(({ delivery, lease }) => ({ eventId: delivery.eventId, lease }));
    try {
      await store.release(this.#ctx.db, given, Math.floor(this.#ctx.clock.nowMs()));
    } catch (error) {
      // Not thrown: their leases end by themselves, and the process has to go on closing.
      this.#ctx.log.error(
        { err: error },
        "webhooks that were not sent could not be given back; they are sent later",
      );
    }
  }
}
