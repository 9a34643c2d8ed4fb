// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { addressOf, openTestKyb } from "../test-kyb-store.ts";
import * as store from "./removal-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [member, other] = [addressOf("a"), addressOf("b")];
const end = 1000;

async function begin(changed: { endsAt?: number; keepNonce?: number } = {}): Promise<Address> {
  const business = await kyb.addBusiness();
  await store.saveRemoval(db, { business, member, endsAt: end, keepNonce: 7, ...changed });
  return business;
}

const answer = async (business: Address, now: number, changed = {}) =>
  store.noteAnswered(db, { business, member, by: "vote", now, ...changed });

async function answeredAt(business: Address): Promise<number | null | undefined> {
  const [removal] = await store.listRemovals(db, [business]);
  return removal?.answeredAt;
}

async function takeAt(before: number, now = before): Promise<store.DueRemoval[]> {
  return db.transaction(async (tx) => store.takeDueRemovals(tx, { now, before, limit: 100 }));
}

const takenAt = async (now: number) => (await takeAt(now)).map(({ business }) => business);

const forget = async (): Promise<unknown> => db.query(sql`delete from business_removal`);

await test("only the member itself answers its removal, in its own business, and the first answer stays", async () => {
  const [business, elsewhere] = [await begin(), await begin()];
  await answer(business, 5, { member: other });
  assert.equal(await answeredAt(business), null);
  await answer(business, 6);
  await answer(business, 7);
  assert.deepEqual([await answeredAt(business), await answeredAt(elsewhere)], [6, null]);
});

await test("the same removal read again keeps its answer, and another begins without one", async () => {
  const business = await begin();
  await answer(business, 6);
  await store.saveRemoval(db, { business, member, endsAt: end, keepNonce: 7 });
  assert.equal(await answeredAt(business), 6);
  await store.saveRemoval(db, { business, member: other, endsAt: end + 1, keepNonce: 8 });
  const expected = { business, member: other, endsAt: end + 1, keepNonce: 8, answeredAt: null };
  assert.deepEqual(await store.listRemovals(db, [business]), [expected]);
});

await test("a removal can be renewed once its own member answered long ago, and is then not answered by a vote", async () => {
  const business = await begin();
  const renew = async (answeredBy: number, of = member): Promise<boolean> =>
    store.renewRemoval(db, { business, member: of, answeredBy, endsAt: 2 * end });
  assert.equal(await renew(end), false, "it was not answered");
  await answer(business, 6);
  assert.deepEqual([await renew(5), await renew(6, other), await renew(6)], [false, false, true]);
  await answer(business, 8);
  assert.equal(await answeredAt(business), null);
  await answer(business, 9, { by: "signature" });
  assert.equal(await answeredAt(business), 9);
  await store.saveRemoval(db, { business, member, endsAt: end, keepNonce: 8 });
  await answer(business, 10);
  assert.equal(await answeredAt(business), 10, "a vote answers the next removal");
});

await test("a removal is finished from its last second on, where it was not answered and its business was not left", async () => {
  await forget();
  const [due, answered, moved, suspended] = [
    await begin(),
    await begin(),
    await begin(),
    await begin({ endsAt: end + 1 }),
  ];
  await answer(answered, 5);
  await db.query(sql`update business set status = 'moved' where address = ${moved}`);
  await db.query(sql`update business set status = 'suspended' where address = ${suspended}`);
  assert.deepEqual(await takenAt(end - 1), []);
  assert.deepEqual(await takenAt(end), [due]);
  assert.deepEqual(await takenAt(end + 1), [suspended]);
});

await test("two concurrent processes finish a removal once", async () => {
  await forget();
  const business = await begin();
  await db.transaction(async (tx) => {
    const limit = { now: end, before: end, limit: 1 };
    const [first] = await store.takeDueRemovals(tx, limit);
    assert.equal(first?.business, business);
    assert.deepEqual(await takeAt(end), []);
  });
});

await test("a removal is postponed once, and only by its latest transaction", async () => {
  await forget();
  const business = await begin();
  const [sent] = await takeAt(end);
  assert.deepEqual(sent, { business, keepNonce: 7, epoch: 0, failures: 0 });
  for (const stranger of [
    { ...sent, keepNonce: 6 },
    { ...sent, epoch: 1 },
    { ...sent, failures: 1 },
  ])
    await store.putOffRemoval(db, stranger, 0);
  assert.deepEqual(await takeAt(end), []);
  await store.putOffRemoval(db, sent, end + 5);
  await store.putOffRemoval(db, { ...sent, failures: 1 }, 0);
  assert.deepEqual(await takeAt(end + 4), []);
  assert.deepEqual(await takeAt(end + 5), [{ ...sent, failures: 1 }]);
  assert.deepEqual(await takeAt(end + 5), []);
  await store.saveRemoval(db, { business, member, endsAt: end, keepNonce: 8 });
  assert.deepEqual(await takeAt(end), [{ ...sent, keepNonce: 8 }], "the next one is another");
});
