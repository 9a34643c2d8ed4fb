// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { addressOf, openTestKyb } from "../test-kyb-store.ts";
import * as store from "./founding-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [alice, bob, mallory] = [addressOf("a"), addressOf("b"), addressOf("c")];
const end = 1000;

/** A founding whose invitation has the address as its id. */
async function begin(): Promise<Address> {
  const address = await kyb.addBusiness([alice, bob]);
  await db.query(
    sql`update business set status = 'inviting', invitation_deadline = ${end} where address = ${address}`,
  );
  return address;
}

async function statusOf(address: Address): Promise<string | undefined> {
  return (await store.findFounding(db, address))?.status;
}

await test("an invitation is found only by whom it invites, and locked while it is answered", async () => {
  const id = await begin();
  const lockAs = async (member: Address): Promise<boolean[]> =>
    db.transaction(async (tx) => {
      const found = await store.lockInvitation(tx, { id, member });
      const look = sql`select from business where address = ${id} for update skip locked`;
      return [found !== null, await kyb.isHeld(look)];
    });
  assert.deepEqual(await lockAs(bob), [true, true]);
  assert.deepEqual(await lockAs(mallory), [false, false]);
});

const hasSigned = async (id: Address, member: Address) =>
  db.transaction(async (tx) => (await store.lockInvitation(tx, { id, member }))?.hasSigned);

await test("a signature of an invitation is stored for its signer and founding only", async () => {
  const [business, other] = [await begin(), await begin()];
  const sign = async (member: Address): Promise<number> =>
    store.keepInvitationSignature(db, { business, member, signature: "0x01" });
  assert.equal(await sign(mallory), 2);
  assert.equal(await sign(alice), 1);
  assert.deepEqual(
    [await hasSigned(business, alice), await hasSigned(business, bob)],
    [true, false],
  );
  assert.equal(await hasSigned(other, alice), false);
  assert.equal(await sign(bob), 0);
});

await test("an invitation waits for an answer until its last second, and has lapsed after it", async () => {
  const [open, deploying] = [await begin(), await begin()];
  await store.setFoundingStatus(db, deploying, "deploying");
  const waitsAt = async (now: number): Promise<boolean> => {
    const page = { after: "", limit: 100, now };
    return (await store.listInvitationsTo(db, bob, page)).some(({ address }) => address === open);
  };
  assert.deepEqual([await waitsAt(end), await waitsAt(end + 1)], [true, false]);
  await store.lapseFoundings(db, end, 100);
  assert.equal(await statusOf(open), "inviting");
  await store.lapseFoundings(db, end + 1, 100);
  assert.deepEqual([await statusOf(open), await statusOf(deploying)], ["lapsed", "deploying"]);
});

await test("a deployed wallet activates only the business that waits for it", async () => {
  const [deploying, lapsed] = [await begin(), await begin()];
  await store.setFoundingStatus(db, deploying, "deploying");
  await store.setFoundingStatus(db, lapsed, "lapsed");
  const activated = await store.activate(db, [
    { address: deploying, at: 5 },
    { address: lapsed, at: 5 },
  ]);
  assert.deepEqual(
    activated.map(({ address }) => address),
    [deploying],
  );
  assert.equal(await statusOf(lapsed), "lapsed");
});

const counting = async (creator: Address) =>
  kyb.isFree(async (second) => store.countOpenFoundings(second, creator));

await test("foundings of one creator take turns to be counted, and do not wait for others'", async () => {
  await db.transaction(async (tx) => {
    await store.countOpenFoundings(tx, alice);
    assert.deepEqual([await counting(alice), await counting(bob)], [false, true]);
  });
});
