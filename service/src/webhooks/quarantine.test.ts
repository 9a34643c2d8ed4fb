import assert from "node:assert/strict";
import { test } from "node:test";
import { type EndedAttempt, type Health, healthAfter } from "./quarantine.ts";

const minuteMs = 60_000;
const hourMs = 60 * minuteMs;
const fit: Health = {
  isActive: true,
  isResuming: false,
  failures: 0,
  failingSinceMs: null,
  refusals: 0,
  refusedSinceMs: null,
};
const failed = (begunAtMs: number): EndedAttempt => ({
  outcome: "refused",
  status: 500,
  begunAtMs,
});
const delivered = (begunAtMs: number): EndedAttempt => ({
  outcome: "delivered",
  status: 204,
  begunAtMs,
});
const blocked = (begunAtMs: number): EndedAttempt => ({
  outcome: "blocked",
  status: null,
  begunAtMs,
});

/** Makes a number of attempts, spread evenly over a time. */
const evenly = (
  count: number,
  spanMs: number,
  attempt: (atMs: number) => EndedAttempt,
): EndedAttempt[] =>
  Array.from({ length: count }, (_, at) => attempt(Math.floor((at * spanMs) / (count - 1))));

const isOut = (attempts: readonly EndedAttempt[]): boolean =>
  !attempts.reduce(healthAfter, fit).isActive;

for (const [name, count, spanMs, attempt] of [
  ["72 hours of failures, ten of them", 10, 72 * hourMs, failed],
  ["100 failures within an hour", 100, hourMs, failed],
  ["three refusals by the address policy within ten minutes", 3, 10 * minuteMs, blocked],
] as const)
  test(`${name} are enough for a quarantine, one fewer or a moment less is not`, () => {
    assert.equal(isOut(evenly(count - 1, spanMs, attempt)), false);
    assert.equal(isOut(evenly(count, spanMs - 1, attempt)), false);
    assert.equal(isOut(evenly(count, spanMs, attempt)), true);
    assert.equal(isOut(evenly(count + 1, spanMs, attempt)), true);
    assert.equal(isOut(evenly(count, spanMs + 1, attempt)), true);
  });

test("one 410 is enough for a quarantine, another refusal is not", () => {
  assert.equal(isOut([{ outcome: "refused", status: 410, begunAtMs: 0 }]), true);
  for (const status of [400, 404, 409, 411, 429, 500, 503])
    assert.equal(isOut([{ outcome: "refused", status, begunAtMs: 0 }]), false);
});

test("a 2xx restarts every count", () => {
  assert.equal(isOut([...evenly(99, hourMs, failed), delivered(hourMs), failed(hourMs)]), false);
  assert.equal(
    isOut([blocked(0), blocked(5 * minuteMs), delivered(6 * minuteMs), blocked(10 * minuteMs)]),
    false,
  );
  const resuming = { ...fit, isResuming: true };
  assert.deepEqual([blocked(0), failed(1), delivered(2)].reduce(healthAfter, resuming), fit);
  assert.equal(healthAfter(resuming, failed(0)).isResuming, true);
  assert.equal(healthAfter(resuming, delivered(0)).isResuming, false);
});

test("the ten minutes of refusals by the address policy begin with the first of them, not with a failure", () => {
  const refusals = [blocked(9 * minuteMs), blocked(10 * minuteMs), blocked(11 * minuteMs)];
  assert.equal(isOut([failed(0), ...refusals]), false);
  assert.equal(isOut([failed(0), ...refusals, blocked(19 * minuteMs)]), true);
  const others = [failed(5 * minuteMs), failed(6 * minuteMs)];
  assert.equal(isOut([blocked(0), ...others, blocked(10 * minuteMs)]), false, "two refusals");
});

test("a fault of the service does not count, and a late 2xx does not end the quarantine", () => {
  assert.deepEqual(healthAfter(fit, { outcome: "error", status: null, begunAtMs: 0 }), fit);
  const out = { ...fit, isActive: false };
  assert.equal(
    healthAfter(out, { outcome: "delivered", status: 200, begunAtMs: 0 }).isActive,
    false,
  );
});

test("a late failure does not end a quarantine either", () => {
  const gone: EndedAttempt = { outcome: "refused", status: 410, begunAtMs: 0 };
  for (const late of [failed(1), blocked(1), failed(2 * hourMs)])
    assert.equal(isOut([gone, late]), true, late.outcome);
});
