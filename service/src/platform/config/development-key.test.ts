import assert from "node:assert/strict";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
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

void test("a file that holds no key is reported, never replaced", () => {
  const data = mkdtempSync(join(directory, "broken-"));
  writeFileSync(join(data, "master.key"), "short\n");
  assert.throws(() => readOrMakeDevelopmentKey(data), /does not hold 64 hex digits/);
});
