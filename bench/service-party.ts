import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { createInterface } from "node:readline";
import packageJson from "../package.json" with { type: "json" };
import { freePort } from "./free-port.ts";
import { type Party, readCalls } from "./party.ts";

/** Two free ports for a service, as its settings. */
export async function portSettings() {
  const [port, metricsPort] = [await freePort(), await freePort()];
  return {
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    BASE_URL: `http://localhost:${port}`,
  };
}

export interface ServiceEnvironment extends NodeJS.ProcessEnv {
  readonly BASE_URL: string;
  readonly METRICS_PORT: string;
  readonly DATABASE_URL: string;
}

/** The environment in which every bench runs the service: over this database, on free ports. */
export async function serviceEnvironment(
  databaseUrl: string,
  connections = 10,
): Promise<ServiceEnvironment> {
  return {
    ...process.env,
    ...(await portSettings()),
    NODE_ENV: "production",
    PROFILE: "dev",
    DATABASE_URL: databaseUrl,
    DATABASE_CONNECTIONS: String(connections),
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "warn",
  };
}

/** Starts the service as its own process. */
export async function startParty(environment: ServiceEnvironment): Promise<Party> {
  const { child } = await startService(environment);
  return {
    name: "service",
    pid: child.pid ?? 0,
    baseUrl: environment.BASE_URL,
    callsTotal: async () => readCalls(Number(environment.METRICS_PORT)),
    [Symbol.asyncDispose]: async () => stopService(child),
  };
}

interface StartedService {
  readonly child: ChildProcess;
  /** Wall time from the start of the process to its line `ready`. */
  readonly startMs: number;
}

const root = join(import.meta.dirname, "..");

/** Starts what `npm run svc -- serve` starts; its shell becomes the process. */
export async function startService(environment: NodeJS.ProcessEnv): Promise<StartedService> {
  const startedAt = performance.now();
  const child = spawn("/bin/sh", ["-c", `${packageJson.scripts.svc} serve`], {
    cwd: root,
    env: environment,
    stdio: ["ignore", "pipe", "inherit"],
  });
  const lines = createInterface({ input: child.stdout });
  const { promise, resolve, reject } = Promise.withResolvers<undefined>();
  lines.on("line", (line) => {
    if (line.startsWith("ready ")) resolve(undefined);
  });
  child.once("exit", (code) => reject(new Error(`the service ended with ${code}`)));
  await promise;
  return { child, startMs: performance.now() - startedAt };
}

export async function stopService(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGTERM");
  await exit;
}
