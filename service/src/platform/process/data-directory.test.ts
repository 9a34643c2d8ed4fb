import assert from "node:assert/strict";
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { makeDataDirectory } from "./data-directory.ts";

test("root's data directory lets the database's user through whatever the umask, and one that exists is left", (t) => {
  const closed = mkdtempSync(join(tmpdir(), "svc-test-"));
  t.after(() => rmSync(closed, { recursive: true }));
  const before = process.umask(0o077);
  t.after(() => process.umask(before));
  makeDataDirectory(join(closed, "parent", "data"));
  makeDataDirectory(closed);
  const modes = ["parent/data", "parent", "."].map(
    (name) => statSync(join(closed, name)).mode & 0o777,
  );
  const made = process.getuid?.() === 0 ? 0o711 : 0o700;
  assert.deepEqual(modes, [made, made, 0o700]);
});
