import assert from "node:assert/strict";
import { test } from "node:test";
import { clampWindow } from "./signature-request.ts";

test("members have 5 minutes to 24 hours to vote, and 24 hours where nothing else was asked", () => {
  const rows: [number | null, number][] = [
    [null, 86_400],
    [-1, 300],
    [0, 300],
    [1, 300],
    [299, 300],
    [300, 300],
    [301, 301],
    [86_399, 86_399],
    [86_400, 86_400],
    [86_401, 86_400],
    [2 ** 40, 86_400],
  ];
  for (const [asked, window] of rows) assert.equal(clampWindow(asked), window, String(asked));
});
