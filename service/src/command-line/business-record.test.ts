import assert from "node:assert/strict";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { openContext } from "../compose.ts";
import { createIssuer } from "../credentials/index.ts";
import { ensureBuiltInIssuers } from "../credentials/issuers.ts";
import { someUser } from "../credentials/test-credentials.ts";
import { insertTestBusiness } from "../credentials/test-credentials-store.ts";
import { parseConfig } from "../platform/config/config.ts";
import { sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { callCommandLine } from "./test-call.ts";

const directory = mkdtempSync(join(tmpdir(), "svc-record-"));
using cleanup = new DisposableStack();
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));
await using database = await openTestDatabase();
const environment = {
  DATABASE_URL: database.url,
  DATA_DIR: directory,
  PROFILE: "dev",
  MASTER_KEY: "11".repeat(32),
  LOG_LEVEL: "silent",
};
await using ctx = await openContext(parseConfig(environment));
await ensureBuiltInIssuers(ctx);
const [live, sandbox] = [someUser(), someUser()];
const now = ctx.clock.now();
await insertTestBusiness(ctx.db, { address: live, environment: "live", now });
await insertTestBusiness(ctx.db, { address: sandbox, environment: "sandbox", now });

const call = async (...args: string[]) => callWith({}, ...args);

const callWith = async (more: NodeJS.ProcessEnv, ...args: string[]) =>
  callCommandLine([...args, "--json"], { ...environment, ...more });

function fileOf(value: unknown): string {
  const path = join(directory, "record.json");
  writeFileSync(path, typeof value === "string" ? value : JSON.stringify(value));
  return path;
}

const fields = [
  { field: "BUSINESS_LEGAL_NAME", data: "Canary AG" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1", data: "Canary Muster" },
];
const isVerified = async (address: string): Promise<boolean> =>
  (
    await ctx.db.query(
      sql`select 1 as it from business where address = ${address} and verified_at is not null`,
    )
  ).length === 1;

await test("a record is issued from a file, in the name of an issuer, and marks the business verified", async () => {
  const issuer = await createIssuer(ctx, { name: "Desk", environment: "live" }, "test");
  const args = ["business", "record", live, "--fields", fileOf(fields)];
  const { status, out, err } = await call(...args, "--issuer", issuer.id, "--wait", "0");
  assert.deepEqual([status, err], [0, ""]);
  const record = JSON.parse(out) as Record<string, unknown>;
  assert.deepEqual([record["business"], record["issuer"], record["fields"]], [live, issuer.id, 2]);
  assert.equal(record["attested"], false, "no service runs");
  assert.ok(!out.includes("Canary"));
  assert.ok(await isVerified(live));
  const entries = await ctx.db.query<{ actor: string }>(
    sql`select actor from audit_entry where action = 'company.issue'`,
  );
  assert.deepEqual(entries, [{ actor: "cli" }]);
});

await test("a sandbox business gets the record of a made-up company, another business does not", async () => {
  const { status, out, err } = await call("simulate", "company", sandbox, "--wait", "0");
  assert.deepEqual([status, err], [0, ""]);
  const record = JSON.parse(out) as Record<string, unknown>;
  assert.deepEqual([record["business"], record["attested"]], [sandbox, false], "no service runs");
  assert.ok(await isVerified(sandbox));
  assert.equal((await call("simulate", "company", sandbox, "--wait", "soon")).status, 2);
  const begunMs = performance.now();
  const unchained = await callWith(
    { CHAIN: "off" },
    "simulate",
    "company",
    sandbox,
    "--wait",
    "60",
  );
  assert.match(unchained.out, /"attested":false/);
  assert.ok(performance.now() - begunMs < 60_000, "without a chain nothing is waited for");
  assert.equal((await call("simulate", "company", live)).status, 1);
  assert.equal((await call("simulate", "company", someUser())).status, 1);
});

await test("a file that is missing or malformed is refused, without quoting its contents", async () => {
  for (const text of [
    "Canary",
    '{"field":"Canary"}',
    '[{"field":"BUSINESS_LEGAL_NAME","data":1}]',
  ]) {
    const { status, err } = await call("business", "record", live, "--fields", fileOf(text));
    assert.equal(status, 2);
    assert.ok(!err.includes("Canary"));
  }
  const wrong = [{ field: "BUSINESS_LEI", data: "Canary" }];
  const { status, err } = await call("business", "record", live, "--fields", fileOf(wrong));
  assert.equal(status, 1);
  assert.match(err, /BUSINESS_LEI must be/);
  assert.ok(!err.includes("Canary"));
});

await test("a record is issued as of a time and until a time, and a time of another form is wrong use", async () => {
  const file = fileOf(fields);
  const times = ["--as-of", `${now - 60}`, "--expires", `${now + 86_400}`, "--wait", "0"];
  const { status, out, err } = await call(
    "business",
    "record",
    sandbox,
    "--fields",
    file,
    ...times,
  );
  assert.deepEqual([status, err], [0, ""]);
  const { id } = JSON.parse(out) as { id: string };
  const rows = await ctx.db.query(sql`
    select r.as_of, c.expires_at from company_record r join credential c on c.id = r.credential_id
    where c.id = ${id}`);
  assert.deepEqual(rows, [{ as_of: now - 60, expires_at: now + 86_400 }]);
  for (const wrong of ["tomorrow", "0", "-1", "1e9", "9999999999999"]) {
    const said = await call("business", "record", sandbox, "--fields", file, `--expires=${wrong}`);
    assert.deepEqual([said.status, said.out], [2, ""]);
    assert.match(said.err, /^svc business record: --expires must be a time in Unix seconds; see/);
  }
});
