import assert from "node:assert/strict";
import { after, test } from "node:test";
import type { Clock } from "./clock.ts";
import { type Db, openDb } from "./database/db.ts";
import {
  createRateLimiter,
  failedSecretLimit,
  perMinute,
  purgeRateBuckets,
  type Limit,
  type RateLimiter,
  turnBackRateBuckets,
} from "./rate-limit.ts";
import { openTestDatabase } from "./database/test-database.ts";
import { drawLease } from "./rate-limit-store.ts";

const database = await openTestDatabase();
const dbs = [1, 2].map(() => openDb({ ...database.connection, connections: 4 }));
after(async () => {
  for (const db of dbs) await db.close();
  await database[Symbol.asyncDispose]();
});
const [one, two] = dbs as [(typeof dbs)[0], (typeof dbs)[0]];

interface MovableClock extends Clock {
  ms: number;
}

function openClock(): MovableClock {
  return {
    ms: 1_700_000_000_000,
    nowMs() {
      return this.ms;
    },
    now() {
      return Math.floor(this.ms / 1000);
    },
  };
}

let bucketCount = 0;
const newName = (): string => `test:${(bucketCount += 1)}`;

/** Two processes over one database, with one time. */
function openLimiters(clock: Clock): [RateLimiter, RateLimiter] {
  const options = { limitLoopback: false };
  return [
    createRateLimiter({ db: one, clock }, options),
    createRateLimiter({ db: two, clock }, options),
  ];
}

async function takeMany(
  limiters: readonly RateLimiter[],
  work: { name: string; limit: Limit; times: number },
): Promise<number> {
  const taken = await Promise.all(
    Array.from({ length: work.times }, async (_, index) =>
      limiters[index % limiters.length]!.take(work.name, work.limit),
    ),
  );
  return taken.filter((each) => each.ok).length;
}

const limit = { perSecond: 100, burst: 400 };

test("two processes together hand out exactly one burst", async () => {
  const limiters = openLimiters(openClock());
  const name = newName();
  assert.equal(await takeMany(limiters, { name, limit, times: 1000 }), 400);
  assert.equal(await takeMany(limiters, { name, limit, times: 10 }), 0);
});

test("a burst is handed out to callers that come one after the other, too", async () => {
  const [limiter] = openLimiters(openClock());
  const name = newName();
  let count = 0;
  while ((await limiter.take(name, limit)).ok) count += 1;
  assert.equal(count, 400);
});

test("tokens come back at the rate of the limit", async () => {
  const clock = openClock();
  const [limiter] = openLimiters(clock);
  const name = newName();
  await takeMany([limiter], { name, limit, times: 500 });
  for (let second = 0; second < 5; second += 1) {
    clock.ms += 1000;
    assert.equal(await takeMany([limiter], { name, limit, times: 500 }), 100);
  }
  clock.ms += 60_000;
  assert.equal(await takeMany([limiter], { name, limit, times: 500 }), 400);
});

/** A bucket without leases: what it would refuse must never have been handed out. */
function assertNeverExceeds(bound: Limit, handedOutMs: readonly number[]): void {
  let tokens = bound.burst;
  let atMs = handedOutMs[0] ?? 0;
  for (const ms of handedOutMs) {
    tokens = Math.min(bound.burst, tokens + ((ms - atMs) / 1000) * bound.perSecond) - 1;
    atMs = ms;
    assert.ok(tokens > -1e-2, `one too many at ${ms}`);
  }
}

const limits: Limit[] = [
  { perSecond: 100, burst: 400 },
  { perSecond: 5, burst: 300 },
  { perSecond: 50, burst: 40 },
  { perSecond: 7.5, burst: 16 },
  failedSecretLimit,
];

for (const each of limits) {
  test(`over any time two processes stay within ${each.perSecond}/s and ${each.burst} at once`, async () => {
    const clock = openClock();
    const limiters = openLimiters(clock);
    const name = newName();
    const handedOut: number[] = [];
    const fillMs = (each.burst / each.perSecond) * 1000;
    for (let round = 0; round < 150; round += 1) {
      const idles = [0, Math.random() * fillMs * 0.02, Math.random() * fillMs * 0.3, fillMs * 1.2];
      clock.ms += Math.floor(idles[Math.floor(Math.random() * 4)] ?? 0);
      // Leases are held while the bucket refills: now one process asks, now the other, now both.
      const asked = [[limiters[0]], [limiters[1]], limiters][round % 3] ?? limiters;
      const times = 1 + Math.floor((Math.random() * each.burst) / 4);
      const count = await takeMany(asked, { name, limit: each, times });
      for (let index = 0; index < count; index += 1) handedOut.push(clock.ms);
    }
    assert.ok(handedOut.length > each.burst);
    assertNeverExceeds(each, handedOut);
  });
}

