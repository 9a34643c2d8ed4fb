import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { closeSync, existsSync, openSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const main = join(import.meta.dirname, "../../main.ts");

await test("a result that the disk does not take is one line and status 1", async (t) => {
  if (!existsSync("/dev/full")) {
    t.skip("this system has no disk that is always full");
    return;
  }
  const full = openSync("/dev/full", "w");
  const args = ["--conditions=source", main, "--help"];
  const child = spawn(process.execPath, args, { stdio: ["ignore", full, "pipe"] });
  assert.ok(child.stderr !== null);
  const [said, exit] = await Promise.all([text(child.stderr), once(child, "exit")]);
  const lost = "svc: what was done stands, but its result cannot be written (ENOSPC)\n";
  assert.deepEqual([said, exit], [lost, [1, null]]);
  closeSync(full);
});
