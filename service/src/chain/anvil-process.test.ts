import assert from "node:assert/strict";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, test } from "node:test";
import { removeLeftovers } from "./anvil-process.ts";

test("a copy of the database leaves the node of the original alone, and removes what a killed one left", async () => {
  const directory = mkdtempSync(join(tmpdir(), "svc-chain-"));
  after(() => rmSync(directory, { recursive: true, force: true }));
  const path = join(directory, "node.ipc");
  const original = createServer().listen(path).unref();
  await once(original, "listening");
  await removeLeftovers(path);
  assert.equal(existsSync(path), true);
  original.close();
  await removeLeftovers(path);
  assert.equal(existsSync(dirname(path)), false);
});
