import assert from "node:assert/strict";
import { after, test } from "node:test";
import { type Db, openDb, sql, type Statement } from "../database/db.ts";
import { type InstallationKeys, openInstallationKeys } from "./installation-keys.ts";
import { equalBytes, mac } from "./mac.ts";
import { createRandom } from "./random.ts";
import { createSeal } from "./seal.ts";
import { openTestDatabase } from "../database/test-database.ts";

const database = await openTestDatabase();
const [one, two] = [1, 2].map(() => openDb({ ...database.connection, connections: 5 }));
assert.ok(one && two);
after(async () => {
  await one.close();
  await two.close();
  await database[Symbol.asyncDispose]();
});

const clock = { now: () => 1_700_000_000, nowMs: () => 1_700_000_000_000 };
const seal = createSeal(["a1".repeat(32)]);

test("processes that start together on an empty database get the same keys", async () => {
  const opened = await Promise.all(
    Array.from({ length: 10 }, async (_, index) =>
      openInstallationKeys({
        db: index % 2 === 0 ? one : two,
        seal,
        clock,
        random: createRandom(),
      }),
    ),
  );
  const macs = opened.map((each) => each.mac("session", "x").toString("hex"));
  assert.equal(new Set(macs).size, 1);
  assert.notEqual(opened[0]?.mac("login-code", "x").toString("hex"), macs[0]);
  const wrong = createSeal(["b2".repeat(32)]);
  const random = createRandom();
  await assert.rejects(openInstallationKeys({ db: one, seal: wrong, clock, random }), /not open/);
});

test("a process that finds no keys takes those that another has made by then", async () => {
  await one.query(sql`delete from installation_key`);
  const random = createRandom();
  let earlier: InstallationKeys | undefined;
  const late: Db = {
    ...two,
    async query<Row extends object>(statement: Statement) {
      const rows = await two.query<Row>(statement);
      earlier ??= await openInstallationKeys({ db: one, seal, clock, random });
      return rows;
    },
  };
  const keys = await openInstallationKeys({ db: late, seal, clock, random });
  assert.deepEqual(keys.mac("session", "x"), earlier?.mac("session", "x"));
});

test("the keys lie in the database sealed only", async () => {
  const keys = await openInstallationKeys({ db: one, seal, clock, random: createRandom() });
  const plain = keys.hmac("session").export();
  const rows = await one.query<{ sealed: Buffer }>(sql`select sealed from installation_key`);
  assert.ok(rows.length > 0);
  assert.ok(rows.every((row) => !row.sealed.includes(plain)));
});

test("a mac is HMAC-SHA256 under the key of its name", async () => {
  const keys = await openInstallationKeys({ db: one, seal, clock, random: createRandom() });
  const made = keys.mac("api-key", "text");
  assert.equal(made.length, 32);
  assert.deepEqual(made, mac(keys.hmac("api-key"), Buffer.from("text")));
  assert.ok(equalBytes(made, mac(keys.hmac("api-key"), "text")));
  assert.ok(!equalBytes(made, keys.mac("api-key", "other")));
  assert.ok(!equalBytes(made, made.subarray(1)));
  for (let at = 0; at < made.length; at += 1) {
    const changed = Buffer.from(made);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    assert.ok(!equalBytes(made, changed), `byte ${at}`);
  }
});
