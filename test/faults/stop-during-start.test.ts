// A start waits for a chain to mine the contracts, and whoever starts it changes their mind.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { startAnvil } from "../anvil.ts";
import { root } from "../transcript.ts";
import { freePort } from "../world.ts";

/** An account that holds no coin, so nothing of it is ever mined. */
const poorKey = "5e".repeat(32);

async function untilAbsent(path: string): Promise<void> {
  const deadline = Date.now() + 20_000;
  while (existsSync(path)) {
    assert.ok(Date.now() < deadline, `${path} is still there`);
    await delay(20);
  }
}

for (const { name, program, signal } of [
  { name: "svc serve", program: ["service/src/main.ts", "serve"], signal: "SIGTERM" },
  { name: "npm start", program: ["demo/start.ts"], signal: "SIGINT" },
] as const)
  test(`${signal} ends ${name} while it waits for the contracts, and its database with it`, async (t) => {
    await using anvil = await startAnvil();
    const directory = await mkdtemp(join(tmpdir(), "svc-stop-"));
    t.after(async () => rm(directory, { recursive: true, force: true }));
    // As root the embedded database runs as another user, who has to pass through here.
    await chmod(directory, 0o711);
    const child = spawn(process.execPath, ["--conditions=source", ...program], {
      cwd: root,
      env: {
        ...process.env,
        PORT: String(await freePort()),
        METRICS_PORT: "0",
        DATABASE_URL: "",
        DATA_DIR: directory,
        CHAIN_RPC_URL: anvil.url,
        SIGNER_KEY: poorKey,
        LOG_LEVEL: "info",
      },
      stdio: ["ignore", "pipe", "inherit"],
    });
    const exited = once(child, "exit");
    for await (const line of createInterface({ input: child.stdout }))
      if (line.includes("waiting until the contracts are mined")) break;
    const running = join(directory, "postgres", "data", "postmaster.pid");
    assert.ok(existsSync(running));
    const before = Date.now();
    child.kill(signal);
    assert.deepEqual(await exited, [0, null]);
    await untilAbsent(running);
    assert.ok(Date.now() - before < 20_000);
  });
