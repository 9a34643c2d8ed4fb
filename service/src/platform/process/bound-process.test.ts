import assert from "node:assert/strict";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { startBoundProcess } from "./bound-process.ts";

test("a child that minds no other signal is killed, also where nobody is left to do it", async (t) => {
  const directory = mkdtempSync(join(tmpdir(), "svc-bound-"));
  t.after(() => rmSync(directory, { recursive: true }));
  // Seconds pass at once for the shell beside the child, and never for this process.
  const sleep = join(directory, "sleep");
  writeFileSync(sleep, "#!/bin/sh\n");
  chmodSync(sleep, 0o755);
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const started = Promise.withResolvers<string>();
  const deaf = "trap '' INT QUIT; echo up; exec /bin/sleep 600";
  const child = startBoundProcess(["/bin/sh", "-c", deaf], {
    account: null,
    log: started.resolve,
    environment: { PATH: directory },
  });
  assert.equal(await started.promise, "up");
  assert.equal(await child.stop(), 137);
});
