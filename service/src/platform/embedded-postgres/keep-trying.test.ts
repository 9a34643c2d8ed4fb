import assert from "node:assert/strict";
import { test } from "node:test";
import { keepTrying } from "./keep-trying.ts";

test("a server that does not start again is logged once a minute, and its own lines once it runs or has tried for a minute", async (t) => {
  // A pause between two tries keeps no process alive; the service has others who do.
  const alive = setInterval(() => undefined, 1000);
  t.after(() => clearInterval(alive));
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const lines: string[] = [];
  let told: string[] = [];
  let tries = 0;
  const start = async (say: (line: string) => void): Promise<string> => {
    tries += 1;
    nowMs += 20_000;
    say(`PANIC in try ${tries}`);
    if (tries < 5) throw new Error(`startup process (PID ${1000 + tries}) exited`);
    if (tries === 5) throw new Error("another fault");
    nowMs += 41_000;
    say("still recovering");
    told = lines.slice(-2);
    return "running";
  };
  const log = (line: string): void => void lines.push(line);
  const over = new AbortController().signal;
  assert.equal(await keepTrying(start, { log, over, everyMs: 0 }), "running");
  assert.deepEqual(told, ["PANIC in try 6", "still recovering"]);
  const failed = "the embedded PostgreSQL does not start again";
  assert.deepEqual(lines, [
    "PANIC in try 1",
    `${failed}: Error: startup process (PID 1001) exited`,
    `${failed}, 4 times: Error: startup process (PID 1004) exited`,
    `${failed}, 5 times: Error: another fault`,
    "PANIC in try 6",
    "still recovering",
  ]);
});
