import assert from "node:assert/strict";
import { test } from "node:test";
import type { Outcome } from "./schedule.ts";
import { SlowEndpoints } from "./slow-endpoints.ts";

const hung: Outcome = { kind: "failed", reason: "timeout" };
const answered: Outcome = { kind: "answered", status: 500, retryAfter: null };

test("an endpoint counts as slow from when it hangs until it answers anything", () => {
  const slow = new SlowEndpoints();
  slow.note("a", hung);
  slow.note("b", answered);
  assert.deepEqual(slow.list(), ["a"]);
  slow.note("a", answered);
  assert.deepEqual(slow.list(), []);
});

test("of more than 1024 slow endpoints those that hung last are remembered", () => {
  const slow = new SlowEndpoints();
  const ids = Array.from({ length: 1024 }, (_, at) => `${at}`);
  for (const id of [...ids, "0", "new"]) slow.note(id, hung);
  assert.deepEqual(slow.list(), [...ids.slice(2), "0", "new"]);
});
