import assert from "node:assert/strict";
import { test } from "node:test";

import { readRetryAfter } from "./answer.ts";

const waitOf = (members: Record<string, string>) => readRetryAfter(new Headers(members));

test("how long to wait is read from seconds and from a date, by the clock of whoever answered", () => {
  const date = "Sun, 06 Nov 1994 08:49:37 GMT";
  const rows: [retryAfter: string, seconds: number | undefined][] = [
    ["0", 0],
    ["120", 120],
    ["Sun, 06 Nov 1994 08:49:44 GMT", 7],
    ["Sunday, 06-Nov-94 08:50:37 GMT", 60],
    ["Sun Nov  6 08:50:37 1994", 60],
    ["Sun, 06 Nov 1994 08:00:00 GMT", 0],
    ["", undefined],
    ["-1", undefined],
    ["7.5", undefined],
    ["1994-11-06T08:49:44Z", undefined],
    ["Sun, 96 Nov 1994 08:49:44 GMT", undefined],
    ["soon", undefined],
  ];
  for (const [retryAfter, seconds] of rows)
    assert.equal(waitOf({ date, "retry-after": retryAfter }), seconds, retryAfter);
  assert.equal(waitOf({}), undefined);
});

test("a date without the answer's own is compared with this machine's clock", (context) => {
  context.mock.timers.enable({ apis: ["Date"], now: Date.UTC(1994, 10, 6, 8, 49, 36, 500) });
  assert.equal(waitOf({ "retry-after": "Sun, 06 Nov 1994 08:49:44 GMT" }), 8);
});
