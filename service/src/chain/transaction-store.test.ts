// Statements that processes run on one transaction at the same time: the second one changes nothing.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, test } from "node:test";
import { type Address, type Hex32, hexOfBytes } from "@svc/protocol";
import { openDb, sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import * as store from "./transaction-store.ts";

const database = await openTestDatabase();
const db = openDb({ ...database.connection, connections: 2 });
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});

const now = 1_800_000_000;
const fees = { maxFee: 10n, priorityFee: 1n };

async function newSigner(): Promise<Address> {
  const address = hexOfBytes(randomBytes(20));
  await store.addSigner(db, address);
  return address;
}

async function queue(): Promise<string> {
  const subjectId = randomBytes(8).toString("hex");
  const to = hexOfBytes(randomBytes(20));
  const id = await store.insertTransaction(
    db,
    { kind: "test.store", subjectId, to, data: "0x01" },
    now,
  );
  assert.ok(id !== null);
  return id;
}

/** Signs one form. @returns its bytes */
async function sign(
  address: Address,
  id: string,
  { nonce, at = now, hash = hexOfBytes(randomBytes(32)) }: SignedAs,
): Promise<`0x${string}`> {
  const raw = hexOfBytes(randomBytes(16));
  const form = { id, nonce, hash, raw, gasLimit: 21_000n, fees };
  const state = {
    address,
    nextNonce: nonce + 1,
    spent: { day: 0, wei: 0n, unpaidWei: 0n },
    now: at,
  };
  assert.equal(await store.saveSigned(db, [form], state), 1);
  return raw;
}

interface SignedAs {
  readonly nonce: number;
  readonly at?: number;
  readonly hash?: Hex32;
}

async function send(address: Address, nonce: number): Promise<string> {
  const id = await queue();
  await sign(address, id, { nonce });
  return id;
}

const sentOf = async (id: string) =>
  (await store.listSent(db, { limit: 1000, only: null })).find((each) => each.id === id);

const markOf = (id: string): store.FinalMark => ({
  id,
  status: "succeeded",
  hash: hexOfBytes(randomBytes(32)),
  blockHash: hexOfBytes(randomBytes(32)),
  blockNumber: 7,
});

test("only an unsigned transaction of that kind and subject is withdrawn", async () => {
  const signer = await newSigner();
  const to = hexOfBytes(randomBytes(20));
  const subjects = ["unsigned", "sent", "queued again"];
  for (const kind of ["test.role", "test.end"])
    for (const subjectId of subjects)
      await store.insertTransaction(db, { kind, subjectId, to, data: "0x01" }, now);
  const due = await store.listDue(db, { now, limit: 1000, only: "test.role", sharing: [] });
  const [, sent, again] = due.map(({ id }) => id);
  assert.ok(sent !== undefined && again !== undefined);
  await sign(signer, sent, { nonce: 0 });
  await sign(signer, again, { nonce: 1 });
  await store.requeue(db, { id: again, nonce: 1 }, now);
  const statuses = async (kind: string): Promise<(string | null)[]> =>
    Promise.all(subjects.map(async (each) => store.findStatus(db, kind, each)));
  for (const subjectId of ["sent", "queued again"])
    await store.withdrawUnsigned(db, { kind: "test.role", subjectId });
  assert.deepEqual(await statuses("test.role"), ["queued", "sent", "queued"]);
  await store.withdrawUnsigned(db, { kind: "test.role", subjectId: "unsigned" });
  assert.deepEqual(await statuses("test.role"), [null, "sent", "queued"]);
  assert.deepEqual(await statuses("test.end"), ["queued", "queued", "queued"]);
});

test("a transaction that another process has signed is not due any more", async () => {
  const signer = await newSigner();
  const ids = [await send(signer, 0), await queue()];
  const { stillDue } = await store.readNonces(db, signer, { ids, chainCount: 0, nextNonce: 1 });
  assert.deepEqual(stillDue, [ids[1]]);
});

test("a nonce is taken from a transaction that still has it, and from no other", async () => {
  const signer = await newSigner();
  const id = await send(signer, 3);
  assert.equal(await store.requeue(db, { id, nonce: 3 }, now), true);
  await sign(signer, id, { nonce: 4 });
  assert.equal(await store.requeue(db, { id, nonce: 3 }, now), false, "another look at nonce 3");
  assert.equal((await sentOf(id))?.nonce, 4);
  await store.markFinal(db, [markOf(id)], now);
  assert.equal(await store.requeue(db, { id, nonce: 4 }, now), false, "it is final");
});

