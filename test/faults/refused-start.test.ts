// What keeps `npm start` from starting is said in one line to whoever can mend it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { mock, test } from "node:test";
import { promisify } from "node:util";
import { runCommandLine } from "../../service/src/command-line/index.ts";
import { compose, openContext } from "../../service/src/compose.ts";
import { parseConfig } from "../../service/src/platform/config/config.ts";
import { openDb, sql } from "../../service/src/platform/database/db.ts";
import { type DemoPlace, openDemoPlace } from "../demo-world.ts";
import { root } from "../transcript.ts";
import { freePort } from "../world.ts";

interface Refusal {
  /** Changes to the environment of the place. */
  readonly environment: NodeJS.ProcessEnv;
  readonly says: RegExp;
}

/** Makes something at the place keep a start from starting, until the stack is disposed of. */
type Obstacle = (place: DemoPlace, stack: AsyncDisposableStack) => Promise<Refusal[]>;

/** These leave the database of the place as it is. */
const outside: Readonly<Record<string, Obstacle>> = {
  "its port is in use at one of its addresses": async (_, stack) => {
    const refusals: Refusal[] = [];
    for (const { address } of await lookup("localhost", { all: true })) {
      const PORT = String(await freePort());
      const taken = createServer().listen(Number(PORT), address);
      stack.defer(() => void taken.close());
      await once(taken, "listening");
      const says = /^port \d+ is already in use at [^\n]+$/;
      refusals.push({ environment: { PORT }, says });
    }
    return refusals;
  },
  "the database does not answer": async ({ environment: { PORT } }) => {
    const DATABASE_URL = `postgresql://localhost:${PORT}/svc`;
    return [{ environment: { DATABASE_URL }, says: /ECONNREFUSED/ }];
  },
  "the server has no database of that name": async ({ environment }) => {
    const url = new URL(environment["DATABASE_URL"] ?? "");
    url.pathname = "/nowhere";
    return [{ environment: { DATABASE_URL: url.href }, says: /"nowhere" does not exist/ }];
  },
  "the embedded database is not where it was": async ({ environment }) => {
    const DATA_DIR = join(environment.DATA_DIR, "moved");
    mkdirSync(join(DATA_DIR, "postgres"), { recursive: true });
    writeFileSync(join(DATA_DIR, "postgres", "location"), "/nowhere");
    return [{ environment: { DATA_DIR, DATABASE_URL: "" }, says: /is in \/nowhere/ }];
  },
  "its directory is a file": async ({ environment }) => {
    const DATA_DIR = join(environment.DATA_DIR, "file");
    writeFileSync(DATA_DIR, "");
    return [{ environment: { DATA_DIR }, says: /file already exists[^\n]+file/ }];
  },
};
/** These need a database of their own. */
const inside: Readonly<Record<string, Obstacle>> = {
  "a newer version migrated the database": async ({ environment }) => {
    await using db = openDb({ connectionString: environment["DATABASE_URL"], connections: 1 });
    await db.query(
      sql`insert into migration (number, name, sha256) values (9999, 'future.sql', 'x')`,
    );
    return [{ environment: {}, says: /holds migration 9999, which this version does not know/ }];
  },
  "another master key sealed what is in the database": async ({ environment }) => {
    const before = parseConfig({ ...environment, MASTER_KEY: "11".repeat(32) });
    await (await openContext(before))[Symbol.asyncDispose]();
    const MASTER_KEY = "22".repeat(32);
    return [{ environment: { MASTER_KEY }, says: /its master key is not configured/ }];
  },
  "a rewrap is not at its end, with the old or the new master key alone": async (place) => {
    const [older, newer] = ["11".repeat(32), "22".repeat(32)];
    const on = (keys: string) => ({ ...place.environment, CHAIN: "off", MASTER_KEY: keys });
    await (await compose(parseConfig(on(older)))).close();
    let now = 0;
    const hurried = mock.method(performance, "now", () => (now += 1000));
    const status = await runCommandLine(["key", "rewrap"], {
      out: () => undefined,
      err: () => undefined,
      watched(line) {
        if (line.includes("webhook_attempt")) throw new Error("the terminal is gone");
      },
      environment: on(`${newer},${older}`),
    });
    hurried.mock.restore();
    assert.equal(status, 1);
    return [newer, older].map((MASTER_KEY) => ({
      environment: { MASTER_KEY },
      says: /its master key is not configured \(MASTER_KEY\)/,
    }));
  },
};

/** Runs a program that has to end by itself with status 1. @returns the lines that it said about it */
async function fail(
  program: readonly string[],
  environment: NodeJS.ProcessEnv = {},
): Promise<string[]> {
  const env = { ...process.env, CHAIN: "off", ...environment };
  const ended = promisify(execFile)(process.execPath, ["--conditions=source", ...program], { env });
  const error: unknown = await ended.then(
    () => assert.fail("it started"),
    (fault: unknown) => fault,
  );
  const { code, stdout, stderr } = error as { code: unknown; stdout: string; stderr: string };
  assert.deepEqual({ code, stdout }, { code: 1, stdout: "" }, stderr);
  assert.ok(stderr.endsWith("\n"));
  return stderr.trimEnd().split("\n");
}

/** A program of one start after the other: whatever a refused start leaves open would keep it from ending. */
const startsIn = (environments: readonly NodeJS.ProcessEnv[]): string[] => [
  "--input-type=module",
  "--eval",
  `const { runDemo } = await import(${JSON.stringify(join(root, "demo/demo.ts"))});
  const plain = process.env;
  for (const environment of ${JSON.stringify(environments)}) {
    process.env = { ...plain, ...environment };
    await runDemo();
  }`,
];

test("npm start is refused in one line, and ends", async (t) => {
  await using stack = new AsyncDisposableStack();
  const shared = stack.use(await openDemoPlace());
  const refusals: (Refusal & { where: string })[] = [];
  const add = async (where: string, obstacle: Obstacle, place: DemoPlace): Promise<void> => {
    for (const { environment, says } of await obstacle(place, stack))
      refusals.push({ where, environment: { ...place.environment, ...environment }, says });
  };
  for (const [where, obstacle] of Object.entries(outside)) await add(where, obstacle, shared);
  for (const [where, obstacle] of Object.entries(inside))
    await add(where, obstacle, stack.use(await openDemoPlace()));
  const lines = await fail(startsIn(refusals.map(({ environment }) => environment)));
  assert.equal(lines.length, refusals.length, lines.join("\n"));
  for (const [at, { where, says }] of refusals.entries())
    await t.test(`where ${where}`, () => assert.match(lines[at] ?? "", says));
});

test("npm start refuses the profile production in one line before it makes anything in its directory", async () => {
  await using place = await openDemoPlace();
  const environment = {
    ...place.environment,
    PROFILE: "production",
    BASE_URL: "https://id.example.com",
    MASTER_KEY: "0123456789abcdef".repeat(4),
    CHAIN: "on",
    ALLOW_EMBEDDED_CHAIN: "true",
    SIGNER_KEY: "fedcba9876543210".repeat(4),
  };
  const start = [join(root, "demo/start.ts")];
  const [line = "", ...more] = await fail(start, environment);
  assert.match(line, /^npm start seeds a demo world[^\n]+npm run svc -- serve$/);
  assert.deepEqual([more, readdirSync(place.environment.DATA_DIR)], [[], []]);
});
