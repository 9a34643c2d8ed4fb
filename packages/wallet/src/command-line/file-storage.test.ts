import assert from "node:assert/strict";
import {
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import files, { type FileHandle, open } from "node:fs/promises";
import { syncBuiltinESMExports } from "node:module";
import { tmpdir } from "node:os";
import { basename, dirname, join } from "node:path";
import { mock, test } from "node:test";
import { fileStorage } from "./file-storage.ts";
import { writeNewFile } from "./new-file.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-wallet-files-"));
using cleanup = new DisposableStack();
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
const home = join(directory, "wallet");
const storage = fileStorage(home);

/** Inodes of what was synced to the disk while something is done. */
async function syncedBy(work: () => Promise<unknown>): Promise<ReadonlySet<number>> {
  const synced = new Set<number>();
  const handle = await open(directory, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  const sync = mock.method(prototype, "sync", async function (this: FileHandle) {
    synced.add((await this.stat()).ino);
  });
  await work();
  sync.mock.restore();
  await handle.close();
  return synced;
}

async function inodeOf(path: string): Promise<number> {
  const handle = await open(path, "r");
  const { ino } = await handle.stat();
  await handle.close();
  return ino;
}

await test("a value is on the disk with its name, and so are the folders that were made for it", async () => {
  const first = await syncedBy(async () => storage.add("vote/one", "1"));
  for (const path of ["", "wallet", "wallet/vote", "wallet/vote/one.json"])
    assert.ok(first.has(await inodeOf(join(directory, path))), path);
  // Where the data directory is the service's, the wallet may only pass through.
  const another = await syncedBy(async () => storage.add("claim/one", "1"));
  assert.ok(another.has(await inodeOf(home)));
  assert.ok(!another.has(await inodeOf(directory)));
  const second = await syncedBy(async () => storage.put("vote/one", "2"));
  for (const path of ["wallet/vote", "wallet/vote/one.json"])
    assert.ok(second.has(await inodeOf(join(directory, path))), path);
  const deep = fileStorage(join(directory, "made", "too", "wallet"));
  const third = await syncedBy(async () => deep.put("vote/one", "1"));
  for (const path of ["", "made", "made/too", "made/too/wallet"])
    assert.ok(third.has(await inodeOf(join(directory, path))), path);
});

await test("what was removed does not come back after a power cut", async () => {
  await storage.put("broker/one", "https://broker.example 1");
  const synced = await syncedBy(async () => storage.remove("broker/one"));
  assert.ok(synced.has(await inodeOf(join(home, "broker"))));
  await fileStorage(join(directory, "nowhere")).remove("broker/one");
});

await test("a disk that is full keeps what was there, and nothing half written", async () => {
  const handle = await open(directory, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  await handle.close();
  let isForFolders = false;
  const full = mock.method(prototype, "sync", async function (this: FileHandle) {
    if (!isForFolders || (await this.stat()).isDirectory())
      throw new Error("ENOSPC: no space left on device");
  });
  await assert.rejects(storage.put("vote/one", "3"), /ENOSPC: .*'.*one\.json/);
  await assert.rejects(storage.add("vote/full", "3"), /ENOSPC/);
  assert.deepEqual(readdirSync(join(home, "vote")), ["one.json"]);
  assert.equal(await storage.get("vote/one"), "2");
  // The value is then in place, and the error has to say so.
  isForFolders = true;
  const fault = /^Error: vote\/\w+ is written, .*: ENOSPC: .* '.*vote'$/;
  await assert.rejects(storage.put("vote/one", "3"), fault);
  await assert.rejects(storage.add("vote/told", "3"), fault);
  full.mock.restore();
  assert.equal(await storage.get("vote/one"), "3");
  await storage.remove("vote/told");
});

await test("an identity that is removed or sealed anew leaves no draft of itself, and drafts of others stay", async () => {
  for (const name of ["mine", "mine-too"]) await storage.add(`identity/${name}`, "sealed");
  const folder = join(home, "identity");
  const digits = "11111111-1111-4111-8111-111111111111";
  const other = `mine-too.json.${digits}`;
  for (const draft of [`mine.json.${digits}`, other]) writeFileSync(join(folder, draft), "sealed");
  await storage.remove("identity/mine");
  assert.deepEqual(readdirSync(folder).toSorted(), ["mine-too.json", other]);
  // A killed call may have left a draft that an earlier passphrase opens; a call that comes as far only now is refused.
  const { rename } = files;
  const waiting = mock.method(files, "rename", async (from: string, to: string) => {
    waiting.mock.restore();
    syncBuiltinESMExports();
    await storage.put("identity/mine-too", "sealed anew");
    await rename(from, to);
  });
  syncBuiltinESMExports();
  await assert.rejects(storage.put("identity/mine-too", "late"), {
    code: "invalid_input",
    message: "identity/mine-too was changed meanwhile: nothing was written",
  });
  assert.deepEqual(readdirSync(folder), ["mine-too.json"]);
  assert.equal(await storage.get("identity/mine-too"), "sealed anew");
  // Of two calls that replace the same value, the later one is refused, however far it had come.
  await assert.rejects(storage.put("identity/mine-too", "late", "sealed"), {
    code: "invalid_input",
  });
  const renamed = Promise.withResolvers<void>();
  const tried = Promise.withResolvers<void>();
  let first: Promise<void> | undefined;
  const crossing = mock.method(files, "rename", async (from: string, to: string) => {
    if (first === undefined) {
      first = storage.put("identity/mine-too", "first", "sealed anew");
      await renamed.promise;
      await rename(from, to).finally(tried.resolve);
    }
    await rename(from, to);
    renamed.resolve();
    await tried.promise;
  });
  syncBuiltinESMExports();
  await assert.rejects(storage.put("identity/mine-too", "late", "sealed anew"), {
    code: "invalid_input",
  });
  await first;
  crossing.mock.restore();
  syncBuiltinESMExports();
  assert.equal(await storage.get("identity/mine-too"), "first");
  // Any other draft may be what a process is writing right now.
  await storage.add("keys/one", "1");
  const draft = join(home, "keys", `one.json.${digits}`);
  writeFileSync(draft, "half");
  await storage.remove("keys/one");
  assert.deepEqual(readdirSync(dirname(draft)), [basename(draft)]);
});

await test("folders are their owner's alone, but others may pass through the data directory", async () => {
  const data = join(directory, "data");
  await fileStorage(join(data, "wallet")).put("vote/one", "1");
  const modes = ["", "wallet", "wallet/vote", "wallet/vote/one.json"].map(
    (path) => statSync(join(data, path)).mode & 0o777,
  );
  assert.deepEqual(modes, [0o711, 0o700, 0o700, 0o600]);
});

await test("a new file is on the disk with its name, or not there", async () => {
  const path = join(directory, "new", "backup");
  mkdirSync(dirname(path));
  // Left by a call that was killed.
  const left = `${path}.11111111-1111-4111-8111-111111111111`;
  writeFileSync(left, "half");
  writeFileSync(`${path}.old`, "of somebody else");
  const synced = await syncedBy(async () => writeNewFile(path, "sealed"));
  assert.deepEqual(readdirSync(dirname(path)).toSorted(), ["backup", "backup.old"]);
  writeFileSync(left, "half");
  await assert.rejects(writeNewFile(path, "sealed"), { code: "EEXIST" });
  assert.deepEqual(readdirSync(dirname(path)).toSorted(), ["backup", "backup.old"]);
  rmSync(`${path}.old`);
  for (const each of [path, dirname(path)]) assert.ok(synced.has(await inodeOf(each)), each);
  const handle = await open(directory, "r");
  const prototype = Object.getPrototypeOf(handle) as FileHandle;
  const failing = mock.method(prototype, "sync", async function (this: FileHandle) {
    if ((await this.stat()).isDirectory()) throw new Error("EIO: i/o error");
  });
  await assert.rejects(writeNewFile(`${path}-2`, "sealed"), /EIO/);
  failing.mock.restore();
  await handle.close();
  assert.deepEqual(readdirSync(dirname(path)), ["backup"]);
});

/** Does something on a file system that refuses a call. */
async function refusing(
  name: "link" | "rename" | "rm",
  code: string,
  work: () => Promise<unknown>,
): Promise<void> {
  const refused = mock.method(files, name, async () => {
    throw Object.assign(new Error(`${code}: ${name}`), { code });
  });
  syncBuiltinESMExports();
  try {
    await work();
  } finally {
    refused.mock.restore();
    syncBuiltinESMExports();
  }
}

await test("what is written stands where the disk does not let go of the draft", async () => {
  await refusing("rm", "EROFS", async () => {
    assert.equal(await storage.add("claim/stays", "1"), "1");
    await writeNewFile(join(directory, "stays"), "sealed");
  });
});

await test("a backup can be written where there are no links, and never over a file", async () => {
  const folder = join(directory, "stick");
  const path = join(folder, "backup");
  mkdirSync(folder);
  await refusing("link", "EPERM", async () => {
    await writeNewFile(path, "sealed");
    await assert.rejects(writeNewFile(path, "another"), { code: "EEXIST" });
  });
  await refusing("rename", "EIO", async () =>
    refusing("link", "EPERM", async () => {
      await assert.rejects(writeNewFile(`${path}-2`, "sealed"), { code: "EIO" });
    }),
  );
  assert.deepEqual(readdirSync(folder), ["backup"]);
  assert.equal(readFileSync(path, "utf8"), "sealed");
  assert.equal(statSync(path).mode & 0o777, 0o600);
});

await test("what a killed process left half written goes with the next write, and what another writes now stays", async () => {
  const folder = join(home, "vote");
  const [old, recent] = ["a", "b"].map(
    (digit) => `two.json.${digit.repeat(8)}-1111-4111-8111-${digit.repeat(12)}`,
  );
  assert.ok(old !== undefined && recent !== undefined);
  for (const name of [old, recent]) writeFileSync(join(folder, name), "half");
  utimesSync(join(folder, old), 0, 0);
  await storage.put("vote/two", "2");
  assert.deepEqual(readdirSync(folder).toSorted(), ["one.json", "two.json", recent]);
  assert.deepEqual((await storage.list("vote")).toSorted(), ["vote/one", "vote/two"]);
});