test("a transaction becomes final once, whoever marks it", async () => {
  const id = await send(await newSigner(), 0);
  assert.deepEqual(await store.markFinal(db, [markOf(id)], now), new Set([id]));
  assert.deepEqual(await store.markFinal(db, [markOf(id)], now), new Set());
  await assert.rejects(sign(await newSigner(), id, { nonce: 1 }), /0 !== 1/);
});

test("a fee that was raised meanwhile is not raised again by a process that looked before", async () => {
  const signer = await newSigner();
  const id = await send(signer, 0);
  await db.transaction(async (tx) => {
    assert.ok((await store.findForBump(tx, { id, signedAt: now })) !== null);
    // The row is locked, so that nobody marks it final while it is signed again.
    const other = sql`select from chain_transaction where id = ${id} for update skip locked`;
    assert.deepEqual(await db.query(other), []);
  });
  await sign(signer, id, { nonce: 0, at: now + 60 });
  assert.equal(await store.findForBump(db, { id, signedAt: now }), null);
  await store.markFinal(db, [markOf(id)], now + 60);
  assert.equal(await store.findForBump(db, { id, signedAt: now + 60 }), null, "it is final");
});

test("the suspicion of a foreign nonce starts again after the transaction was in a block", async () => {
  const signer = await newSigner();
  const id = await send(signer, 0);
  await store.markSuspected(db, id, now);
  assert.equal((await sentOf(id))?.foreignSince, now);
  await store.markMined(db, id, markOf(id));
  assert.equal((await sentOf(id))?.foreignSince, null);
  await store.markSuspected(db, id, now);
  await sign(signer, id, { nonce: 0, at: now + 60 });
  assert.equal((await sentOf(id))?.foreignSince, null, "or once it was outbid");
});

test("the holes of an account are its own: another's transaction fills none", async () => {
  const [heir, before] = [await newSigner(), await newSigner()];
  await send(before, 1);
  await send(heir, 0);
  await send(heir, 2);
  const given = { ids: [], chainCount: 0, nextNonce: 3 };
  const { holes, inFlight } = await store.readNonces(db, heir, given);
  assert.deepEqual([holes, inFlight], [[1], 2]);
  assert.equal(await store.hasNonce(db, heir, 1), false);
  assert.equal(await store.hasNonce(db, before, 1), true);
});

test("of a transaction that got another nonce, the bytes for that nonce are sent", async () => {
  const signer = await newSigner();
  const id = await queue();
  // The forms have the same second, so without a look at the nonce this one, with the lower hash, would be sent.
  await sign(signer, id, { nonce: 0, hash: `0x00${randomBytes(31).toString("hex")}` });
  await store.requeue(db, { id, nonce: 0 }, now);
  const raw = await sign(signer, id, {
    nonce: 1,
    hash: `0xff${randomBytes(31).toString("hex")}`,
  });
  assert.equal((await sentOf(id))?.hashes.length, 2, "each form may still be mined");
  assert.deepEqual(await store.takeBytes(db, [id], now + 20), [raw]);
  assert.equal((await sentOf(id))?.sentAt, now + 20);
  assert.deepEqual(await store.listUnminedBytes(db, signer), [raw]);
  await store.markMined(db, id, markOf(id));
  assert.deepEqual(await store.listUnminedBytes(db, signer), []);
});

test("the bytes to send after a deep reorganisation are looked up among the account's own", async () => {
  const [one, other] = [await newSigner(), await newSigner()];
  const id = await queue();
  const hash = hexOfBytes(randomBytes(32));
  const raw = await sign(other, id, { nonce: 0, hash });
  await store.markFinal(db, [{ ...markOf(id), hash }], now);
  await store.markMined(db, id, null);
  assert.deepEqual(await store.listFinalBytes(db, other, { from: 0, below: 1 }), [raw]);
  assert.deepEqual(await store.listFinalBytes(db, other, { from: 1, below: 2 }), []);
  assert.deepEqual(await store.listFinalBytes(db, other, { from: 0, below: 0 }), []);
  assert.deepEqual(await store.listFinalBytes(db, one, { from: 0, below: 1 }), []);
});

test("sent transactions are observed once per interval, also after a clock that was ahead", async () => {
  const signer = await newSigner();
  const look = async (nowMs: number): Promise<boolean> =>
    store.claimObservation(db, signer, { nowMs, intervalMs: 3_000 });
  assert.equal(await look(100_000_000), true);
  assert.equal(await look(100_002_999), false);
  assert.equal(await look(100_003_000), true);
  assert.equal(await look(200_000_000), true);
  assert.equal(await look(199_990_000), false, "a little behind");
  assert.equal(await look(100_010_000), true, "the one before was made by a wrong clock");
});

