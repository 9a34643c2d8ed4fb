import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, test } from "node:test";
import { openDb, sql } from "../database/db.ts";
import { createSeal, mayOpenElsewhere, openWith, SealBroken, sealWith } from "./seal.ts";
import { replaceSealed } from "./seal-store.ts";
import { rewrapAll } from "./sealed-columns.ts";
import { openTestDatabase } from "../database/test-database.ts";

const oldKey = "a1".repeat(32);
const newKey = "b2".repeat(32);
const place = { table: "installation_key", id: "one", column: "sealed" };
const plain = Buffer.from("the private key");

test("what was sealed opens at its place", () => {
  const seal = createSeal([oldKey]);
  for (const content of [plain, Buffer.alloc(0), randomBytes(100_000)]) {
    const sealed = seal.seal(content, place);
    assert.equal(sealed.length, content.length + 81);
    assert.deepEqual(seal.open(sealed, place), content);
    assert.deepEqual(seal.open(new Uint8Array(sealed), place), content);
  }
});

test("a value that is sealed twice looks different each time, and no nonce is used twice", () => {
  const seal = createSeal([oldKey]);
  const [one, two] = [seal.seal(plain, place), seal.seal(plain, place)];
  assert.notDeepEqual(one.subarray(65), two.subarray(65));
  assert.notDeepEqual(one.subarray(5, 17), two.subarray(5, 17));
  const secret = randomBytes(16);
  const [first, second] = [sealWith(secret, plain, "a"), sealWith(secret, plain, "a")];
  assert.notDeepEqual(first.subarray(1, 13), second.subarray(1, 13));
});

test("what an earlier version sealed opens", () => {
  const sealed =
    "0152fe609449a83a30ff3ff721b4fcbdd1d2a0186238c4f2ff276263bca4f8027cd4be57909764f7120ca6c6a9b8260b3a43ff5f3d07c58d9bc9d8293ae0e72c6fc7b133a9018bdedccad9705a1e8520add1fee5946c3e4c2a28a7b5812a7578";
  assert.deepEqual(createSeal([oldKey]).open(Buffer.from(sealed, "hex"), place), plain);
  const withSecret = "01ad53ff8c16a277c110b4ba2a7764951bf7d72e3305647738329d206da8ab0263e3";
  const opened = openWith(Buffer.alloc(16, 7), Buffer.from(withSecret, "hex"), "a context");
  assert.equal(opened.toString(), "plain");
});

test("a value that was moved to another row, column or table does not open", () => {
  const seal = createSeal([oldKey]);
  const sealed = seal.seal(plain, place);
  const moves = [
    { ...place, id: "two" },
    { ...place, column: "other" },
    { ...place, table: "other" },
    { table: "installation_key", id: 'one","sealed', column: "" },
  ];
  for (const moved of moves) assert.throws(() => seal.open(sealed, moved), SealBroken);
  for (const moved of moves) assert.throws(() => seal.rewrap(sealed, moved), SealBroken);
});

test("every changed byte and every cut is noticed", () => {
  const seal = createSeal([oldKey]);
  const sealed = seal.seal(plain, place);
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    assert.throws(() => seal.open(changed, place), SealBroken, `byte ${at}`);
    assert.throws(() => seal.open(sealed.subarray(0, at), place), SealBroken, `cut at ${at}`);
  }
});

test("a value does not open without its master key", () => {
  const sealed = createSeal([oldKey]).seal(plain, place);
  assert.throws(() => createSeal([newKey]).open(sealed, place), /not configured/);
});

test("a process that has the missing master key is waited for, for 72 hours", () => {
  const missing = new SealBroken("here", { isKeyMissing: true });
  assert.equal(mayOpenElsewhere(missing, 72 * 3600 - 1), true);
  assert.equal(mayOpenElsewhere(missing, 72 * 3600), false);
  assert.equal(mayOpenElsewhere(new SealBroken("here"), 0), false);
});

test("rewrapping keeps the value and needs the old key no more", () => {
  const sealed = createSeal([oldKey]).seal(plain, place);
  const both = createSeal([newKey, oldKey]);
  assert.deepEqual(both.open(sealed, place), plain);
  const fresh = both.rewrap(sealed, place);
  assert.ok(fresh);
  assert.deepEqual(createSeal([newKey]).open(fresh, place), plain);
  assert.throws(() => createSeal([oldKey]).open(fresh, place), SealBroken);
  assert.equal(both.rewrap(fresh, place), null);
});

test("wrong master keys are refused at the start", () => {
  for (const keys of [[], ["ab"], ["A1".repeat(32)], [oldKey, oldKey]])
    assert.throws(() => createSeal(keys));
});

test("a value sealed under a secret opens with that secret and context alone", () => {
  const secret = randomBytes(32);
  const sealed = sealWith(secret, plain, "refresh successor");
  assert.equal(sealed.length, plain.length + 29);
  assert.deepEqual(openWith(secret, sealed, "refresh successor"), plain);
  assert.throws(() => openWith(randomBytes(32), sealed, "refresh successor"), SealBroken);
  assert.throws(() => openWith(secret, sealed, "another"), SealBroken);
  for (let at = 0; at < sealed.length; at += 1) {
    const changed = Buffer.from(sealed);
    changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
    assert.throws(() => openWith(secret, changed, "refresh successor"), SealBroken, `byte ${at}`);
    assert.throws(() => openWith(secret, sealed.subarray(0, at), "refresh successor"), SealBroken);
  }
  assert.throws(() => sealWith(randomBytes(8), plain, "refresh successor"), /128 bits/);
});

