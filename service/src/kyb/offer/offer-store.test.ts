import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import { addressOf, openTestKyb } from "../test-kyb-store.ts";
import * as store from "./offer-store.ts";

const kyb = await openTestKyb();
after(async () => kyb[Symbol.asyncDispose]());
const { db } = kyb;

async function addOffer(): Promise<string> {
  const offer = {
    id: randomUUID(),
    ...(await kyb.addOrganization()),
    environment: "live",
    kind: "data_request",
    requester: "",
    createdAt: 0,
    expiresAt: 1800,
    cancelledAt: null,
    claimedAt: null,
    business: null,
    claimant: null,
    requestId: null,
    digest: null,
  } as const;
  await store.insertOffer(db, offer, Buffer.alloc(1));
  return offer.id;
}

test("the second process that signs an offer's object gets the first one, and other offers are not affected", async () => {
  const [id, other] = [await addOffer(), await addOffer()];
  const kept = await Promise.all(["one", "other"].map((each) => store.keepObject(db, id, each)));
  assert.equal(kept[0], kept[1]);
  assert.equal(await store.findObject(db, id), kept[0]);
  assert.equal(await store.findObject(db, other), null);
});

test("the purge deletes the request, its signed object and the claimant, once", async () => {
  const id = await addOffer();
  await store.keepObject(db, id, "object");
  const business = await kyb.addBusiness();
  const taken = { id, business, claimant: addressOf("c"), now: 1 };
  await store.markClaimed(db, { ...taken, requestId: randomUUID() });
  const left = async () =>
    (
      await db.query(
        sql`select request_sealed, request_object, claimant from kyb_offer where id = ${id}`,
      )
    )[0];
  assert.equal(await store.purgeOffered(db, 1800, 10), 0);
  assert.equal((await store.findOffer(db, id))?.offer.claimant, taken.claimant);
  assert.ok((await store.purgeOffered(db, 1801, 10)) > 0);
  assert.equal(await store.purgeOffered(db, 1801, 10), 0, "the next batch would never be the last");
  assert.deepEqual(
    { ...(await left()) },
    { request_sealed: null, request_object: null, claimant: null },
  );
});
