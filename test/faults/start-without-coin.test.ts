// A start waits for a chain to mine the contracts, because the operator's account holds no coin.
import assert from "node:assert/strict";
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { join } from "node:path";
import { createInterface } from "node:readline";
import type { Readable } from "node:stream";
import { test } from "node:test";
import { addressOfPrivateKey } from "@svc/protocol";
import { startAnvil } from "../anvil.ts";
import { clusterParent } from "../cluster-parent.ts";
import { root } from "../transcript.ts";
import { freePort } from "../world.ts";
import { until } from "../patience.ts";

/** An account that holds no coin, so none of its transactions is ever mined. */
const poorKey = "5e".repeat(32);

async function untilAbsent(path: string): Promise<void> {
  await until(`${path} is gone`, async () => (existsSync(path) ? null : true));
}

interface Place extends AsyncDisposable {
  readonly environment: NodeJS.ProcessEnv;
  /** There as long as the embedded database runs. */
  readonly pidFile: string;
}

/** An empty directory, and a chain. */
async function openPlace(): Promise<Place> {
  await using stack = new AsyncDisposableStack();
  const anvil = stack.use(await startAnvil());
  const directory = await mkdtemp(join(clusterParent, "svc-stop-"));
  const pidFile = join(directory, "postgres", "data", "postmaster.pid");
  stack.defer(async () => rm(directory, { recursive: true, force: true }));
  stack.defer(async () => untilAbsent(pidFile));
  // Under root the embedded database runs as another user, who has to enter this directory.
  await chmod(directory, 0o711);
  const environment = {
    PORT: String(await freePort()),
    METRICS_PORT: "0",
    DATABASE_URL: "",
    DATA_DIR: directory,
    CHAIN_RPC_URL: anvil.url,
    SIGNER_KEY: poorKey,
    LOG_LEVEL: "info",
  };
  const opened = stack.move();
  return { environment, pidFile, [Symbol.asyncDispose]: async () => opened.disposeAsync() };
}

/** Starts the program, and comes back when it waits. */
async function startWaiting(
  { environment }: Place,
  program: readonly string[],
): Promise<{ child: ChildProcessByStdio<null, Readable, null>; lines: string[] }> {
  const child = spawn(process.execPath, ["--conditions=source", ...program], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines: string[] = [];
  for await (const line of createInterface({ input: child.stdout })) {
    lines.push(line);
    if (line.includes("waiting until the contracts are mined")) break;
  }
  return { child, lines };
}

const operator = addressOfPrivateKey(Buffer.from(poorKey, "hex"));

const programs = [
  { name: "svc serve", program: ["service/src/main.ts", "serve"], signal: "SIGTERM" },
  { name: "npm start", program: ["demo/start.ts"], signal: "SIGINT" },
] as const;

test("a start names the account that needs coin while it waits for the contracts; a signal ends it, and its database", async (t) => {
  await using place = await openPlace();
  const alarms: Record<string, unknown>[] = [];
  for (const { name, program, signal } of programs)
    await t.test(`${name}, ended by ${signal}`, async () => {
      const { child, lines } = await startWaiting(place, program);
      const told = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
      alarms.push(...told.filter((line) => line["alarm"] === "out_of_funds"));
      const { operator: named, balanceCoins } = told.at(-1) ?? {};
      assert.deepEqual({ named, balanceCoins }, { named: operator, balanceCoins: "0" });
      assert.ok(existsSync(place.pidFile));
      const before = Date.now();
      const exited = once(child, "exit");
      child.kill(signal);
      assert.deepEqual(await exited, [0, null]);
      await untilAbsent(place.pidFile);
      assert.ok(Date.now() - before < 20_000);
    });
  // The second start may come before the next try, and then it raises none.
  assert.deepEqual(new Set(alarms.map((line) => line["operator"])), new Set([operator]));
});
