import assert from "node:assert/strict";
import { mkdtemp, open, readdir, readFile, rm, stat, type FileHandle } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";

import { removeDurably, writeDurably } from "./durable-file.ts";

test("what the shop writes or removes is so after a power cut, too", async (t) => {
  const directory = await mkdtemp(join(tmpdir(), "shop-files-"));
  t.after(() => rm(directory, { recursive: true }));
  const path = join(directory, "order.json");
  const flushed: number[] = [];
  const handle = await open(directory, "r");
  const files = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  t.mock.method(files, "sync", async function (this: FileHandle) {
    flushed.push((await this.stat()).ino);
  });
  await writeDurably(path, "{}");
  assert.equal(await readFile(path, "utf8"), "{}");
  const inodes = [(await stat(path)).ino, (await stat(directory)).ino];
  assert.deepEqual(flushed, inodes);
  await removeDurably(path);
  assert.deepEqual(await readdir(directory), []);
  assert.deepEqual(flushed, [...inodes, (await stat(directory)).ino]);
  await removeDurably(path);
});
