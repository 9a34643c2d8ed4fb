import assert from "node:assert/strict";
import { test } from "node:test";
import { createNewsFilter } from "./repetition.ts";

test("of failures that say the same, one a minute is news, and so is each that says something else", (t) => {
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const isNews = createNewsFilter();
  const seen = [
    [0, "away"],
    [1000, "away"],
    [59_999, "away"],
    [60_000, "away"],
    [61_000, "refused"],
    [62_000, "away"],
    [63_000, "away"],
  ].map(([atMs, what]) => {
    nowMs = Number(atMs);
    return isNews(new Error(String(what)));
  });
  assert.deepEqual(seen, [true, false, false, true, true, true, false]);
});
