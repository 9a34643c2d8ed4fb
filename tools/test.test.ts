import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const root = join(import.meta.dirname, "..");

async function runMatching(pattern: string): Promise<{ printed: string; status: number | null }> {
  const args = ["--conditions=source", join(import.meta.dirname, "test.ts"), pattern];
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  const [printed, faults] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { printed: printed + faults, status: child.exitCode };
}

test("a run fails where a test fails, its runner is killed or nothing matches", async () => {
  const directory = mkdtempSync(join(tmpdir(), "svc-run-"));
  try {
    const write = (name: string, body: string): void =>
      writeFileSync(
        join(directory, `${name}.mjs`),
        `import { test } from "node:test"; test("${name}", () => { ${body} });`,
      );
    write("wrong-1", 'throw new Error("wrong");');
    write("wrong-2", 'console.log("the other ran");');
    write("killed", 'process.kill(process.ppid, "SIGKILL");');
    const within = relative(root, directory);
    const [wrong, killed, none] = await Promise.all(
      ["wrong-*", "killed", "none"].map(async (name) => runMatching(`${within}/${name}.mjs`)),
    );
    assert.deepEqual([wrong?.status, killed?.status, none?.status], [1, 1, 1]);
    assert.match(wrong?.printed ?? "", /the other ran/);
    assert.match(none?.printed ?? "", /no test file matches/);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
