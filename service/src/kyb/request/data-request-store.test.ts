// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import { insertRelease } from "../release/release-store.ts";
import { openTestKyb, type TestRequester } from "../test-kyb-store.ts";
import type { DataRequest, DataRequestStatus } from "./data-request.ts";
import * as store from "./data-request-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [requester, other] = [await kyb.addOrganization(), await kyb.addOrganization()];
let count = 0;

/** Requests to different businesses, unless one is given. */
async function ask(changed: Partial<DataRequest> & Partial<TestRequester> = {}) {
  count += 1;
  const request: DataRequest = {
    id: `01-${String(count).padStart(3, "0")}`,
    ...requester,
    environment: "live",
    business: changed.business ?? (await kyb.addBusiness()),
    purpose: "purpose",
    reference: null,
    fields: [],
    quotedRappen: 100,
    status: "pending_approval",
    reason: null,
    sequence: 1,
    createdAt: 0,
    expiresAt: 1000,
    fixedOptional: null,
    approvedAt: null,
    ...changed,
  };
  assert.equal(await store.insertRequest(db, request), true);
  return request;
}

const end = async (
  id: string,
  status: Exclude<DataRequestStatus, "pending_approval"> = "refused",
) => store.endRequest(db, { id, status, reason: null, now: 1 });

const release = async (request: DataRequest): Promise<boolean> =>
  insertRelease(db, request, {
    attestationSealed: Buffer.alloc(1),
    leaves: [],
    now: 1,
    expiresAt: 2,
    chargeId: `charge-${request.id}`,
    amountRappen: 100,
    lines: [],
  });

const columnsOf = async (id: string): Promise<unknown> => {
  const [row] = await db.query(
    sql`select refused_due_at, approved_at, fixed_optional from data_request where id = ${id}`,
  );
  return row;
};

await test("a client domain has one open request to a business, which is found only by both", async () => {
  const first = await ask();
  const { business, clientDomainId } = first;
  assert.equal(await store.insertRequest(db, { ...first, id: "again" }), false);
  const others = await ask({ business, ...other });
  const elsewhere = await ask();
  const find = async (of: DataRequest) => store.findOpenRequest(db, of);
  assert.deepEqual(
    [await find(first), await find(others), await find(elsewhere)],
    [first.id, others.id, elsewhere.id],
  );
  await end(first.id);
  assert.equal(await store.findOpenRequest(db, { business, clientDomainId }), null);
  assert.notEqual(await find(await ask({ business })), first.id);
});

await test("a request ends once, its events are numbered without a gap, and nothing changes it afterwards", async () => {
  const { id } = await ask();
  assert.equal((await end(id, "cancelled"))?.sequence, 2);
  assert.equal(await end(id), null);
  const ended = await columnsOf(id);
  await store.fixOptional(db, id, ["BUSINESS_DIRECTOR_COUNT"]);
  await store.putOffRefusal(db, id, 5);
  await store.markApproved(db, id, 5);
  assert.deepEqual(await columnsOf(id), ended);
  const request = await store.findRequest(db, id);
  assert.deepEqual([request?.status, request?.sequence], ["cancelled", 2]);
});

await test("a refusal is due from its second on, while the request is open", async () => {
  const [request, ended, unrefused] = [await ask(), await ask(), await ask()];
  for (const { id } of [request, ended]) await store.putOffRefusal(db, id, 10);
  await end(ended.id);
  const dueAt = async (now: number): Promise<string[]> => {
    const due = await db.transaction(async (tx) => store.lockRefused(tx, now, 10));
    return due.filter((id) => [request.id, ended.id, unrefused.id].includes(id));
  };
  assert.deepEqual([await dueAt(9), await dueAt(10)], [[], [request.id]]);
});

await test("an approved request is released by one process at a time", async () => {
  const [approved, ended] = [await ask(), await ask()];
  await ask();
  for (const { id } of [ended, approved]) await store.markApproved(db, id, 1);
  await end(ended.id);
  await db.transaction(async (tx) => {
    assert.equal((await store.lockApproved(tx, []))?.id, approved.id);
    const another = await db.transaction(async (second) => store.lockApproved(second, []));
    assert.equal(another, null);
  });
  await store.clearApproval(db, approved.id);
  assert.equal(await db.transaction(async (tx) => store.lockApproved(tx, [])), null);
});

await test("a release ends and charges an open request, as it was read, once", async () => {
  const [request, ended] = [await ask(), await ask()];
  await end(ended.id);
  assert.equal(await release(ended), false);
  assert.equal(await release({ ...ended, sequence: 2 }), false, "it has ended");
  assert.equal(await release({ ...request, sequence: 0 }), false, "an event came between");
  assert.equal(await release(request), true);
  assert.equal(await release(request), false);
  const charges = await db.query(
    sql`select request_id from kyb_charge where request_id = any(${[request.id, ended.id]})`,
  );
  assert.deepEqual(charges, [{ request_id: request.id }]);
});

await test("a client domain lists its own requests alone", async () => {
  const own = await kyb.addOrganization();
  const [open, ended] = [await ask(own), await ask(own)];
  await end(ended.id);
  const list = async (status: string | null): Promise<string[]> => {
    const page = { status, before: null, limit: 100 };
    return (await store.listRequests(db, own.clientDomainId, page)).map(({ id }) => id);
  };
  assert.deepEqual(await list(null), [ended.id, open.id]);
  assert.deepEqual(await list("refused"), [ended.id]);
});
