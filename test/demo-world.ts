// The demo as `npm start` makes it: a process of its own on free ports, with a directory and a database of its own.
import { type ChildProcessByStdio, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { openTestDatabase } from "../service/src/platform/database/test-database.ts";
import { type Jar, openJar } from "./cookie-jar.ts";
import { finish, hooksOf, statusOf } from "./login-flow.ts";
import { freePort } from "./world.ts";
import { root } from "./transcript.ts";

export interface DemoWorld extends AsyncDisposable {
  readonly port: number;
  readonly baseUrl: string;
  readonly shopUrl: string;
  /** What makes another process work on the same data. */
  readonly environment: NodeJS.ProcessEnv;
  /** What it printed until it was ready. */
  readonly output: string;
}

/** A person before the QR page, who came from the shop. */
export interface Visitor {
  /** Text of the QR code that the page shows now. */
  readonly link: string;
  /** The two digits that the page shows now. */
  digits(): Promise<string>;
  /** Goes on as the page does by itself. @returns the shop's home page */
  goOn(): Promise<string>;
  /** A page of the shop. */
  open(path: string): Promise<string>;
  /** Presses the button that posts there. */
  press(path: string): Promise<void>;
}

/** Where a demo works: what makes a process of it, or another process, work on the same data. */
export interface DemoPlace extends AsyncDisposable {
  readonly environment: NodeJS.ProcessEnv & { readonly PORT: string; readonly DATA_DIR: string };
}

export async function openDemoWorld(): Promise<DemoWorld> {
  const place = await openDemoPlace();
  const demo = await startDemo(place.environment);
  return {
    ...demo,
    async [Symbol.asyncDispose]() {
      await demo[Symbol.asyncDispose]();
      await place[Symbol.asyncDispose]();
    },
  };
}

/** An empty directory and database, and free ports. */
export async function openDemoPlace(): Promise<DemoPlace> {
  const database = await openTestDatabase();
  const directory = await mkdtemp(join(tmpdir(), "svc-demo-"));
  return {
    environment: {
      PORT: String(await freePort()),
      DATA_DIR: directory,
      DATABASE_URL: database.url,
      LOG_LEVEL: "silent",
    },
    async [Symbol.asyncDispose]() {
      await rm(directory, { recursive: true, force: true });
      await database[Symbol.asyncDispose]();
    },
  };
}

/** `npm start`, not awaited. */
export function spawnDemo(
  environment: NodeJS.ProcessEnv,
): ChildProcessByStdio<null, Readable, null> {
  return spawn(process.execPath, ["--conditions=source", join(root, "demo/start.ts")], {
    cwd: root,
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "inherit"],
  });
}

/** Starts a demo at its place; disposing stops it and keeps the place. */
export async function startDemo(environment: DemoPlace["environment"]): Promise<DemoWorld> {
  const port = Number(environment.PORT);
  const child = spawnDemo(environment);
  const ended = once(child, "exit");
  const ready = /^ready .*\n/m;
  let output = "";
  for await (const text of child.stdout.setEncoding("utf8").iterator({ destroyOnReturn: false })) {
    output += String(text);
    if (ready.test(output)) break;
  }
  if (!ready.test(output)) throw new Error("the demo did not start");
  return {
    port,
    baseUrl: `http://localhost:${port}`,
    shopUrl: `http://localhost:${port + 1}`,
    environment,
    output: output.trimEnd(),
    async [Symbol.asyncDispose]() {
      if (child.exitCode === null) child.kill("SIGTERM");
      await ended;
    },
  };
}

/** Asks the demo business for two fields, as the demo organization. Nobody listens where its events go. */
export async function askBusiness(demo: DemoWorld): Promise<void> {
  const path = join(demo.environment["DATA_DIR"] ?? "", "demo.json");
  const { apiKey, business } = JSON.parse(await readFile(path, "utf8")) as {
    apiKey: string;
    business: { address: string };
  };
  const send = async (method: string, route: string, body: object): Promise<void> => {
    const answer = await fetch(`${demo.baseUrl}/api/v1/kyb/${route}`, {
      method,
      headers: { authorization: apiKey, "content-type": "application/json" },
      body: JSON.stringify(body),
    });
    if (!answer.ok) throw new Error(`${route}: ${await answer.text()}`);
  };
  await send("PUT", "webhook-endpoint", { url: "http://localhost:4998/hooks" });
  await send("POST", "data-requests", {
    businessWalletAddress: business.address,
    fields: ["BUSINESS_LEGAL_NAME"],
    optionalFields: ["BUSINESS_WEBSITE"],
    purpose: "To open an account for the company",
  });
}

/** Opens the shop in a browser of its own and presses "Log in", or the button that posts to `button`. */
export async function visit(demo: DemoWorld, button = "/login"): Promise<Visitor> {
  const jar: Jar = openJar();
  const open = async (path: string): Promise<string> =>
    (await jar.fetch(`${demo.shopUrl}${path}`)).text();
  const press = async (path: string): Promise<Response> =>
    jar.fetch(`${demo.shopUrl}${path}`, { method: "POST" });
  const start = await press(button);
  const page = await jar.fetch(start.headers.get("location") ?? "");
  const hooks = Object.assign(hooksOf(await page.text()), { jar });
  return {
    get link() {
      return hooks.qr;
    },
    async digits() {
      const { digits } = await statusOf(demo.baseUrl, hooks);
      return String(digits);
    },
    async goOn() {
      await jar.fetch((await finish(demo.baseUrl, hooks)).href);
      return open("/");
    },
    open,
    async press(path) {
      const { status } = await press(path);
      if (status !== 303) throw new Error(`${path} answered ${status}`);
    },
  };
}
