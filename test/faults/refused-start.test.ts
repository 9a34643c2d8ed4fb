// What keeps `npm start` from starting is said in one line to whoever can mend it.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { lookup } from "node:dns/promises";
import { once } from "node:events";
import { mkdirSync, readdirSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { join } from "node:path";
import { test } from "node:test";
import { promisify } from "node:util";
import { runCommandLine } from "../../service/src/command-line/index.ts";
import { compose, openContext } from "../../service/src/compose.ts";
import { parseConfig } from "../../service/src/platform/config/config.ts";
import { openDb, sql } from "../../service/src/platform/database/db.ts";
import { openDemoPlace } from "../demo-world.ts";
import { root } from "../transcript.ts";

async function refuses(environment: NodeJS.ProcessEnv, says: RegExp): Promise<void> {
  const start = ["--conditions=source", join(root, "demo/start.ts")];
  const env = { ...process.env, CHAIN: "off", ...environment };
  await assert.rejects(promisify(execFile)(process.execPath, start, { env }), (error) => {
    const { code, stdout, stderr } = error as Record<"code" | "stdout" | "stderr", unknown>;
    assert.deepEqual({ code, stdout }, { code: 1, stdout: "" });
    assert.match(String(stderr), /^[^\n]+\n$/);
    assert.match(String(stderr), says);
    return true;
  });
}

test("npm start is refused in one line where its port is in use at one of its addresses", async () => {
  await using place = await openDemoPlace();
  for (const { address } of await lookup("localhost", { all: true })) {
    const taken = createServer().listen(Number(place.environment.PORT), address);
    await once(taken, "listening");
    await refuses(place.environment, /port \d+ is already in use at [^\n]+/);
    taken.close();
    await once(taken, "close");
  }
});

test("npm start is refused in one line where the database does not answer", async () => {
  await using place = await openDemoPlace();
  const { PORT } = place.environment;
  const nowhere = { DATABASE_URL: `postgresql://localhost:${PORT}/svc` };
  await refuses({ ...place.environment, ...nowhere }, /ECONNREFUSED/);
});

test("npm start is refused in one line where the server has no database of that name", async () => {
  await using place = await openDemoPlace();
  const url = new URL(place.environment["DATABASE_URL"] ?? "");
  url.pathname = "/nowhere";
  await refuses({ ...place.environment, DATABASE_URL: url.href }, /"nowhere" does not exist/);
});

test("npm start is refused in one line where a newer version migrated the database", async () => {
  await using place = await openDemoPlace();
  await using db = openDb({ connectionString: place.environment["DATABASE_URL"], connections: 1 });
  await db.query(
    sql`insert into migration (number, name, sha256) values (9999, 'future.sql', 'x')`,
  );
  await refuses(place.environment, /holds migration 9999, which this version does not know/);
});

test("npm start is refused in one line where another master key sealed what is in the database", async () => {
  await using place = await openDemoPlace();
  const before = parseConfig({ ...place.environment, MASTER_KEY: "11".repeat(32) });
  await (await openContext(before))[Symbol.asyncDispose]();
  const after = { ...place.environment, MASTER_KEY: "22".repeat(32) };
  await refuses(after, /its master key is not configured/);
});

test("npm start is refused with the old or the new master key alone while a rewrap is not at its end", async (t) => {
  await using place = await openDemoPlace();
  const [older, newer] = ["11".repeat(32), "22".repeat(32)];
  const on = (keys: string) => ({ ...place.environment, CHAIN: "off", MASTER_KEY: keys });
  await (await compose(parseConfig(on(older)))).close();
  let now = 0;
  t.mock.method(performance, "now", () => (now += 1000));
  const status = await runCommandLine(["key", "rewrap"], {
    out: () => undefined,
    err: () => undefined,
    watched(line) {
      if (line.includes("webhook_attempt")) throw new Error("the terminal is gone");
    },
    environment: on(`${newer},${older}`),
  });
  assert.equal(status, 1);
  t.mock.restoreAll();
  for (const alone of [newer, older])
    await refuses(on(alone), /its master key is not configured \(MASTER_KEY\)/);
});

test("npm start is refused in one line where the embedded database is not where it was", async () => {
  await using place = await openDemoPlace();
  const postgres = join(place.environment.DATA_DIR, "postgres");
  mkdirSync(postgres);
  writeFileSync(join(postgres, "location"), "/nowhere");
  await refuses({ ...place.environment, DATABASE_URL: "" }, /is in \/nowhere/);
});

test("npm start is refused in one line where its directory is a file", async () => {
  await using place = await openDemoPlace();
  const file = join(place.environment.DATA_DIR, "file");
  writeFileSync(file, "");
  await refuses({ ...place.environment, DATA_DIR: file }, /file already exists[^\n]+file/);
});

test("npm start refuses the profile production in one line before it makes anything in its directory", async () => {
  await using place = await openDemoPlace();
  await refuses(
    {
      ...place.environment,
      PROFILE: "production",
      BASE_URL: "https://id.example.com",
      MASTER_KEY: "0123456789abcdef".repeat(4),
      CHAIN: "on",
      ALLOW_EMBEDDED_CHAIN: "true",
      SIGNER_KEY: "fedcba9876543210".repeat(4),
    },
    /^npm start seeds a demo world[^\n]+npm run svc -- serve\n$/,
  );
  assert.deepEqual(readdirSync(place.environment.DATA_DIR), []);
});
