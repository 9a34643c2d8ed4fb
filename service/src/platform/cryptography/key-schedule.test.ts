import assert from "node:assert/strict";
import { test } from "node:test";
import {
  planKeys,
  planRotation,
  planTakeover,
  publishedOf,
  type ScheduledKey,
  statusOf,
} from "./key-schedule.ts";

const now = 1_000_500;
const clock = { now: () => now, nowMs: () => now * 1000 };
const key = (kid: string, startsAt: number): ScheduledKey => ({ kid, startsAt });
const [old, current, next] = [key("a", 5), key("b", 1_000_000), key("c", 1_001_000)];

const plan = (...keys: ScheduledKey[]) => planKeys(keys, { now, lifetimeSeconds: 1000 });

test("a plan has one key per slot and a successor for it, and begins with what is published already", () => {
  assert.deepEqual(plan(), { start: null, make: [1_000_000, 1_001_000] });
  assert.deepEqual(plan(current), { start: null, make: [1_001_000] });
  assert.deepEqual(plan(current, next), { start: null, make: [] });
  assert.deepEqual(plan(next), { start: "c", make: [1_001_000] });
  assert.deepEqual(plan(key("d", 1_002_000), next), { start: "c", make: [] });
  // After a year without the service the old key goes on until a published one takes over.
  assert.deepEqual(plan(old), { start: null, make: [1_001_000] });
});

test("a new key is known for a day before it signs, or for half of a shorter lifetime", () => {
  const day = 86_400;
  const lifetimeSeconds = 90 * day;
  const begin = 200 * lifetimeSeconds;
  const startOf = (secondsBefore: number, lifetime = lifetimeSeconds) =>
    planKeys([old], { now: begin - secondsBefore, lifetimeSeconds: lifetime }).make;
  assert.deepEqual(startOf(day), [begin]);
  assert.deepEqual(startOf(day - 1), [begin + lifetimeSeconds]);
  assert.deepEqual(startOf(1800, 3600), [begin]);
  assert.deepEqual(startOf(1799, 3600), [begin + 3600]);
});

test("a rotation starts the published successor, once a second", () => {
  assert.equal(planRotation([current, next, key("d", 1_002_000)], now), next);
  assert.equal(planRotation([current], now), null);
  assert.equal(planRotation([key("b", now), next], now), null);
});

test("a successor takes over from a revoked key also where clocks are late, but never beside another", () => {
  assert.deepEqual(planTakeover([old, current, next], "b", clock), { kid: "c", startsAt: now - 4 });
  const young = key("x", now - 2);
  assert.deepEqual(planTakeover([young, current, next], "b", clock), {
    kid: "x",
    startsAt: now - 4,
  });
  assert.deepEqual(planTakeover([young, key("y", now - 1), next], "y", clock), {
    kid: "c",
    startsAt: now - 1,
  });
  assert.deepEqual(planTakeover([current], "b", clock), { kid: null, startsAt: now - 4 });
  assert.deepEqual(planTakeover([young, key("y", now - 1)], "y", clock), {
    kid: null,
    startsAt: now - 1,
  });
});

test("a key is published from before it signs until its last signature is dead", () => {
  const keys = [old, current, next];
  const kids = (retentionSeconds: number): string =>
    publishedOf(keys, { now, retentionSeconds })
      .map(({ kid }) => kid)
      .join("");
  assert.equal(kids(500), "bc");
  assert.equal(kids(501), "abc");
  assert.deepEqual(
    keys.map((each) => statusOf(keys, each, now)),
    ["retired", "current", "next"],
  );
});
