import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { patienceMs } from "../../../test/patience.ts";

/** Starts a node while file descriptors are left for its files, but not for its pipes. */
const script = `
  const { closeSync, openSync } = await import("node:fs");
  const { startAnvilProcess } = await import(${JSON.stringify(import.meta.resolve("./anvil-process.ts"))});
  const taken = [];
  try {
    for (;;) taken.push(openSync("/dev/null"));
  } catch {}
  for (const descriptor of taken.splice(0, 4)) closeSync(descriptor);
  const genesis = { chainId: 1, time: 1, faucet: "0x${"01".repeat(20)}" };
  const fault = await startAnvilProcess(genesis, () => undefined).then(() => null, (error) => error.message);
  for (const descriptor of taken) closeSync(descriptor);
  process.stdout.write(String(fault));
`;

test("a node that cannot start for lack of file descriptors leaves nothing behind, and does not end the process", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-anvil-"));
  t.after(() => rmSync(directory, { recursive: true }));
  const limited = 'ulimit -n 100 && exec "$0" --conditions=source --input-type=module --eval "$1"';
  const { stdout } = await promisify(execFile)(
    "/bin/sh",
    ["-c", limited, process.execPath, script],
    { env: { ...process.env, TMPDIR: directory }, timeout: patienceMs },
  );
  assert.equal(stdout, "spawn /bin/sh EMFILE");
  assert.deepEqual(readdirSync(directory), []);
});
