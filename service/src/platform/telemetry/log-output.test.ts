import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { patienceMs } from "../../../../test/patience.ts";

const url = (name: string): string => JSON.stringify(`file://${join(import.meta.dirname, name)}`);

/** A process that logs `count` lines, then one more, and then ends as `end` says. */
function startLogging(
  output: "pipe" | number,
  { count, end }: { count: number; end: "process.exit(0)" | "" },
) {
  const program = `
    import { createLog } from ${url("log.ts")};
    import { outliveReaders } from ${url("../process/closed-pipe.ts")};
    outliveReaders();
    const log = createLog({ level: "info" });
    for (let line = 0; line < ${count}; line += 1) log.info({ line }, "work");
    setTimeout(() => {
      log.info("the last line");
      ${end}
    }, 100);`;
  const args = ["--conditions=source", "--input-type=module", "--eval", program];
  return spawn(process.execPath, args, { stdio: ["ignore", output, "pipe"], timeout: patienceMs });
}

const manyLines = 50_000;

for (const end of ["process.exit(0)", ""] as const)
  await test(`a process whose log nobody reads ends all the same${end && " when it is told to"}`, async () => {
    const child = startLogging("pipe", { count: manyLines, end });
    child.stdout?.pause();
    assert.deepEqual(await once(child, "exit"), [0, null]);
    child.stdout?.destroy();
  });

await test("a process goes on and ends well while the disk does not take its log", async (t) => {
  if (!existsSync("/dev/full")) {
    t.skip("this system has no disk that is always full");
    return;
  }
  const full = openSync("/dev/full", "w");
  const child = startLogging(full, { count: 3, end: "process.exit(0)" });
  assert.ok(child.stderr !== null);
  const [said, exit] = await Promise.all([text(child.stderr), once(child, "exit")]);
  assert.deepEqual([said, exit], ["", [0, null]]);
  closeSync(full);
});

await test("a reader gets every line in order, up to the last", async () => {
  const child = startLogging("pipe", { count: 5000, end: "" });
  assert.ok(child.stdout !== null);
  const lines = (await text(child.stdout)).trimEnd().split("\n");
  const parsed = lines.map((line) => JSON.parse(line) as { line?: number; msg: string });
  assert.deepEqual(
    parsed.map(({ line, msg }) => line ?? msg),
    [...Array.from({ length: 5000 }, (_, line) => line), "the last line"],
  );
});
