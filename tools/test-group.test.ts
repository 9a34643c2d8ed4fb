import assert from "node:assert/strict";
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

const runner = join(import.meta.dirname, "test-group.ts");

/** Runs modules as one group. @returns what they printed, the names of failed tests, and the status */
function runGroup(modules: Readonly<Record<string, string>>): {
  lines: string[];
  failed: string[];
  status: number | null;
} {
  const directory = mkdtempSync(join(tmpdir(), "svc-group-"));
  try {
    for (const [name, text] of Object.entries(modules)) {
      const head = 'import { after, afterEach, before, beforeEach, test } from "node:test";';
      writeFileSync(join(directory, name), `${head}\n${text}`);
    }
    const files = Object.keys(modules).map((name) => join(directory, name));
    const call = `await runTestFiles(${JSON.stringify(directory)}, ${JSON.stringify(files)});`;
    const entry = join(directory, "group.mjs");
    writeFileSync(entry, `import { runTestFiles } from ${JSON.stringify(runner)};\n${call}`);
    const { stdout, status } = spawnSync(process.execPath, ["--test-reporter=tap", entry], {
      encoding: "utf8",
      env: { ...process.env, NODE_TEST_CONTEXT: undefined },
    });
    const lines = stdout.split("\n");
    return {
      lines: lines.filter((line) => line.startsWith("> ")).map((line) => line.slice(2)),
      failed: lines.flatMap((line) => /^not ok \d+ - (.*)/.exec(line)?.[1] ?? []),
      status,
    };
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

/** A module that says which of its hooks and tests runs. */
const noisy = (name: string): string => `
  const say = (what) => console.log("> ${name} " + what);
  before(async () => say("before"));
  after(async () => say("after"));
  beforeEach(() => say("each"));
  afterEach(() => say("each ends"));
  test("${name} 1", async () => say("1"));
  test("${name} 2", async () => say("2"));`;

test("files of a group run one after the other, and hooks hold for their own file", () => {
  const { lines, failed, status } = runGroup({ "a.mjs": noisy("a"), "b.mjs": noisy("b") });
  const steps = ["before", "each", "1", "each ends", "each", "2", "each ends", "after"];
  const expected = ["a", "b"].flatMap((name) => steps.map((step) => `${name} ${step}`));
  assert.deepEqual([lines, failed, status], [expected, [], 0]);
});

test("a file that cannot be loaded, an ending or a test that fails keeps no other file from running", () => {
  const { lines, failed, status } = runGroup({
    "a.mjs": 'throw new Error("not loaded");',
    "b.mjs": 'after(() => { throw new Error("does not end"); }); test("b", () => undefined);',
    "c.mjs": 'test("c", () => { throw new Error("wrong"); });',
    "d.mjs": 'await test("d", () => console.log("> d"));',
  });
  assert.deepEqual([lines, failed, status], [["d"], ["a.mjs", "b.mjs", "c"], 1]);
});
