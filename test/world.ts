// The whole product on free ports, with a database of its own and a clock that can be moved.
import { spawn } from "node:child_process";
import { randomInt } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { mock } from "node:test";
import {
  createClient,
  createDomain,
  createOrganization,
  type NewClient,
} from "../service/src/accounts/index.ts";
import { compose, openContext, type Service } from "../service/src/compose.ts";
import { createAttestationKeys } from "../service/src/kyb/release/attestation-keys.ts";
import { openSigningKeys } from "../service/src/login/keys/signing-keys.ts";
import { advanceClock } from "../service/src/platform/clock.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { type Filling, openTestDatabase } from "../service/src/platform/database/test-database.ts";
import type { LoginClient } from "./login-flow.ts";
import { until } from "./patience.ts";

export interface World extends AsyncDisposable {
  readonly baseUrl: string;
  readonly service: Service;
  readonly ctx: Service["ctx"];
  readonly clientDomainId: string;
  readonly organizationId: string;
  /** A confidential client with number matching. */
  readonly client: LoginClient;
  addClient(changed?: Partial<NewClient>): Promise<LoginClient>;
  /** Moves the time of every process and waits until this one follows. */
  advance(seconds: number): Promise<void>;
  /**
   * Stops the clock of this process until the result is disposed of, so that only `advance` moves it: a test that has to
   * act within some time succeeds on a slow machine too.
   */
  holdTime(): Disposable;
  /** Another server process over the same database, under the same issuer. */
  startProcess(environment?: NodeJS.ProcessEnv, options?: ServerOptions): Promise<ServerProcess>;
}

export interface ServerOptions {
  readonly port?: number;
  /** Called with every line that the process writes, to either stream. */
  readonly onLine?: (line: string) => void;
}

export interface ServerProcess extends AsyncDisposable {
  /** Where this process listens; the issuer stays the world's. */
  readonly url: string;
  readonly pid: number;
  /** kill -9. */
  kill(): Promise<void>;
  /** SIGTERM. @returns the exit status; null if it did not end by itself */
  stop(): Promise<number | null>;
}

export const callbackUri = "http://localhost:4999/callback";
export const apiAudience = "https://api.example.com";

/** Below the ports that the system assigns by itself, so that it gives none of ours away between our check and our use. */
const firstPort = 20_000;
const blocksTotal = 1_200;
const portsOfBlock = 10;
/**
 * The process that listens on this port owns the whole block, even while a server in it is dead and about to start
 * again.
 */
const claimOffset = 8;

/**
 * A port that was free a moment ago, and that no other test process is given as long as this one lives. It comes with
 * the nine ports above it, except the eighth: the demo has its shop at the next one and its metrics at the ninth.
 */
export async function freePort(): Promise<number> {
  for (;;) {
    const port = firstPort + randomInt(blocksTotal) * portsOfBlock;
    const claim = await tryListen(port + claimOffset);
    if (claim === null) continue;
    claim.unref();
    const server = await tryListen(port);
    if (server === null) continue;
    server.close();
    await once(server, "close");
    return port;
  }
}

async function tryListen(port: number): Promise<Server | null> {
  const server = createServer().listen(port, "127.0.0.1");
  return once(server, "listening").then(
    () => server,
    () => null,
  );
}

const worldSettings: NodeJS.ProcessEnv = {
  PROFILE: "dev",
  METRICS_PORT: "0",
  MASTER_KEY: "11".repeat(32),
  LOG_LEVEL: "silent",
  CHAIN: "off",
};

/** Making RSA keys takes most of the time of a first start, so worlds begin with keys and successors that were made once. */
const signingKeys: Filling = {
  name: "signing_keys",
  async fill(url) {
    await using ctx = await openContext(parseConfig({ ...worldSettings, DATABASE_URL: url }));
    await using _ = await openSigningKeys(ctx);
    const attestationKeys = createAttestationKeys(ctx);
    await attestationKeys.keySet();
    await attestationKeys.rotate();
  },
};

/**
 * Opens a world of its own: database, service, one organization with a client domain and a client.
 *
 * @param environment settings that replace the world's own; `CHAIN: "on"` adds an embedded chain, which costs time and
 * which logins do not need
 */
