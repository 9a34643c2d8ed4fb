import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalDelay } from "./refusal-delay.ts";

test("a refusal is told 5 to 30 seconds after the vote, whatever part of its second had passed then", () => {
  const bounds: number[] = [];
  const delays = [0, 1, 23, 24].map((drawn) =>
    refusalDelay({
      below: (bound) => {
        bounds.push(bound);
        return drawn;
      },
    }),
  );
  assert.deepEqual([...new Set(bounds)], [25]);
  const votedAtMs = [1_000_000, 1_000_999];
  const waits = delays.flatMap((delay) =>
    votedAtMs.map((ms) => Math.floor(ms / 1000) + delay - ms / 1000),
  );
  assert.equal(Math.min(...waits) >= 5, true);
  assert.equal(Math.max(...waits) <= 30, true);
  assert.deepEqual(delays, [6, 7, 29, 30]);
});
