import assert from "node:assert/strict";
import { isLoopbackAddress } from "./http/client-address.ts";
import { type Clock, databaseNowMs } from "./clock.ts";
import type { Ctx } from "./context.ts";
import type { Queryable } from "./database/db.ts";
import { purgeInBatches } from "./database/purge.ts";
import { workInBatches } from "./database/work-in-batches.ts";
import { forgetOldest } from "./forget-oldest.ts";
import * as store from "./rate-limit-store.ts";

/** A token bucket: full at first, `burst` at most, refilled evenly. It must fill within a day. */
export interface Limit {
  readonly perSecond: number;
  readonly burst: number;
  /**
   * The address of the caller, which exempts loopback unless the limiter was configured otherwise (`LIMIT_LOOPBACK`).
   * Without it nobody is exempt, as for a limit that was set for one organization.
   */
  readonly address?: string;
}

export type Taken =
  /** `remaining`: whole tokens left, as far as this process knows. */
  | { readonly ok: true; readonly remaining: number }
  /** Whole seconds until the same cost can be paid, at least 1. */
  | { readonly ok: false; readonly retryAfterSeconds: number };

/**
 * Limits shared by all processes of the installation (decisions section 8). They count by the database's clock: a
 * process whose clock is ahead would otherwise use up what others get until then.
 */
export interface RateLimiter {
  /**
   * Takes `cost` tokens (1 unless given, whole, at most the burst) from the bucket `name`, or none. Over any span of
   * time, all processes together never hand out more than the burst and what was refilled in that time.
   *
   * Usually without a database call: tokens come in leases, and an empty bucket is remembered until it has refilled.
   *
   * @throws if the database cannot be reached: a call whose limit cannot be counted is not let through
   */
  take(name: string, limit: Limit, cost?: number): Promise<Taken>;
}

/** Failed secrets per client and address: 10 in 10 minutes (decisions section 8). */
export const failedSecretLimit: Limit = { perSecond: 10 / 600, burst: 10 };

/** How many buckets a process remembers; the oldest is forgotten first, along with its tokens. */
const bucketsMax = 20_000;
const fillSecondsMax = 86_400;
/** Longer leases would save only a few more calls. */
const epochSecondsMax = 10;
/** Buckets of one statement, so that callers wait for their rows for a moment only. */
const turnedBackMax = 1_000;
/** A bucket whose time is further ahead was written by a process with a wrong clock. */
const aheadMsMax = 10_000;

interface Waiter {
  readonly cost: number;
  resolve(taken: Taken): void;
  reject(error: unknown): void;
}

/** One bucket, as far as this process knows. */
interface Bucket {
  /** Leased tokens; they are void from `expiresMs` on. */
  tokens: number;
  expiresMs: number;
  /** Tokens that the shared bucket held at `seenMs`: it cannot hold more than that and the refill since then. */
  left: number;
  seenMs: number;
  waiting: Waiter[];
  isDrawing: boolean;
}

/** @param options.limitLoopback whether limits with an address count for loopback too */
export function createRateLimiter(
  ctx: Pick<Ctx, "db" | "clock">,
  options: { limitLoopback: boolean },
): RateLimiter {
  const buckets = new Map<string, Bucket>();
  return {
    async take(name, limit, cost = 1) {
      assertLimit(limit, cost);
      const isExempt = !options.limitLoopback && isLoopbackAddress(limit.address ?? "");
      if (isExempt) return { ok: true, remaining: limit.burst };
      const bucket = findBucket(buckets, name, limit);
      const settled = bucket.isDrawing ? null : settle(bucket, { limit, cost, clock: ctx.clock });
      if (settled !== null) return settled;
      return new Promise((resolve, reject) => {
        bucket.waiting.push({ cost, resolve, reject });
        if (!bucket.isDrawing) void draw(ctx, { name, limit, bucket });
      });
    },
  };
}

/** A limit of this many per minute. @param address exempt if it is loopback */
export function perMinute(count: number, address?: string): Limit {
  return { perSecond: count / 60, burst: count, ...(address !== undefined && { address }) };
}

/** Deletes a shared bucket in the caller's transaction, because whom it counted is no longer known here. */
export async function forgetRateBucket(tx: Queryable, name: string): Promise<void> {
  await store.deleteBucket(tx, name);
}

/** Removes the shared buckets that must be full again, whatever their limit is. @returns how many */
export async function purgeRateBuckets(ctx: {
  readonly db: Queryable;
  readonly clock: Clock;
}): Promise<number> {
  const before = ctx.clock.nowMs() / 1000 - fillSecondsMax;
  return purgeInBatches(async (limit) => store.deleteBuckets(ctx.db, before, limit));
}

/** Lets shared buckets refill that a process with a wrong clock drew from: they would wait until its time. */
export async function turnBackRateBuckets({ db, clock }: Pick<Ctx, "db" | "clock">): Promise<void> {
  const now = databaseNowMs(clock) / 1000;
  const after = now + aheadMsMax / 1000;
  await workInBatches(turnedBackMax, async (limit) =>
    store.turnBackBuckets(db, { after, now, limit }),
  );
}

