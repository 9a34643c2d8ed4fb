// Where a demo does not start, and where it starts without a chain of its own.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { lockDirectory } from "../../service/src/platform/process/directory-lock.ts";
import { startAnvil } from "../anvil.ts";
import { fundedKey } from "../chain-processes.ts";
import { openDemoPlace, startDemo } from "../demo-world.ts";
import { root } from "../transcript.ts";

test("a second start on the same directory is refused in one line, also with a database from outside", async () => {
  await using other = await openDemoPlace();
  const directory = other.environment.DATA_DIR;
  const lock = lockDirectory(directory);
  const start = ["--conditions=source", join(root, "demo/start.ts")];
  await assert.rejects(
    promisify(execFile)(process.execPath, start, { env: { ...process.env, ...other.environment } }),
    {
      code: 1,
      stdout: "",
      stderr: `another process already runs in ${directory}; stop it first, or choose another DATA_DIR\n`,
    },
  );
  assert.ok(readdirSync(directory).every((name) => name.startsWith("lock")));
  lock?.release();
});

test("a chain from outside has no faucet, and everything of the demo world is there all the same", async () => {
  await using anvil = await startAnvil();
  await using other = await openDemoPlace();
  const outside = { CHAIN_RPC_URL: anvil.url, SIGNER_KEY: fundedKey, CONFIRMATIONS: "1" };
  await using demo = await startDemo({ ...other.environment, ...outside });
  const written = readFileSync(join(other.environment.DATA_DIR, "demo.json"), "utf8");
  const { apiKey, business } = JSON.parse(written) as {
    apiKey: string;
    business: { address: string };
  };
  const answer = await fetch(`${demo.baseUrl}/api/v1/kyb/status/${business.address}`, {
    headers: { authorization: apiKey },
  });
  assert.equal(((await answer.json()) as Record<string, unknown>)["verified"], true);
});
