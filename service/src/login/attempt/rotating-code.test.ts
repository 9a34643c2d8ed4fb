import assert from "node:assert/strict";
import { createSecretKey } from "node:crypto";
import { test } from "node:test";
import { skewLimitMs } from "../../platform/clock.ts";
import { judgeSession, pageSteps, stepAt } from "./rotating-code.ts";

const key = createSecretKey(Buffer.alloc(32, 7));
const createdAt = 1_700_000_000;
const attempt = { id: "AAAAAAAAAAAAAAAAAAAAAA", isStatic: false };

/** How a process judges the code that the page shows when its own clock is `lateSeconds` behind the page's. */
function judge(shownAt: number, lateSeconds: number): string {
  const { firstStep, macs } = pageSteps(key, { ...attempt, createdAt, expiresAt: createdAt + 120 });
  const step = stepAt(shownAt);
  const mac = macs[step - firstStep] ?? "";
  return judgeSession(key, { loginId: attempt.id, step, mac }, shownAt - lateSeconds);
}

test("the code that a page shows is taken by every process whose clock is right enough to be ready", () => {
  const apart = (2 * skewLimitMs) / 1000;
  for (let shownAt = createdAt; shownAt < createdAt + 120; shownAt += 1)
    for (let late = -apart; late <= apart; late += 1)
      assert.equal(judge(shownAt, late), "rolling", `${shownAt} judged ${late} s late`);
});

test("a code is refused two steps before its own and two steps after it", () => {
  for (const late of [-8, -120, 8, 120]) assert.equal(judge(createdAt, late), "stale");
});

test("no code of a page comes again while its login is open, however long that is", () => {
  const { macs } = pageSteps(key, { ...attempt, createdAt, expiresAt: createdAt + 900 });
  assert.equal(new Set(macs).size, 226);
});

test("a code counts for its login and step alone, by every character of its mac and under its own key", () => {
  const { firstStep, macs } = pageSteps(key, { ...attempt, createdAt, expiresAt: createdAt + 120 });
  const [mac = "", next = ""] = macs;
  const code = { loginId: attempt.id, step: firstStep, mac };
  const judgeWith = (changed: Partial<typeof code>): string =>
    judgeSession(key, { ...code, ...changed }, createdAt);
  assert.equal(judgeWith({}), "rolling");
  for (let at = 0; at < mac.length; at += 1) {
    const other = mac[at] === "A" ? "Q" : "A";
    assert.equal(judgeWith({ mac: mac.slice(0, at) + other + mac.slice(at + 1) }), "forged");
  }
  assert.equal(judgeWith({ mac: mac.slice(0, -1) }), "forged");
  assert.equal(judgeWith({ mac: next }), "forged");
  assert.equal(judgeWith({ loginId: `B${attempt.id.slice(1)}` }), "forged");
  assert.equal(judgeWith({ step: 0 }), "forged");
  const anotherKey = createSecretKey(Buffer.alloc(32, 8));
  assert.equal(judgeSession(anotherKey, code, createdAt), "forged");
});
