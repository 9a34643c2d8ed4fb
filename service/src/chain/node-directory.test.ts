import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { test } from "node:test";
import { startAnvilProcess } from "./anvil-process.ts";
import { makeNodeDirectory, removeLeftovers } from "./node-directory.ts";

const own = mkdtempSync(join(tmpdir(), "svc-own-"));
const long = join(own, "d".repeat(90));
mkdirSync(long);
test.after(() => rmSync(own, { recursive: true }));

async function withTemporary<T>(temporary: string, work: () => Promise<T>): Promise<T> {
  const before = process.env["TMPDIR"];
  process.env["TMPDIR"] = temporary;
  try {
    return await work();
  } finally {
    if (before === undefined) delete process.env["TMPDIR"];
    else process.env["TMPDIR"] = before;
  }
}

/** Where the directory is made if `TMPDIR` is this. */
async function parentFor(temporary: string): Promise<string> {
  return withTemporary(temporary, async () => {
    const made = makeNodeDirectory({});
    assert.equal(statSync(made.path).mode & 0o777, 0o700);
    await removeLeftovers(made.socketPath);
    assert.equal(existsSync(made.path), false);
    return dirname(made.path);
  });
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

test("a platform without a node is left without a directory for it", async (t) => {
  const { platform } = process;
  const absent = platform === "darwin" ? "linux" : "darwin";
  t.after(() => Object.defineProperty(process, "platform", { value: platform }));
  Object.defineProperty(process, "platform", { value: absent });
  const genesis = { chainId: 1, time: 1, faucet: `0x${"1".repeat(40)}` } as const;
  const start = async () => startAnvilProcess(genesis, () => undefined);
  const empty = mkdtempSync(join(own, "t"));
  await withTemporary(empty, async () => assert.rejects(start, /is not installed/));
  assert.deepEqual(readdirSync(empty), []);
});
