import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import files, { mkdir, mkdtemp, readdir, rm, stat } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { createDirectory, removeLeftovers } from "./embedded-postgres-files.ts";

/** Makes files in `directory` for 0.3 s as fast as it can, or until that is gone, and says when the first is there. */
const writer = (directory: string): string => `
  const { writeFileSync, writeSync } = require("node:fs");
  const end = performance.now() + 300;
  try {
    for (let at = 0; performance.now() < end; at += 1) {
      writeFileSync(${JSON.stringify(directory)} + "/" + at, "");
      if (at === 0) writeSync(1, "begun");
    }
  } catch {}`;

test("what a killed start left behind is removed while its initdb still writes there", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  t.after(async () => rm(directory, { recursive: true, force: true, maxRetries: 10 }));
  const left = join(directory, "data.new-0123456789ab", "data");
  await mkdir(left, { recursive: true });
  const initdb = spawn(process.execPath, ["-e", writer(left)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  const ended = once(initdb, "exit");
  await once(initdb.stdout, "data");
  await removeLeftovers({ directory, data: join(directory, "data"), account: null });
  assert.deepEqual(await readdir(directory), []);
  await ended;
});

test("nobody else can write into a directory while it is made, whatever the umask", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "svc-test-"));
  t.after(async () => rm(directory, { recursive: true, force: true }));
  const before = process.umask(0);
  t.after(() => process.umask(before));
  // As if somebody looked before it comes to that.
  const later = t.mock.method(files, "chmod", async () => undefined);
  syncBuiltinESMExports();
  await createDirectory(join(directory, "parent", "postgres"));
  later.mock.restore();
  syncBuiltinESMExports();
  for (const path of ["parent", "parent/postgres"]) {
    const { mode } = await stat(join(directory, path));
    assert.equal(mode & 0o022, 0, path);
  }
});