test("a caller that comes now and then gets all that an hour allows, from either process", async () => {
  const clock = openClock();
  const limiters = openLimiters(clock);
  const name = newName();
  const hourly = { perSecond: 60 / 3600, burst: 60 };
  for (let index = 0; index < 60; index += 1) {
    clock.ms += 15_000;
    assert.ok((await limiters[index % 2]!.take(name, hourly)).ok, `refused after ${index}`);
  }
});

test("what a process holds back is not refilled meanwhile", async () => {
  const clock = openClock();
  const limiters = openLimiters(clock);
  const name = newName();
  assert.equal(await takeMany([limiters[0]], { name, limit, times: 1 }), 1);
  clock.ms += 900;
  const [other, holder] = [limiters[1], limiters[0]];
  const taken = await takeMany([other], { name, limit, times: 500 });
  const held = await takeMany([holder], { name, limit, times: 500 });
  assert.ok(held > 1, "the first process held a lease");
  assert.ok(taken + held <= 400, `${taken} and ${held}`);
});

test("what a process held back is void in the next epoch, when the others have it again", async () => {
  const clock = openClock();
  const [holder, other] = openLimiters(clock);
  const name = newName();
  assert.equal(await takeMany([holder], { name, limit, times: 1 }), 1);
  clock.ms += 1000;
  assert.equal(await takeMany([other], { name, limit, times: 500 }), 400);
  assert.equal(await takeMany([holder], { name, limit, times: 500 }), 0);
});

test("who waits while an epoch ends gets nothing of what was held back in it", async () => {
  const clock = openClock();
  const { promise: gate, resolve: open } = Promise.withResolvers<void>();
  const slow: Db = {
    ...one,
    query: async (statement) => {
      await gate;
      return one.query(statement);
    },
  };
  const limiter = createRateLimiter({ db: slow, clock }, { limitLoopback: false });
  const name = newName();
  const first = limiter.take(name, limit);
  const waiting = limiter.take(name, limit);
  clock.ms += 1000;
  open();
  assert.ok((await first).ok && (await waiting).ok);
  assert.equal(await takeMany([limiter], { name, limit, times: 500 }), 399);
});

test("a busy caller costs few database calls, a refused one none", async () => {
  const clock = openClock();
  const [limiter] = openLimiters(clock);
  const name = newName();
  const before = one.callsTotal;
  for (let index = 0; index < 100; index += 1) {
    clock.ms += 10;
    assert.ok((await limiter.take(name, { perSecond: 1000, burst: 4000 })).ok);
  }
  assert.ok(one.callsTotal - before <= 2, `${one.callsTotal - before} calls`);

  await takeMany([limiter], { name: "refused", limit, times: 500 });
  const refusedFrom = one.callsTotal;
  for (let index = 0; index < 100; index += 1) {
    assert.equal((await limiter.take("refused", limit)).ok, false);
  }
  assert.equal(one.callsTotal, refusedFrom);
});

test("no caller is told of more than the limit allows", async () => {
  const clock = openClock();
  const [limiter] = openLimiters(clock);
  const name = newName();
  const left: number[] = [];
  for (let at = 0; at < 40; at += 1) {
    const taken = await limiter.take(name, limit);
    left.push(taken.ok ? taken.remaining : -1);
    clock.ms += 150;
  }
  assert.ok(Math.min(...left) > 0 && Math.max(...left) < limit.burst, left.join(" "));
});

test("callers that wait together share one database call", async () => {
  const [limiter] = openLimiters(openClock());
  const before = one.callsTotal;
  assert.equal(await takeMany([limiter], { name: newName(), limit, times: 300 }), 300);
  assert.ok(one.callsTotal - before <= 2);
});

