// Dry runs of verbs on a database that no version has migrated yet, and where there is none.
import assert from "node:assert/strict";
import { mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { listMigrations } from "../platform/database/migrate.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { callCommandLine } from "./test-call.ts";

await using database = await openTestDatabase({ migrated: false });
const environment = { DATABASE_URL: database.url, PROFILE: "dev", MASTER_KEY: "11".repeat(32) };

const call = async (words: string, changed: Record<string, string | undefined> = {}) =>
  callCommandLine([...words.split(" "), "--json"], { ...environment, ...changed });

const user = "0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13";
const issuer = "0190a5f2-7c1e-7b3a-9d4e-5f6a7b8c9d0e";

await test("migrate brings an empty database up as its dry run said, other dry runs do not, and it finds nothing to do the second time", async () => {
  const foreseen = await call("migrate --dry-run");
  for (const words of [`user delete ${user}`, `issuer distrust ${issuer} --from 1`]) {
    const { status, err } = await call(`${words} --dry-run`);
    assert.equal(status, 1);
    assert.match(err, /the database is behind this version; `svc migrate` comes first/);
  }
  const first = await call("migrate");
  const { pending } = JSON.parse(foreseen.out) as { pending: string[] };
  assert.deepEqual(JSON.parse(first.out), { applied: pending });
  assert.ok(pending.includes("0002_accounts.sql"));
  assert.deepEqual(JSON.parse((await call("migrate")).out), { applied: [] });
  assert.deepEqual(JSON.parse((await call("migrate --dry-run")).out), { pending: [] });
  assert.match((await call(`user delete ${user} --dry-run`)).err, /no such user/);
});

await test("where there is no database yet, dry runs make none: migrate foresees every migration, the others refuse", async () => {
  const parent = await mkdtemp(join(tmpdir(), "svc-dry-run-"));
  try {
    const DATA_DIR = join(parent, "data");
    const absent = { DATA_DIR, DATABASE_URL: undefined };
    const foreseen = await call("migrate --dry-run", absent);
    assert.deepEqual(JSON.parse(foreseen.out), { pending: listMigrations().map((it) => it.name) });
    for (const words of [`user delete ${user}`, `issuer distrust ${issuer} --from 1`]) {
      const { status, err } = await call(`${words} --dry-run`, absent);
      assert.equal(status, 1);
      assert.ok(err.includes(`there is no database in ${DATA_DIR}; \`svc migrate\` comes first`));
    }
    assert.deepEqual(await readdir(parent), []);
  } finally {
    await rm(parent, { recursive: true });
  }
});
