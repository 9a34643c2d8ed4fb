// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import { openTestKyb } from "../test-kyb-store.ts";
import type { SignatureRequest } from "./signature-request.ts";
import * as store from "./signature-request-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const requester = await kyb.addOrganization();
const business = await kyb.addBusiness();
const hash = `0x${"77".repeat(32)}` as const;
let count = 0;

async function ask(changed: Partial<SignatureRequest> = {}): Promise<string> {
  count += 1;
  const request: SignatureRequest = {
    id: `01-${String(count).padStart(3, "0")}`,
    ...requester,
    environment: "live",
    business,
    messageKind: "TEXT",
    digest: hash,
    purpose: "purpose",
    status: "pending_approval",
    reason: null,
    sequence: 1,
    createdAt: 0,
    expiresAt: 1000,
    recordings: 0,
    transactionHash: null,
    signedAt: null,
    ...changed,
  };
  await store.insertRequest(db, request, Buffer.alloc(1));
  return request.id;
}

const end = async (id: string, status: "refused" | "cancelled" | "failed" = "refused") =>
  store.endRequest(db, { id, status, reason: null, now: 1 });
const sign = async (id: string) =>
  store.markSigned(db, { id, transactionHash: hash, at: 1, now: 1 });
const failedOf = async (id: string): Promise<boolean> => {
  const failed = await store.listFailedRecordings(db, { after: "", limit: 100 });
  return failed.some((each) => each.id === id);
};
const noteFailed = async (id: string) => store.noteFailedRecordings(db, [{ id, block: 3 }]);

await test("a request ends or is signed once, its events are numbered without a gap", async () => {
  const [signed, ended] = [await ask(), await ask()];
  assert.equal((await sign(signed))?.sequence, 2);
  assert.equal(await sign(signed), null);
  assert.equal(await end(signed), null);
  assert.equal((await end(ended))?.sequence, 2);
  assert.equal(await end(ended, "failed"), null);
  assert.equal(await sign(ended), null);
});

await test("an approved request cannot be cancelled, but ends in every other way", async () => {
  const id = await ask();
  assert.equal(await store.beginRecording(db, id, 1), 1);
  assert.equal(await end(id, "cancelled"), null);
  assert.equal((await end(id, "failed"))?.status, "failed");
});

await test("a request that has ended is neither recorded, refused nor postponed", async () => {
  const id = await ask();
  await end(id);
  assert.equal(await store.beginRecording(db, id, 1), null);
  await noteFailed(id);
  await store.putOffRefusal(db, id, 5);
  const [row] = await db.query(
    sql`select approved_at, refused_due_at, recordings, has_failed_recording from signature_request where id = ${id}`,
  );
  assert.deepEqual(row, {
    approved_at: null,
    refused_due_at: null,
    recordings: 0,
    has_failed_recording: false,
  });
});

await test("a failed recording is resolved once, if it is the last one and the request is open", async () => {
  const id = await ask();
  const take = async (recordings: number) => store.takeFailedRecording(db, { id, recordings });
  await store.beginRecording(db, id, 1);
  assert.equal(await take(1), false, "it has not failed");
  await noteFailed(id);
  assert.equal(await failedOf(id), true);
  assert.equal(await take(0), false);
  assert.equal(await take(1), true);
  assert.equal(await take(1), false);
  await store.beginRecording(db, id, 1);
  await noteFailed(id);
  assert.equal(await take(1), false, "there is a second one");
  await end(id, "failed");
  assert.equal(await failedOf(id), false);
  // As a process of an earlier version could have left it.
  await db.query(sql`update signature_request set has_failed_recording = true where id = ${id}`);
  assert.equal(await take(2), false, "it has ended");
});

const dueAt = async (now: number) => db.transaction(async (tx) => store.lockRefused(tx, now, 10));

await test("a refusal is due from its second on, while the request is open", async () => {
  const [id, ended] = [await ask(), await ask()];
  for (const each of [id, ended]) await store.putOffRefusal(db, each, 10);
  await end(ended);
  assert.deepEqual([await dueAt(9), await dueAt(10)], [[], [id]]);
});

await test("a client domain lists its own requests alone", async () => {
  const own = await kyb.addOrganization();
  const [open, ended] = [await ask(own), await ask(own)];
  await end(ended);
  const list = async (status: string | null): Promise<string[]> => {
    const page = { status, before: null, limit: 100 };
    return (await store.listRequests(db, own.clientDomainId, page)).map(({ id }) => id);
  };
  assert.deepEqual(await list(null), [ended, open]);
  assert.deepEqual(await list("refused"), [ended]);
});
