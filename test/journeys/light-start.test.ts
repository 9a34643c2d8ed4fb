// A start pays for what a service needs, and for nothing besides: Node's HTTP client is 60 ms and some MiB.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";

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