const database = await openTestDatabase();
const db = openDb({ ...database.connection, connections: 2 });
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});

test("after a rotation everything opens without the old master key", async () => {
  const columns = [
    { table: "installation_key", idColumn: "name", column: "sealed" },
    { table: "sealed_by_number", idColumn: "id", column: "content" },
    { table: "sealed_by_bytes", idColumn: "id", column: "content" },
  ];
  await db.query(sql`create table sealed_by_number (id bigint primary key, content bytea)`);
  await db.query(sql`create table sealed_by_bytes (id bytea primary key, content bytea)`);
  const old = createSeal([oldKey]);
  const ids = Array.from({ length: 25 }, (_, index) => index);
  for (const index of ids) {
    const name = `key ${index}`;
    const bytes = Buffer.from([index]);
    const sealed = [
      ["installation_key", "sealed", name],
      ["sealed_by_number", "content", String(index)],
      ["sealed_by_bytes", "content", `\\x${bytes.toString("hex")}`],
    ].map(([table = "", column = "", id = ""]) => old.seal(Buffer.from(id), { table, id, column }));
    await db.query(
      sql`insert into installation_key (name, sealed, created_at) values (${name}, ${sealed[0]}, 0)`,
    );
    await db.query(sql`insert into sealed_by_number values (${index}, ${sealed[1]})`);
    await db.query(sql`insert into sealed_by_bytes values (${bytes}, ${sealed[2]})`);
  }
  await db.query(sql`insert into sealed_by_number values (999, null)`);

  const both = createSeal([newKey, oldKey]);
  const seen: number[] = [];
  const first = await rewrapAll({ db, seal: both }, columns, {
    batch: 10,
    onProgress: (progress) => seen.push(progress.checked),
  });
  assert.deepEqual(
    first.map((each) => [each.table, each.checked, each.rewrapped]),
    columns.map(({ table }) => [table, 25, 25]),
  );
  assert.deepEqual(seen, [10, 20, 25, 10, 20, 25, 10, 20, 25]);

  const alone = createSeal([newKey]);
  for (const { table, idColumn, column } of columns) {
    const text = `select ${idColumn}::text as id, ${column} as sealed from ${table} where ${column} is not null`;
    const rows = await db.query<{ id: string; sealed: Buffer }>({ name: "", text, values: [] });
    assert.equal(rows.length, 25);
    for (const row of rows)
      assert.equal(alone.open(row.sealed, { table, id: row.id, column }).toString(), row.id);
  }
  const second = await rewrapAll({ db, seal: alone }, columns, { batch: 10 });
  assert.deepEqual(
    second.map((each) => each.rewrapped),
    [0, 0, 0],
  );
});

const placeOf = (table: string, id: number) => ({ table, id: String(id), column: "content" });

test("a value that does not open is named, and keeps no other one under the old master key", async () => {
  await db.query(sql`create table sealed_with_broken (id int primary key, content bytea)`);
  await db.query(sql`create table sealed_after (id int primary key, content bytea)`);
  const [old, lost] = [createSeal([oldKey]), createSeal(["c3".repeat(32)])];
  for (const id of [1, 2, 3]) {
    const given = placeOf("sealed_with_broken", id);
    const sealed = (id === 2 ? lost : old).seal(plain, given);
    await db.query(sql`insert into sealed_with_broken values (${id}, ${sealed})`);
  }
  const sealed = old.seal(plain, placeOf("sealed_after", 1));
  await db.query(sql`insert into sealed_after values (1, ${sealed})`);
  const columns = ["sealed_with_broken", "sealed_after"].map((table) => ({
    table,
    idColumn: "id",
    column: "content",
  }));
  const both = createSeal([newKey, oldKey]);
  await assert.rejects(
    rewrapAll({ db, seal: both }, columns, { batch: 2 }),
    (error: unknown) =>
      error instanceof SealBroken && /sealed_with_broken\.content of 2/.test(error.message),
  );
  const alone = createSeal([newKey]);
  const rows = await db.query<{ id: number; name: string; content: Buffer }>(sql`
    select id, 'sealed_with_broken' as name, content from sealed_with_broken where id <> 2
    union all select id, 'sealed_after', content from sealed_after`);
  assert.equal(rows.length, 3);
  for (const { id, name, content } of rows)
    assert.deepEqual(alone.open(content, placeOf(name, id)), plain);
});

test("a value that changed while it was put under another key stays as it was changed", async () => {
  const [old, fresh, changed] = [Buffer.from("old"), Buffer.from("fresh"), Buffer.from("changed")];
  await db.query(
    sql`insert into installation_key (name, sealed, created_at) values ('changed', ${changed}, 0)`,
  );
  const column = { table: "installation_key", idColumn: "name", column: "sealed" };
  const read = async (): Promise<string> => {
    const [row] = await db.query<{ sealed: Buffer }>(
      sql`select sealed from installation_key where name = 'changed'`,
    );
    return String(row?.sealed);
  };
  await replaceSealed(db, column, { id: "changed", old, fresh });
  assert.equal(await read(), "changed");
  await replaceSealed(db, column, { id: "changed", old: changed, fresh });
  assert.equal(await read(), "fresh");
});
