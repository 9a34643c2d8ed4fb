import assert from "node:assert/strict";
import { test } from "node:test";
import { nameOf, nextStepOf, type Outcome } from "./schedule.ts";

const nowMs = 1_800_000_000_000;
const far = nowMs / 1000 + 35 * 86_400;
const answered = (status: number, retryAfter: string | null = null): Outcome => ({
  kind: "answered",
  status,
  retryAfter,
});
const failed = (
  reason: "blocked" | "unreachable" | "timeout" | "too_large" | "error",
): Outcome => ({
  kind: "failed",
  reason,
});

/** Seconds until the next attempt, or what ends the schedule. */
function waitOf(
  outcome: Outcome,
  over: { step?: number; fraction?: number; purgeAt?: number } = {},
) {
  const next = nextStepOf(outcome, { step: 0, nowMs, purgeAt: far, fraction: 0, ...over });
  return next.kind === "again" ? (next.atMs - nowMs) / 1000 : next.kind;
}

const hour = 3600;
const pauses = [
  5,
  30,
  120,
  600,
  1800,
  hour,
  2 * hour,
  5 * hour,
  10 * hour,
  14 * hour,
  20 * hour,
  24 * hour,
];

for (const [step, pause] of pauses.entries()) {
  test(`attempt ${step + 2} comes ${pause} s after attempt ${step + 1}, at most a fifth later`, () => {
    assert.equal(waitOf(answered(500), { step }), pause);
    assert.equal(waitOf(answered(500), { step, fraction: 1 }), pause * 1.2);
  });
}

test("late in the schedule an overloaded or hanging receiver is left alone no shorter than any other", () => {
  for (const outcome of [answered(429), failed("timeout")])
    assert.deepEqual(
      pauses.map((_, step) => waitOf(outcome, { step })),
      pauses.map((pause) => Math.max(60, pause)),
    );
});

test("thirteen attempts are made, within 76 to 93 hours", () => {
  assert.equal(waitOf(answered(500), { step: 12 }), "given_up");
  const hours = pauses.reduce((sum, each) => sum + each) / hour;
  assert.equal(Math.floor(hours), 76);
  assert.ok(hours * 1.2 < 93);
});

const cases: readonly [string, Outcome, number | string][] = [
  ["an answer 200 delivers the event", answered(200), "delivered"],
  ["an answer 204 delivers the event", answered(204), "delivered"],
  ["an answer 299 delivers the event", answered(299), "delivered"],
  ["a redirect 300 fails", answered(300), 5],
  ["a redirect 302 fails", answered(302), 5],
  ["an answer 304 fails", answered(304), 5],
  ["an answer 410 fails like another refusal", answered(410), 5],
  ["an address that is not allowed fails", failed("blocked"), 5],
  ["an answer without an end fails", failed("too_large"), 5],
  ["a time-out fails", failed("timeout"), 60],
  [
    "an answer 503 whose body never ends fails",
    { kind: "answered", status: 503, retryAfter: null, isLate: true },
    60,
  ],
  ["an answer 429 fails", answered(429), 60],
  ["an answer 429 waits as long as its Retry-After asks", answered(429, "90"), 90],
  ["an answer 429 whose Retry-After asks for a second waits for longer", answered(429, "1"), 60],
  ["an answer 503 waits as long as its Retry-After asks", answered(503, "30"), 30],
  ["a Retry-After of a second shortens nothing", answered(503, "1"), 5],
  ["a Retry-After may be a date", answered(503, new Date(nowMs + 45_000).toUTCString()), 45],
  [
    "a Retry-After that is past asks for nothing",
    answered(503, new Date(nowMs - 1).toUTCString()),
    5,
  ],
  ["a Retry-After of a week counts as one of a day", answered(503, "604800"), 86_400],
  ["a Retry-After that is no time asks for nothing", answered(503, "soon"), 5],
  ["a negative Retry-After asks for nothing", answered(503, "-5"), 5],
];

for (const [name, outcome, expected] of cases) {
  const then =
    expected === "delivered" ? "no attempt follows" : `the next attempt is due after ${expected} s`;
  test(`${name}: ${then}`, () => assert.equal(waitOf(outcome), expected));
}

test("no attempt is planned past the purge: the last one comes a minute before it", () => {
  const purgeAt = nowMs / 1000 + 3600;
  assert.equal(waitOf(answered(503, "86400"), { purgeAt }), 3540);
  assert.equal(waitOf(answered(503), { purgeAt: nowMs / 1000 + 60 }), "given_up");
  assert.equal(waitOf(answered(503), { purgeAt: nowMs / 1000 - 1 }), "given_up");
});

test("outcomes are counted under their names", () => {
  assert.deepEqual(
    [201, 299, 300, 399, 400].map((status) => nameOf(answered(status))),
    ["delivered", "delivered", "redirect", "redirect", "refused"],
  );
  assert.equal(nameOf(failed("timeout")), "timeout");
});
