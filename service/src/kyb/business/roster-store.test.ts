// What the statements guarantee, whatever was read before them: no request for a read is lost.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { openTestKyb } from "../test-kyb-store.ts";
import * as store from "./roster-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;

async function dueAt(address: Address): Promise<number | null | undefined> {
  const [row] = await db.query<{ due: number | null }>(
    sql`select look_due_at as due from business where address = ${address}`,
  );
  return row?.due;
}

/** A business that this process is reading. */
async function claim(): Promise<store.ClaimedLook> {
  const address = await kyb.addBusiness();
  await store.requestLook(db, address);
  const [look] = await store.claimLooks(db, { now: 10, until: 40, limit: 1 });
  assert.deepEqual(look, { address, claim: 40 });
  return look;
}

const save = async ({ address, claim: held }: store.ClaimedLook, block = 5) =>
  store.saveMirror(db, {
    address,
    charter: "0x00",
    epoch: 1,
    nonce: 1,
    successor: null,
    status: "active",
    block,
    claim: held,
  });

await test("a business that was read is no longer due, unless it was requested meanwhile", async () => {
  const [read, asked] = [await claim(), await claim()];
  await store.requestLook(db, asked.address);
  for (const look of [read, asked]) await save(look);
  assert.deepEqual([await dueAt(read.address), await dueAt(asked.address)], [null, 0]);
  await db.query(sql`update business set look_due_at = null`);
});

await test("a failed read is due again later, or at once if it was requested meanwhile", async () => {
  const [failed, asked] = [await claim(), await claim()];
  await store.requestLook(db, asked.address);
  for (const look of [failed, asked]) await store.putOffLook(db, look, 15);
  assert.deepEqual([await dueAt(failed.address), await dueAt(asked.address)], [15, 0]);
  await db.query(sql`update business set look_due_at = null`);
});

await test("a business stays due if an act of it was reverted, or an event read, in a later block", async () => {
  const look = await claim();
  await db.query(
    sql`insert into business_proposal (id, business, operation, arguments, proposer, nonce, status, created_at,
        refused_block)
      values ('proposal', ${look.address}, 'withdraw', '', '', 0, 'relaying', 0, 6)`,
  );
  await save(look, 5);
  assert.equal(await dueAt(look.address), look.claim);
  await save(look, 6);
  assert.equal(await dueAt(look.address), null);
  const next = await claim();
  await store.saveWatched(db, { addresses: [], block: 7 });
  await save(next, 6);
  assert.equal(await dueAt(next.address), next.claim);
  await save(next, 7);
  assert.equal(await dueAt(next.address), null);
});

await test("watched blocks stay watched, until a return to an earlier one", async () => {
  await store.saveWatched(db, { addresses: [], block: 20 });
  await store.saveWatched(db, { addresses: [], block: 12 });
  assert.equal(await store.findWatchedBlock(db), 20);
  await store.returnTo(db, 30);
  assert.equal(await store.findWatchedBlock(db), 30);
  await store.returnTo(db, 9);
  assert.equal(await store.findWatchedBlock(db), 9);
});