export async function openWorld(environment: NodeJS.ProcessEnv = {}): Promise<World> {
  const hasOwnKeys = "MASTER_KEY" in environment || "KEY_LIFETIME_SECONDS" in environment;
  const database = await openTestDatabase(hasOwnKeys ? {} : { filling: signingKeys });
  const port = await freePort();
  const settings: NodeJS.ProcessEnv = {
    ...worldSettings,
    PORT: String(port),
    BASE_URL: `http://localhost:${port}`,
    DATABASE_URL: database.url,
    ...environment,
  };
  const service = await compose(parseConfig(settings));
  const { ctx } = service;
  const organization = await createOrganization(ctx, { name: "Test organization" }, "test");
  const domain = await createDomain(
    ctx,
    { organizationId: organization.id, domain: "localhost", environment: "live" },
    "test",
  );
  const addClient = async (changed: Partial<NewClient> = {}): Promise<LoginClient> => {
    const given: NewClient = {
      clientDomainId: domain.id,
      name: "Test shop",
      authenticationMethod: "client_secret_basic",
      redirectUris: [callbackUri],
      postLogoutRedirectUris: ["http://localhost:4999/bye"],
      audiences: [apiAudience],
      ...changed,
    };
    const made = await createClient(ctx, given, "test");
    const redirectUri = given.redirectUris?.[0] ?? callbackUri;
    return {
      id: made.client.id,
      redirectUri,
      ...(made.secret === null ? {} : { secret: made.secret }),
    };
  };
  let heldMs = 0;
  return {
    baseUrl: service.baseUrl,
    service,
    ctx,
    clientDomainId: domain.id,
    organizationId: organization.id,
    client: await addClient(),
    addClient,
    async advance(seconds) {
      const before = ctx.clock.now();
      heldMs += seconds * 1000;
      await advanceClock(ctx.db, seconds);
      await service.refreshClock();
      if (ctx.clock.now() < before + seconds) throw new Error("the clock did not move");
    },
    holdTime() {
      heldMs = ctx.clock.nowMs();
      const held = [
        mock.method(ctx.clock, "nowMs", () => heldMs),
        mock.method(ctx.clock, "now", () => Math.floor(heldMs / 1000)),
      ];
      return { [Symbol.dispose]: () => held.forEach(({ mock: each }) => each.restore()) };
    },
    startProcess: async (more = {}, options = {}) => startServer({ ...settings, ...more }, options),
    async [Symbol.asyncDispose]() {
      await service.close();
      await database[Symbol.asyncDispose]();
    },
  };
}

/** Starts `svc serve` as a process of its own on a free port; settings without `BASE_URL` make it its own issuer. */
export async function startServer(
  settings: NodeJS.ProcessEnv,
  options: ServerOptions = {},
): Promise<ServerProcess> {
  const { onLine } = options;
  const port = options.port ?? (await freePort());
  const main = join(import.meta.dirname, "../service/src/main.ts");
  const child = spawn(process.execPath, ["--conditions=source", main, "serve"], {
    env: { ...process.env, ...settings, PORT: String(port) },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const lines = createInterface({ input: child.stdout });
  const exited = once(child, "exit");
  const ready = Promise.withResolvers<boolean>();
  lines.on("line", (line) => {
    onLine?.(line);
    if (line.startsWith("ready ")) ready.resolve(true);
  });
  lines.on("close", () => ready.resolve(false));
  if (onLine === undefined) child.stderr.pipe(process.stderr);
  else createInterface({ input: child.stderr }).on("line", onLine);
  const isReady = await ready.promise;
  if (child.pid === undefined || !isReady) throw new Error("the process did not start");
  return {
    url: `http://localhost:${port}`,
    pid: child.pid,
    async kill() {
      child.kill("SIGKILL");
      await exited;
    },
    async stop() {
      child.kill("SIGTERM");
      await exited;
      return child.exitCode;
    },
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null && child.signalCode === null) child.kill("SIGTERM");
      await exited;
    },
  };
}

/** Waits until a process follows an advance of the clock, which takes it a moment. */
export async function untilTime({ url }: ServerProcess, time: number): Promise<void> {
  await until(`${url} has heard of ${time}`, async () => {
    const { now } = (await (await fetch(`${url}/health/ready`)).json()) as { now: number };
    return now >= time ? true : null;
  });
}
