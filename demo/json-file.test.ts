import assert from "node:assert/strict";
import fs, { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { ConfigError } from "@svc/service/config";
import { readJson, writeJson } from "./json-file.ts";

test("a file of the demo is whole after a power cut too, and what a killed start left goes with the next write", (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-demo-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const path = join(directory, "demo.json");
  writeFileSync(`${path}.new`, "half");
  const done: (number | string)[] = [];
  const flushing = t.mock.method(fs, "fsyncSync", (file: number) => {
    done.push(fs.fstatSync(file).ino);
  });
  const { renameSync } = fs;
  const renaming = t.mock.method(fs, "renameSync", (from: string, to: string) => {
    done.push("renamed");
    renameSync(from, to);
  });
  syncBuiltinESMExports();
  writeJson(path, { apiKey: "key" });
  for (const { mock } of [flushing, renaming]) mock.restore();
  syncBuiltinESMExports();
  assert.deepEqual(done, [statSync(path).ino, "renamed", statSync(directory).ino]);
  assert.deepEqual(readdirSync(directory), ["demo.json"]);
  assert.deepEqual(readJson(path), { apiKey: "key" });
  writeFileSync(path, "");
  assert.throws(() => readJson(path), ConfigError, "it is told in one line");
});
