// A start pays for what a service needs, and for nothing besides: Node's HTTP client is 60 ms and some MiB, and to
// compile everything anew twice the CPU time of a start.
import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { until } from "../patience.ts";
import { openWorld } from "../world.ts";

/** Makes a process print the modules that it has loaded, on SIGUSR2. */
const teller = `process.on("SIGUSR2", () => console.log([...process.moduleLoadList, "told"].join("\\n")));`;

test("a start says when it is ready and loads no HTTP client, and one that is killed leaves what it compiled to the next", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-compiled-"));
  t.after(() => rmSync(directory, { recursive: true }));
  await using world = await openWorld();
  const lines: string[] = [];
  await using started = await world.startProcess(
    {
      NODE_COMPILE_CACHE: directory,
      NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(teller)}`,
    },
    { onLine: (line) => void lines.push(line) },
  );
  assert.deepEqual(lines, [`ready ${world.baseUrl}`]);
  process.kill(started.pid, "SIGUSR2");
  await until("it has told all", async () => lines.includes("told") || null);
  await started.kill();
  assert.ok(lines.includes("NativeModule http"), "the list has what is loaded");
  assert.ok(!lines.includes("NativeModule internal/deps/undici/undici"));
  const files = readdirSync(directory, { recursive: true, withFileTypes: true });
  assert.ok(files.filter((file) => file.isFile()).length > 100);
});
