// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openDb, type Queryable, sql } from "../platform/database/db.ts";
import { deleteKeys, keepAnswer, takeKey } from "./idempotency-store.ts";
import { openTestKyb } from "./test-kyb-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [own, other] = [await kyb.addOrganization(), await kyb.addOrganization()];
const lifetime = 100;

async function take(
  { clientDomainId }: { clientDomainId: string },
  { now = 0, key = "key", mac = 1 } = {},
) {
  const requestMac = Buffer.alloc(32, mac);
  const id = randomUUID();
  const given = { id, clientDomainId, key, requestMac, now };
  return { id, known: await takeKey(db, given, now - lifetime) };
}

await test("a key belongs to one client domain, and each gets its own answer", async () => {
  const first = await take(own, { mac: 1 });
  const second = await take(other, { mac: 2 });
  assert.deepEqual([first.known, second.known], [null, null]);
  for (const [{ id }, answer] of [
    [first, "own"],
    [second, "other"],
  ] as const)
    await keepAnswer(db, { id, sealed: Buffer.from(answer) });
  for (const [client, { id }, mac, answer] of [
    [own, first, 1, "own"],
    [other, second, 2, "other"],
  ] as const)
    assert.deepEqual((await take(client, { mac: 3 })).known, {
      id,
      requestMac: Buffer.alloc(32, mac),
      answerSealed: Buffer.from(answer),
    });
});

await test("a key can be used again once it has expired, and its answer is then gone", async () => {
  const key = "again";
  const { id } = await take(own, { key });
  await keepAnswer(db, { id, sealed: Buffer.from("old") });
  assert.equal((await take(own, { key, now: lifetime - 1 })).known?.id, id);
  const next = await take(own, { key, now: lifetime });
  assert.equal(next.known, null);
  const { known } = await take(own, { key, now: lifetime + 1 });
  assert.deepEqual([known?.id, known?.answerSealed], [next.id, null]);
});

/** How many rows this transaction has read by sequential scans. */
async function readScanning(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ read: number }>(
    sql`select pg_stat_get_xact_tuples_returned('kyb_idempotency'::regclass) as read`,
  );
  return row?.read ?? NaN;
}

await test("storing an answer reads no other keys, also after a purge that left none", async () => {
  const fill = async (): Promise<void> =>
    void (await db.query(sql`
      insert into kyb_idempotency (id, client_domain_id, key, request_mac, created_at)
      select gen_random_uuid(), ${own.clientDomainId}::uuid, 'filled ' || n, sha256(n::text::bytea), 0
      from generate_series(1, 2000) as n`));
  await fill();
  await deleteKeys(db, lifetime * 2, 5000);
  await db.query(sql`vacuum (analyze) kyb_idempotency`);
  await using single = openDb({ ...db.connectionString, connections: 1 });
  const sealed = Buffer.from("answer");
  // The plan is made here, and kept until the connection ends or the table is analyzed.
  await keepAnswer(single, { id: randomUUID(), sealed });
  await fill();
  const { id } = await take(own, { key: "one of many" });
  const read = await single.transaction(async (tx) => {
    await keepAnswer(tx, { id, sealed });
    return readScanning(tx);
  });
  assert.equal(read, 0);
});
