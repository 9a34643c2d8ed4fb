import assert from "node:assert/strict";
import { test } from "node:test";
import { refusalDelay } from "./refusal-delay.ts";

test("a refusal is told after any number of seconds from 5 to 30", () => {
  const bounds: number[] = [];
  const delays = [0, 1, 24, 25].map((drawn) =>
    refusalDelay({
      below: (bound) => {
        bounds.push(bound);
        return drawn;
      },
    }),
  );
  assert.deepEqual(delays, [5, 6, 29, 30]);
  assert.deepEqual([...new Set(bounds)], [26]);
});
