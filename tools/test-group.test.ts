import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";

const runner = join(import.meta.dirname, "test-group.ts");

interface Ran {
  /** What the modules printed, process by process. */
  readonly lines: string[];
  readonly failed: string[];
  readonly statuses: (number | null)[];
  /** The errors that it told of because nobody awaited them. */
  readonly unawaited: string[];
}

/** Runs modules as a run does that shares them among so many processes. */
async function runShared(modules: Readonly<Record<string, string>>, processes = 1): Promise<Ran> {
  const root = mkdtempSync(join(tmpdir(), "svc-group-"));
  try {
    for (const [name, content] of Object.entries(modules)) {
      const head = 'import { after, afterEach, before, beforeEach, test } from "node:test";';
      writeFileSync(join(root, name), `${head}\n${content}`);
    }
    const files = Object.keys(modules).map((name) => join(root, name));
    const takenDirectory = mkdtempSync(join(root, "taken-"));
    const call = `await runTestFiles(${JSON.stringify({ root, files, takenDirectory })});`;
    const entry = join(root, "group.mjs");
    writeFileSync(entry, `import { runTestFiles } from ${JSON.stringify(runner)};\n${call}`);
    const all = await Promise.all(Array.from({ length: processes }, async () => runEntry(entry)));
    const lines = all.flatMap(({ stdout }) => stdout.split("\n"));
    return {
      lines: lines.filter((line) => line.startsWith("> ")).map((line) => line.slice(2)),
      failed: lines.flatMap((line) => /^not ok \d+ - (.*)/.exec(line)?.[1] ?? []),
      statuses: all.map(({ status }) => status),
      unawaited: all.flatMap(({ stderr }) =>
        [...stderr.matchAll(/^nobody awaited .* Error: (.*)$/gm)].map(
          ([, message = ""]) => message,
        ),
      ),
    };
  } finally {
    rmSync(root, { recursive: true, force: true });
  }
}

interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  readonly status: number | null;
}

async function runEntry(entry: string): Promise<Ended> {
  const child = spawn(process.execPath, ["--test-reporter=tap", entry], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NODE_TEST_CONTEXT: undefined },
  });
  const [stdout, stderr] = await Promise.all([
    text(child.stdout),
    text(child.stderr),
    once(child, "close"),
  ]);
  return { stdout, stderr, status: child.exitCode };
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

test("files of a process run one after the other, and hooks hold for their own file", async () => {
  const ran = await runShared({ "a.mjs": noisy("a"), "b.mjs": noisy("b") });
  const steps = ["before", "each", "1", "each ends", "each", "2", "each ends", "after"];
  const expected = ["a", "b"].flatMap((name) => steps.map((step) => `${name} ${step}`));
  assert.deepEqual(ran, { lines: expected, failed: [], statuses: [0], unawaited: [] });
});

test("a file that cannot be loaded, an ending or a test that fails keeps no other file from running", async () => {
  const ran = await runShared({
    "a.mjs": 'throw new Error("not loaded");',
    "b.mjs": 'after(() => { throw new Error("does not end"); }); test("b", () => undefined);',
    "c.mjs": 'test("c", () => { throw new Error("wrong"); });',
    "d.mjs": 'await test("d", () => console.log("> d"));',
    "e.mjs": 'after(() => { throw new Error("does not end"); }); throw new Error("not loaded");',
  });
  const failed = ["a.mjs", "b.mjs", "c", "e.mjs"];
  assert.deepEqual(ran, { lines: ["d"], failed, statuses: [1], unawaited: [] });
});

test("a file that defines no test fails, and keeps no other file from running", async () => {
  const ran = await runShared({
    "a.mjs": 'test("a", () => console.log("> a"));',
    "b.mjs": "",
    "c.mjs": 'test("c", () => console.log("> c"));',
  });
  assert.deepEqual(ran, { lines: ["a", "c"], failed: ["b.mjs"], statuses: [1], unawaited: [] });
});

test("a file that ends the process fails the run, also where it says that all is well", async () => {
  const early = ["process.exit(0);", 'test("a", () => process.exit()); test("lost", () => {});'];
  const ran = await Promise.all(early.map(async (fault) => runShared({ "a.mjs": fault })));
  assert.deepEqual(
    ran.map(({ statuses }) => statuses),
    [[1], [1]],
  );
});

test("an error that nobody awaits fails the run and is told", async () => {
  const ran = await runShared({
    "a.mjs": 'await test("a", () => void Promise.reject(new Error("left alone")));',
    "b.mjs": `await test("b", async () => {
      const { promise, resolve } = Promise.withResolvers();
      setImmediate(() => { setImmediate(resolve); throw new Error("thrown alone"); });
      await promise;
    });`,
    "c.mjs": 'test("c", () => console.log("> c"));',
  });
  const unawaited = ["left alone", "thrown alone"];
  assert.deepEqual(ran, { lines: ["c"], failed: [], statuses: [1], unawaited });
});

test("an error that nobody awaits before the first test fails the run and is reported", async () => {
  const faults = {
    "left alone": 'void Promise.reject(new Error("left alone"));',
    "thrown alone": 'setImmediate(() => { throw new Error("thrown alone"); });',
  };
  for (const [message, fault] of Object.entries(faults)) {
    const wait = "await new Promise((resolve) => setImmediate(() => setImmediate(resolve)));";
    const ran = await runShared({ "a.mjs": `${fault} ${wait}`, "b.mjs": 'test("b", () => {});' });
    assert.deepEqual([ran.statuses, ran.unawaited], [[1], [message]]);
  }
});

test("processes share the files out: each file runs in one of them", async () => {
  const names = Array.from({ length: 40 }, (_, at) => `${at}`.padStart(2, "0"));
  const modules = names.map((name) => [
    `${name}.mjs`,
    `test("${name}", () => console.log("> ${name}"));`,
  ]);
  const { lines, failed, statuses } = await runShared(Object.fromEntries(modules), 3);
  assert.deepEqual([lines.toSorted(), failed, statuses], [names, [], [0, 0, 0]]);
});
