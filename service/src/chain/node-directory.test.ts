import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { makeNodeDirectory, removeLeftovers } from "./node-directory.ts";

const own = mkdtempSync(join(tmpdir(), "svc-own-"));
const long = join(own, "d".repeat(90));
mkdirSync(long);
test.after(() => rmSync(own, { recursive: true }));

/** Where the directory is made if `TMPDIR` is this. */
async function parentFor(temporary: string): Promise<string> {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = temporary;
  try {
    const made = makeNodeDirectory({});
    assert.equal(statSync(made.path).mode & 0o777, 0o700);
    await removeLeftovers(made.socketPath);
    assert.equal(existsSync(made.path), false);
    return dirname(made.path);
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

test("the files of the embedded chain's node lie in TMPDIR, by its full path", async () => {
  assert.equal(await parentFor(own), own);
  assert.equal(await parentFor("."), process.cwd());
});

test("a TMPDIR that is absent, no directory or too long for a socket is replaced by /tmp", async () => {
  for (const unusable of [join(own, "absent"), import.meta.filename, long])
    assert.equal(await parentFor(unusable), "/tmp");
});

test("nothing but a directory of a node is removed", async () => {
  for (const other of [join(own, "node.ipc"), join(long, "svc-chain-x", "node.ipc"), null])
    await removeLeftovers(other);
  assert.ok(existsSync(own) && existsSync(long));
});

test("a copy of the database leaves the node of the original alone", async () => {
  const { path, socketPath } = makeNodeDirectory({});
  const original = createServer().listen(socketPath).unref();
  await once(original, "listening");
  await removeLeftovers(socketPath);
  assert.equal(existsSync(path), true);
  original.close();
  await removeLeftovers(socketPath);
  assert.equal(existsSync(path), false);
});
