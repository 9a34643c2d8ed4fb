// A start pays for what a service needs, and for nothing besides: Node's HTTP client is 60 ms and some MiB, and to
// compile everything anew twice the CPU time of a start.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { openWorld } from "../world.ts";

const compose = pathToFileURL(join(import.meta.dirname, "../../service/src/compose.ts")).href;

test("a start loads no HTTP client", async () => {
  const program = `await import(${JSON.stringify(compose)}); process.stdout.write(process.moduleLoadList.join("\\n"));`;
  const { stdout } = await promisify(execFile)(process.execPath, [
    "--conditions=source",
    "--input-type=module",
    "--eval",
    program,
  ]);
  const loaded = stdout.split("\n");
  assert.ok(loaded.includes("NativeModule http"), "the list has what is loaded");
  assert.ok(!loaded.includes("NativeModule internal/deps/undici/undici"));
});

test("a process that is killed leaves what it compiled to the next one", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-compiled-"));
  t.after(() => rmSync(directory, { recursive: true }));
  await using world = await openWorld();
  await using process = await world.startProcess({ NODE_COMPILE_CACHE: directory });
  await process.kill();
  const files = readdirSync(directory, { recursive: true, withFileTypes: true });
  assert.ok(files.filter((file) => file.isFile()).length > 100);
});