test("a signer that another process holds gives out no nonces meanwhile", async () => {
  const signer = await newSigner();
  await db.transaction(async (tx) => {
    assert.deepEqual(await store.lockSigner(tx, signer), {
      nextNonce: 0,
      spent: { day: 0, wei: 0n, unpaidWei: 0n },
    });
    assert.equal(await db.transaction(async (other) => store.lockSigner(other, signer)), null);
  });
});

test("a postponed transaction is due then and not before; the oldest comes first, and only one kind if asked for", async () => {
  const [id, later] = [await queue(), await queue()];
  await store.putOff(db, [id], now + 60);
  const dueAt = async (at: number, only: string | null = null): Promise<string[]> => {
    const due = await store.listDue(db, { now: at, limit: 100, only, sharing: [] });
    return due.map((each) => each.id).filter((each) => each === id || each === later);
  };
  assert.deepEqual(await dueAt(now + 59), [later]);
  assert.deepEqual(await dueAt(now + 60), [id, later]);
  assert.deepEqual(await dueAt(now + 60, "test.store"), [id, later]);
  assert.deepEqual(await dueAt(now + 60, "contract.deploy"), []);
});

test("the oldest comes first also where its number has fewer digits", async () => {
  await db.query(sql`alter table chain_transaction alter column id restart with 9999`);
  const ids = [await queue(), await queue()];
  assert.deepEqual(ids, ["9999", "10000"]);
  const due = await store.listDue(db, { now, limit: 1000, only: null, sharing: [] });
  assert.deepEqual(due.map(({ id }) => id).slice(-2), ids);
});

test("what is queued again is the same also when its bytes are forgotten, and never with another target", async () => {
  const address = await newSigner();
  const given = { kind: "test.again", subjectId: "a", to: address, data: "0x01" } as const;
  const id = await store.insertTransaction(db, given, now);
  assert.ok(id !== null);
  const hash = hexOfBytes(randomBytes(32));
  await sign(address, id, { nonce: 0, hash });
  const mark = { id, status: "succeeded", hash, blockHash: hash, blockNumber: 1 } as const;
  await store.markFinal(db, [mark], now);
  assert.equal(await store.forgetBytes(db, now, 1000), 0, "not before its time");
  assert.ok((await store.forgetBytes(db, now + 1, 1000)) > 0);
  assert.equal(await store.forgetBytes(db, now + 1, 1000), 0, "none is left");
  assert.equal(await store.insertTransaction(db, given, now), id);
  const to = await newSigner();
  assert.equal(await store.insertTransaction(db, { ...given, to }, now), null);
});

test("concurrent refusals of a transaction count once, and a sent transaction is not postponed", async () => {
  const [id, other] = [await queue(), await queue()];
  const due = async () => {
    const all = await store.listDue(db, { now: now + 10, limit: 1000, only: null, sharing: [] });
    return all.find((each) => each.id === id);
  };
  await store.putOffRefused(db, { id, refusals: 0 }, now + 5);
  await store.putOffRefused(db, { id, refusals: 0 }, now + 50);
  assert.equal((await due())?.refusals, 1);
  const signer = await newSigner();
  await sign(signer, other, { nonce: 0 });
  await store.putOff(db, [other], now + 999);
  await store.putOffRefused(db, { id: other, refusals: 0 }, now + 999);
  const [row] = await db.query(
    sql`select due_at, refusals from chain_transaction where id = ${other}`,
  );
  assert.deepEqual(row, { due_at: now, refusals: 0 });
});

test("a final transaction is not resent, and no observation changes it", async () => {
  const id = await send(await newSigner(), 0);
  await store.markFinal(db, [markOf(id)], now);
  const known = sql`select * from chain_transaction where id = ${id}`;
  const before = await db.query(known);
  assert.deepEqual(await store.takeBytes(db, [id], now + 9), []);
  await store.markSuspected(db, id, now + 9);
  await store.markMined(db, id, null);
  assert.deepEqual(await db.query(known), before);
});

test("a subject has one transaction of a kind: the same again is that one, and other data is none", async () => {
  const given = {
    kind: "test.store",
    subjectId: randomBytes(8).toString("hex"),
    to: hexOfBytes(randomBytes(20)),
    data: "0x01",
  } as const;
  const id = await store.insertTransaction(db, given, now);
  assert.equal(await store.insertTransaction(db, given, now), id);
  assert.equal(await store.insertTransaction(db, { ...given, data: "0x02" }, now), null);
});
