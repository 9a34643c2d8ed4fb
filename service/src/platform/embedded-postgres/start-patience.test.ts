import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { openStartPatience } from "./start-patience.ts";

const minuteMs = 60_000;

/** @returns what has become of a start after so many minutes, in each of which the server says the same */
async function watchStart(t: TestContext, line: string, minutes: number): Promise<string> {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  using patience = openStartPatience();
  for (let minute = 0; minute < minutes; minute += 1) {
    patience.hear(line);
    t.mock.timers.tick(minuteMs);
  }
  return await Promise.race([patience.late, Promise.resolve("waited for")]);
}

for (const [what, line] of [
  [
    "flushes its files",
    "LOG:  syncing data directory (fsync), elapsed time: 10.00 s, current path: ./base/5/1259",
  ],
  [
    "replays what it had written",
    "LOG:  redo in progress, elapsed time: 130.00 s, current LSN: 0/2C4A85B8",
  ],
] as const)
  test(`a server that ${what} for an hour after a crash, and tells of it, is waited for`, async (t) => {
    assert.equal(await watchStart(t, line, 60), "waited for");
  });

test("a server that tells callers that it starts, and of no progress, is late after two minutes", async (t) => {
  const line = "FATAL:  the database system is starting up";
  assert.equal(await watchStart(t, line, 1), "waited for");
  t.mock.timers.reset();
  assert.equal(await watchStart(t, line, 2), "late");
});

test("a start that is called off is waited for no more, whether it has begun or not", async () => {
  const over = new AbortController();
  using begun = openStartPatience(over.signal);
  over.abort();
  await assert.rejects(begun.late, /called off/);
  using later = openStartPatience(over.signal);
  await assert.rejects(later.late, /called off/);
});