function assertLimit(limit: Limit, cost: number): void {
  assert(limit.perSecond > 0 && limit.burst >= 1, "a limit lets something through");
  assert(limit.burst / limit.perSecond <= fillSecondsMax, "a bucket fills within a day");
  assert(Number.isInteger(cost) && cost >= 1 && cost <= limit.burst, "the cost fits the burst");
}

function findBucket(buckets: Map<string, Bucket>, name: string, limit: Limit): Bucket {
  const known = buckets.get(name);
  if (known !== undefined) return known;
  const fresh: Bucket = {
    tokens: 0,
    expiresMs: 0,
    left: limit.burst,
    seenMs: 0,
    waiting: [],
    isDrawing: false,
  };
  buckets.set(name, fresh);
  forgetOldest(buckets, bucketsMax);
  return fresh;
}

/** Answers from what this process knows; null if only the database can tell. */
function settle(
  bucket: Bucket,
  { limit, cost, clock }: { limit: Limit; cost: number; clock: Clock },
): Taken | null {
  const nowMs = databaseNowMs(clock);
  if (bucket.seenMs > nowMs + aheadMsMax) {
    bucket.tokens = 0;
    return null;
  }
  const refilled = (Math.max(0, nowMs - bucket.seenMs) / 1000) * limit.perSecond;
  const shared = Math.min(limit.burst, bucket.left + refilled);
  if (nowMs >= bucket.expiresMs) bucket.tokens = 0;
  if (bucket.tokens >= cost) {
    // Leased tokens are not in the shared bucket, whose refill this process only estimates.
    const left = Math.min(shared, limit.burst - bucket.tokens);
    bucket.tokens -= cost;
    return { ok: true, remaining: Math.floor(bucket.tokens + left) };
  }
  return shared + store.roundingTokens >= cost ? null : refuse(limit, cost - shared);
}

function refuse(limit: Limit, missing: number): Taken {
  const seconds = Math.ceil((missing - store.roundingTokens) / limit.perSecond);
  return { ok: false, retryAfterSeconds: Math.max(1, seconds) };
}

/**
 * Leases are drawn for the current epoch and void after it, and while they last the shared bucket refills only up to
 * the burst less all that was leased in it: what the bucket and the processes hold together never exceeds the burst. An
 * epoch is a quarter of the time a bucket takes to fill at most, and no lease holds more in reserve than comes back in
 * one: what a caller loses with a void lease would not have come back any sooner.
 */
function epochSecondsOf(limit: Limit): number {
  return Math.min(epochSecondsMax, limit.burst / limit.perSecond / 4);
}

interface Draw {
  readonly name: string;
  readonly limit: Limit;
  readonly bucket: Bucket;
}

/** Draws leases until nobody waits; everyone who waits at the start of a draw shares it. */
async function draw(ctx: Pick<Ctx, "db" | "clock">, work: Draw): Promise<void> {
  work.bucket.isDrawing = true;
  while (work.bucket.waiting.length > 0) {
    const waiting = work.bucket.waiting.splice(0);
    try {
      await drawFor(ctx, work, waiting);
      for (const each of waiting) each.resolve(spend(work, each.cost));
    } catch (error) {
      for (const each of waiting) each.reject(error);
    }
  }
  work.bucket.isDrawing = false;
}

async function drawFor(
  ctx: Pick<Ctx, "db" | "clock">,
  { name, limit, bucket }: Draw,
  waiting: readonly Waiter[],
): Promise<void> {
  const costs = waiting.map((each) => each.cost);
  const nowMs = databaseNowMs(ctx.clock);
  const epochSeconds = epochSecondsOf(limit);
  const epoch = Math.floor(nowMs / 1000 / epochSeconds);
  const lease = await store.drawLease(ctx.db, name, {
    perSecond: limit.perSecond,
    burst: limit.burst,
    epoch,
    now: nowMs / 1000,
    demand: costs.reduce((total, cost) => total + cost, 0),
    spareMax: Math.floor(limit.perSecond * epochSeconds),
    leastCost: Math.min(...costs),
  });
  bucket.tokens = lease.leased + (nowMs < bucket.expiresMs ? bucket.tokens : 0);
  bucket.expiresMs = (epoch + 1) * epochSeconds * 1000;
  bucket.left = lease.left;
  bucket.seenMs = nowMs;
}

/** Tokens that were drawn for a waiting caller belong to it, even if the epoch ended meanwhile. */
function spend({ limit, bucket }: Draw, cost: number): Taken {
  if (bucket.tokens < cost) return refuse(limit, cost - bucket.tokens - bucket.left);
  bucket.tokens -= cost;
  return { ok: true, remaining: Math.floor(bucket.tokens + bucket.left) };
}
