// A release whose values do not open: it ends, the merchant is told, and the money is free.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { createDeferred } from "../../service/src/platform/deferred.ts";
import { releaseApproved } from "../../service/src/kyb/release/releases.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { createSeal } from "../../service/src/platform/cryptography/seal.ts";
import { untilBlocked } from "../lock-waits.ts";
import { openDataWorld, requestsPath } from "../kyb-data-world.ts";
import { checkMoney } from "../kyb-money-checks.ts";

await using world = await openDataWorld();
const { db } = world.ctx;
const terms = { fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] };

async function frozenChf(): Promise<unknown> {
  const { body } = await world.call("GET", "/api/v1/kyb/billing/account");
  return body["frozenChf"];
}

async function statusOf(id: string): Promise<unknown> {
  const { body } = await world.call("GET", `${requestsPath}/${id}`);
  return body["status"];
}

async function askAndApprove(): Promise<string> {
  const { status, body } = await world.ask(terms);
  assert.equal(status, 201, JSON.stringify(body));
  const id = String(body["requestId"]);
  assert.equal(await frozenChf(), 1);
  for (const name of ["alice", "bob"]) await world.voteAs(name, id, { optional: [] });
  return id;
}

async function checkFailed(id: string): Promise<void> {
  const { reason } = await world.waitFor(id, "failed");
  assert.equal(reason, "unavailable");
  const events = await world.eventsOf(id);
  assert.deepEqual(
    events.map(({ event }) => event),
    ["kyb.data_request.pending_approval", "kyb.data_request.failed"],
  );
  assert.equal(await frozenChf(), 0);
  await checkMoney(world.ctx);
}

/** Overwrites the sealed value that the requests here ask for. */
async function writeValue(change: (sealed: Buffer, id: string) => Buffer): Promise<void> {
  const [row] = await db.query<{ id: string; sealed: Buffer }>(
    sql`select id, value_sealed as sealed from company_field where name = 'BUSINESS_LEGAL_NAME'`,
  );
  assert.ok(row);
  const changed = change(row.sealed, row.id);
  await db.query(sql`update company_field set value_sealed = ${changed} where id = ${row.id}`);
}

await test("an approved request whose value was changed in the database fails, is announced once, and frees its money", async () => {
  let before = Buffer.alloc(0);
  await writeValue((sealed) => {
    before = Buffer.from(sealed);
    return Buffer.concat([sealed.subarray(0, -1), Buffer.from([~(sealed.at(-1) ?? 0)])]);
  });
  await checkFailed(await askAndApprove());
  await writeValue(() => before);
  const id = await askAndApprove();
  await world.waitFor(id, "released");
});

/** Seals the value with a master key that the service does not have. @returns the old sealed value */
async function loseKey(): Promise<Buffer> {
  let before = Buffer.alloc(0);
  await writeValue((sealed, id) => {
    before = Buffer.from(sealed);
    const place = { table: "company_field", id, column: "value_sealed" };
    return createSeal(["7c".repeat(32)]).seal(Buffer.from("lost"), place);
  });
  return before;
}

/** Tries to release everything, also what could not be opened a moment ago. */
const tryAll = async (): Promise<void> =>
  releaseApproved(world.ctx as unknown as KybContext, createDeferred(world.ctx.clock));

await test("an approved request whose value nobody can open ends as expired when its approvals do, and not before", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  await world.advance(25 * 3600 - 60);
  await world.until("it is tried once more", async () =>
    tryAll().then(
      () => null,
      (error: unknown) => String(error).includes(id),
    ),
  );
  assert.equal(await statusOf(id), "pending_approval");
  assert.equal(await frozenChf(), 1);
  await world.advance(120);
  const { reason } = await world.waitFor(id, "refused");
  assert.equal(reason, "expired");
  assert.equal(await frozenChf(), 0);
  await checkMoney(world.ctx);
  await writeValue(() => before);
});

/** Tries until the request is released, or the world's own job finds its approvals void. */
async function tryRelease(id: string): Promise<void> {
  await world.until("it is released or void", async () => {
    // This context lacks what asking the members again takes, so that part fails here.
    await tryAll().catch(() => undefined);
    const approved = sql`select from data_request
      where id = ${id} and approved_at is not null and status = 'pending_approval'`;
    return (await db.query(approved)).length === 0 ? true : null;
  });
}

await test("a release waits for a change of members that is under way, and then their approvals are void", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  const { address } = world.business;
  const { tried } = await db.transaction(async (tx) => {
    await tx.query(sql`update business set epoch = epoch + 1 where address = ${address}`);
    await writeValue(() => before);
    const trying = tryRelease(id);
    await untilBlocked(db, tx, [trying]);
    return { tried: trying };
  });
  // For a minute the process skips what it could not open.
  await world.advance(60);
  await tried;
  assert.equal(await statusOf(id), "pending_approval");
  await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
  assert.equal(await statusOf(id), "cancelled");
  // Back to the epoch that the chain has.
  await db.query(sql`update business set epoch = 0 where address = ${address}`);
});

await test("approvals of members who have left release nothing: those who are members then decide", async () => {
  const before = await loseKey();
  const id = await askAndApprove();
  const stay = ["alice", "carol"];
  const members = stay.map((name) => ({
    address: world.person(name).address,
    name,
    votingRights: true,
  }));
  const act = { operation: "changeCharter", members, rules: { data_requests: "UNANIMOUS" } };
  const { epoch: past } = await world.businessOf("alice");
  await world.govern("alice", act, { voters: stay });
  // Until the chain has the change, the approvals are still by members.
  await world.until("the roster has changed", async () => {
    const { epoch } = await world.businessOf("alice");
    return epoch === past ? null : true;
  });
  await writeValue(() => before);
  // For a minute the process skips what it could not open.
  await world.advance(60);
  await world.until("the others are asked", async () => {
    const asked = (await world.inboxOf("carol")).some((item) => item.id === id);
    return asked ? true : null;
  });
  const asked = sql`select from data_request where id = ${id} and approved_at is null`;
  assert.equal((await world.ctx.db.query(asked)).length, 1);
  assert.equal(await statusOf(id), "pending_approval");
  for (const [at, name] of stay.entries()) {
    const { body } = await world.voteAs(name, id, { optional: [] });
    assert.equal(body["status"], ["open", "approved"][at]);
  }
  await world.waitFor(id, "released");
  await checkMoney(world.ctx);
});