test("a caller that waits as long as it was told is let through", async () => {
  const clock = openClock();
  const [limiter, other] = openLimiters(clock);
  const name = newName();
  for (let index = 0; index < 10; index += 1)
    assert.ok((await limiter.take(name, failedSecretLimit)).ok);
  const refused = await limiter.take(name, failedSecretLimit);
  assert.deepEqual(refused, { ok: false, retryAfterSeconds: 60 });
  assert.deepEqual(await other.take(name, failedSecretLimit), refused);
  clock.ms += 59_000;
  assert.deepEqual(await limiter.take(name, failedSecretLimit), {
    ok: false,
    retryAfterSeconds: 1,
  });
  clock.ms += 1000;
  assert.ok((await limiter.take(name, failedSecretLimit)).ok);
  assert.equal((await limiter.take(name, failedSecretLimit)).ok, false);
  // 49 times a forty-ninth is less than one here.
  const uneven = { perSecond: 1 / 49, burst: 1 };
  const second = newName();
  assert.ok((await limiter.take(second, uneven)).ok);
  assert.deepEqual(await limiter.take(second, uneven), { ok: false, retryAfterSeconds: 49 });
  clock.ms += 49_000;
  assert.ok((await limiter.take(second, uneven)).ok);
});

test("a cost is taken whole or not at all", async () => {
  const [limiter] = openLimiters(openClock());
  const name = newName();
  const small = { perSecond: 1, burst: 10 };
  assert.deepEqual(await limiter.take(name, small, 7), { ok: true, remaining: 3 });
  assert.deepEqual(await limiter.take(name, small, 7), { ok: false, retryAfterSeconds: 4 });
  assert.deepEqual(await limiter.take(name, small, 3), { ok: true, remaining: 0 });
  await assert.rejects(limiter.take(name, small, 11), /fits the burst/);
  await assert.rejects(limiter.take(name, small, 0), /fits the burst/);
});

test("a call that is refused takes nothing from the other processes", async () => {
  const [limiter, other] = openLimiters(openClock());
  const name = newName();
  const small = { perSecond: 1, burst: 10 };
  assert.ok((await other.take(name, small, 7)).ok);
  assert.equal((await limiter.take(name, small, 7)).ok, false);
  assert.ok((await other.take(name, small, 3)).ok);
});

test("who waits together with a dearer call is not refused with it", async () => {
  const [limiter, other] = openLimiters(openClock());
  const name = newName();
  const small = { perSecond: 1, burst: 10 };
  assert.ok((await other.take(name, small, 5)).ok);
  const takes = [1, 7, 3].map(async (cost) => limiter.take(name, small, cost));
  const [, dear, cheap] = await Promise.all(takes);
  assert.deepEqual([dear, cheap?.ok], [{ ok: false, retryAfterSeconds: 3 }, true]);
});

test("each name has a limit of its own", async () => {
  const [limiter] = openLimiters(openClock());
  const tight = { perSecond: 1, burst: 1 };
  assert.ok((await limiter.take(newName(), tight)).ok);
  assert.ok((await limiter.take(newName(), tight)).ok);
});

test("a limit that was lowered holds at once", async () => {
  const clock = openClock();
  const [limiter, other] = openLimiters(clock);
  const name = newName();
  assert.ok((await limiter.take(name, limit)).ok);
  assert.ok((await takeMany([other], { name, limit: { perSecond: 1, burst: 5 }, times: 50 })) <= 5);
});

test("loopback is exempt unless limits count for it", async () => {
  const clock = openClock();
  const strict = createRateLimiter({ db: one, clock }, { limitLoopback: true });
  const [lenient] = openLimiters(clock);
  const name = newName();
  const loopback = { perSecond: 1, burst: 2, address: "::1" };
  assert.equal(await takeMany([lenient], { name, limit: loopback, times: 50 }), 50);
  assert.equal(await takeMany([strict], { name, limit: loopback, times: 50 }), 2);
  const perMinuteToo = { name: newName(), limit: perMinute(2, "127.0.0.1"), times: 50 };
  assert.equal(await takeMany([lenient], perMinuteToo), 50);
  const remote = { ...loopback, address: "203.0.113.9" };
  assert.equal(await takeMany([lenient], { name: newName(), limit: remote, times: 50 }), 2);
});

test("a process remembers 20,000 buckets, and forgets the oldest", async () => {
  let draws = 0;
  const generous: Pick<Db, "query"> = {
    async query<Row extends object>() {
      draws += 1;
      return [{ leased: 2, left: 398 }] as unknown as Row[];
    },
  };
  const ctx = { db: { ...one, ...generous }, clock: openClock() };
  const limiter = createRateLimiter(ctx, { limitLoopback: false });
  for (let at = 0; at < 20_001; at += 1) await limiter.take(`remembered:${at}`, limit);
  await limiter.take("remembered:1", limit);
  assert.equal(draws, 20_001);
  await limiter.take("remembered:0", limit);
  assert.equal(draws, 20_002);
});

