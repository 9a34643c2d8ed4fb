import assert from "node:assert/strict";
import fs, { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { readOrMakeDevelopmentKey } from "./development-key.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-key-"));
after(() => rmSync(directory, { recursive: true, force: true }));

void test("the development key is made once, readable by its owner alone, and found again", () => {
  const data = join(directory, "made/here");
  const key = readOrMakeDevelopmentKey(data);
  assert.match(key, /^[0-9a-f]{64}$/);
  assert.equal(readOrMakeDevelopmentKey(data), key);
  assert.equal(statSync(join(data, "master.key")).mode & 0o777, 0o600);
  assert.deepEqual(readdirSync(data), ["master.key"]);
});

void test("the development key is on the disk before anything can be sealed with it", (t) => {
  const data = mkdtempSync(join(directory, "flushed-"));
  const { fsyncSync } = fs;
  const flushed: number[] = [];
  const flushing = t.mock.method(fs, "fsyncSync", (file: number) => {
    flushed.push(fs.fstatSync(file).ino);
    fsyncSync(file);
  });
  syncBuiltinESMExports();
  readOrMakeDevelopmentKey(data);
  flushing.mock.restore();
  syncBuiltinESMExports();
  assert.deepEqual(
    flushed,
    [join(data, "master.key"), data].map((path) => statSync(path).ino),
  );
});

void test("no copy of a key stays that a start left behind when it was killed", (t) => {
  const data = mkdtempSync(join(directory, "killed-"));
  const leave = (): void =>
    writeFileSync(join(data, "master.key.11111111-1111-4111-8111-111111111111"), "another\n");
  leave();
  const key = readOrMakeDevelopmentKey(data);
  assert.deepEqual(readdirSync(data), ["master.key"]);
  leave();
  const kept = t.mock.method(fs, "rmSync", () => {
    throw new Error("EROFS: read-only file system");
  });
  syncBuiltinESMExports();
  assert.equal(
    readOrMakeDevelopmentKey(data),
    key,
    "a disk that is read only has the key all the same",
  );
  kept.mock.restore();
  syncBuiltinESMExports();
  assert.equal(readOrMakeDevelopmentKey(data), key);
  assert.deepEqual(readdirSync(data), ["master.key"]);
});

void test("a file that holds no key is reported, never replaced", () => {
  const data = mkdtempSync(join(directory, "broken-"));
  writeFileSync(join(data, "master.key"), "short\n");
  assert.throws(() => readOrMakeDevelopmentKey(data), /does not hold 64 hex digits/);
});
