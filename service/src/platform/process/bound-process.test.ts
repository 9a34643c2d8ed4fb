import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startBoundProcess } from "./bound-process.ts";

test("a child that minds no other signal is killed, also where nobody is left to do it", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-bound-"));
  t.after(() => rmSync(directory, { recursive: true }));
  // Seconds pass at once for the shell beside the child, and never for this process.
  const sleep = join(directory, "sleep");
  writeFileSync(sleep, "#!/bin/sh\n");
  chmodSync(sleep, 0o755);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const started = Promise.withResolvers<string>();
  const deaf = "trap '' INT QUIT; echo up; exec /bin/sleep 600";
  const child = startBoundProcess(["/bin/sh", "-c", deaf], {
    account: null,
    log: started.resolve,
    environment: { PATH: directory },
  });
  assert.equal(await started.promise, "up");
  assert.equal(await child.stop(), 137);
});

test("a child that is stopped before it minds signals ends soon after it does", async () => {
  const started = Promise.withResolvers<string>();
  // What comes too early is lost.
  const late = `let signals = 0;
    process.on("SIGINT", () => (signals += 1) === 2 && process.exit(3));
    setTimeout(() => undefined, 600_000);
    console.log("up")`;
  const child = startBoundProcess([process.execPath, "-e", late], {
    account: null,
    log: started.resolve,
  });
  assert.equal(await started.promise, "up");
  assert.equal(await child.stop(), 3, "by SIGINT");
});

test("after 20 seconds a child that minds nothing is killed with all that it has started", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const started = Promise.withResolvers<string>();
  // Its own children hold its output, so the end is seen only when they are gone too.
  const deaf = "trap '' INT QUIT; /bin/sleep 600 & echo up; exec /bin/sleep 600";
  const child = startBoundProcess(["/bin/sh", "-c", deaf], { account: null, log: started.resolve });
  assert.equal(await started.promise, "up");
  const isOver = t.mock.fn();
  const stopped = child.stop().finally(isOver);
  t.mock.timers.tick(19_999);
  await new Promise(setImmediate);
  assert.equal(isOver.mock.callCount(), 0);
  t.mock.timers.tick(1);
  assert.equal(await stopped, 137);
});

test("a child is told nothing of this process but a locale and a path, and stands in no directory of it", async () => {
  const lines: string[] = [];
  const child = startBoundProcess(["/bin/sh", "-c", "pwd; /usr/bin/env; exit 7"], {
    account: null,
    log: (line) => void lines.push(line),
    environment: { GIVEN: "1" },
  });
  assert.equal(await child.exited, 7);
  const [directory, ...variables] = lines;
  assert.equal(directory, "/");
  const names = variables.map((line) => line.split("=")[0] ?? "").filter((name) => name !== "_");
  assert.deepEqual(names.toSorted(), ["GIVEN", "LC_ALL", "PATH", "PWD"]);
  assert.ok(variables.includes("LC_ALL=C") && variables.includes("GIVEN=1"));
  assert.ok(variables.some((line) => line.startsWith("PATH=/usr/local/bin:")));
});