test("a limit that cannot be counted is not passed", async () => {
  const gone = openDb({ ...database.connection, connections: 2 });
  await gone.close();
  const limiter = createRateLimiter({ db: gone, clock: openClock() }, { limitLoopback: true });
  await assert.rejects(limiter.take("gone", limit));
  await assert.rejects(limiter.take("gone", limit));
});

test("buckets that were left alone for long are removed", async () => {
  const clock = openClock();
  const [limiter] = openLimiters(clock);
  await purgeRateBuckets({ db: one, clock: { now: () => 2e9, nowMs: () => 2e12 } });
  await limiter.take(newName(), limit);
  clock.ms += 86_000_000;
  await limiter.take(newName(), limit);
  assert.equal(await purgeRateBuckets({ db: one, clock }), 0);
  clock.ms += 1_000_000;
  assert.equal(await purgeRateBuckets({ db: one, clock }), 1);
});

test("a process whose clock is late turns back neither the refill nor the epoch", async () => {
  const wish = { perSecond: 1, burst: 16, demand: 16, spareMax: 0, leastCost: 1 };
  const draw = async (name: string, epoch: number, at: number, demand = 16): Promise<number> =>
    (await drawLease(one, name, { ...wish, demand, epoch, now: at })).leased;
  assert.equal(await draw("late:refill", 1, 1000), 16);
  assert.equal(await draw("late:refill", 1, 900), 0);
  assert.equal(await draw("late:refill", 2, 1000), 0);
  assert.equal(await draw("late:epoch", 1, 1000), 16);
  assert.equal(await draw("late:epoch", 0, 1000), 0);
  assert.equal(await draw("late:epoch", 1, 1010), 0);
  assert.equal(await draw("late:left", 1, 1000, 10), 10);
  assert.equal(await draw("late:left", 1, 900, 10), 6);
});

test("a new bucket gives its burst at most, however many wait", async () => {
  const wish = { perSecond: 1, burst: 16, demand: 20, spareMax: 0, leastCost: 1 };
  const drawn = await drawLease(one, newName(), { ...wish, epoch: 1, now: 1000 });
  assert.deepEqual(drawn, { leased: 16, left: 0 });
});

/** A clock that is ahead of the database's, whose distance is known once it was measured. */
function openWrongClock({ ms }: MovableClock, aheadMs: number) {
  let knownMs = 0;
  const clock = { ...openClock(), ms: ms + aheadMs, aheadMs: () => knownMs };
  return Object.assign(clock, { measure: () => (knownMs = aheadMs) });
}

const hourMs = 3_600_000;
const steady = { perSecond: 10, burst: 40 };

test("a process that knows its clock to be an hour ahead takes nothing from what others get later", async () => {
  const clock = openClock();
  const wrong = openWrongClock(clock, hourMs);
  wrong.measure();
  const [[limiter], [ahead]] = [openLimiters(clock), openLimiters(wrong)];
  const name = newName();
  assert.equal(await takeMany([ahead], { name, limit: steady, times: 10 }), 10);
  assert.equal(await takeMany([limiter, ahead], { name, limit: steady, times: 70 }), 30);
  clock.ms += 2000;
  assert.equal(await takeMany([limiter], { name, limit: steady, times: 50 }), 20);
});

test("what a process took before it knew that its clock was ahead holds up nobody for longer than the next look", async () => {
  const clock = openClock();
  const wrong = openWrongClock(clock, hourMs);
  const [[limiter], [ahead]] = [openLimiters(clock), openLimiters(wrong)];
  const name = newName();
  assert.equal(await takeMany([ahead], { name, limit: steady, times: 50 }), 40);
  wrong.measure();
  await turnBackRateBuckets({ db: one, clock });
  assert.equal(await takeMany([limiter, ahead], { name, limit: steady, times: 50 }), 0);
  for (const each of [clock, wrong]) each.ms += 2000;
  assert.equal(await takeMany([limiter], { name, limit: steady, times: 10 }), 10);
  assert.equal(await takeMany([ahead], { name, limit: steady, times: 50 }), 10);
});

test("a bucket within 10 s of a process is not turned back by it", async () => {
  const clock = openClock();
  const [[limiter], [late]] = [openLimiters(clock), openLimiters(openWrongClock(clock, -10_000))];
  const name = newName();
  assert.equal(await takeMany([limiter], { name, limit: steady, times: 50 }), 40);
  await turnBackRateBuckets({ db: one, clock: openWrongClock(clock, -10_000) });
  assert.equal(await takeMany([limiter, late], { name, limit: steady, times: 50 }), 0);
  clock.ms += 1000;
  assert.equal(await takeMany([limiter], { name, limit: steady, times: 50 }), 10);
});
