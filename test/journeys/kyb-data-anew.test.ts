// A data request that changes come between: other members, the end of its time, and what its merchant may do.
import assert from "node:assert/strict";
import { test } from "node:test";
import { setEntitlement } from "../../service/src/accounts/index.ts";
import { listInbox } from "../../service/src/kyb/ballot/ballot-store.ts";
import { type Queryable, sql } from "../../service/src/platform/database/db.ts";
import { openDataWorld, requestsPath, someRecord } from "../kyb-data-world.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { untilBlocked, untilOverOrBlocked } from "../lock-waits.ts";

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx, organizationId } = world;
const { address } = world.business;
const optional = ["BUSINESS_DIRECTOR_COUNT"];

const setStatus = async (db: Queryable, status: string): Promise<unknown> =>
  db.query(sql`update business set status = ${status} where address = ${address}`);

await test("a vote lies in the inbox to its last second, and no longer, though nobody has ended it yet", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  const expiresAt = Number(body["expiresAt"]);
  const inboxAt = async (now: number): Promise<string[]> => {
    const page = { hasAgreed: true, after: "", limit: 10, now };
    const rows = await listInbox(ctx.db, world.person("alice").address, page);
    return rows.map(({ ballot }) => ballot.id);
  };
  assert.deepEqual([await inboxAt(expiresAt), await inboxAt(expiresAt + 1)], [[id], []]);
  await world.call("POST", `/api/v1/kyb/data-requests/${id}/cancel`, { body: {} });
});

const account = async (): Promise<unknown> =>
  (await world.call("GET", "/api/v1/kyb/billing/account")).body;

await test("a business can be asked again once the time of the open request is over, before a job has ended that", async (t) => {
  const asked = await world.ask();
  assert.equal(asked.status, 201);
  const held = await account();
  const { requestId, expiresAt } = asked.body as { requestId: string; expiresAt: number };
  const clock = t.mock.method(ctx.clock, "now", () => expiresAt);
  const early = await world.ask();
  assert.equal(early.body.error?.reason, "request_already_open", "in its last second");
  clock.mock.mockImplementation(() => expiresAt + 1);
  const again = await world.ask();
  assert.equal(again.status, 201);
  clock.mock.restore();
  const record = (await world.call("GET", `${requestsPath}/${requestId}`)).body;
  assert.deepEqual([record["status"], record["reason"]], ["refused", "expired"]);
  assert.deepEqual(await account(), held, "money is held for the new one alone");
  const [, last] = await world.eventsOf(requestId);
  assert.equal(last?.event, "kyb.data_request.refused");
  await world.call("POST", `${requestsPath}/${String(again.body["requestId"])}/cancel`, {
    body: {},
  });
});

await test("an organization that may ask for data no more gets none, and pays nothing, though members approve", async () => {
  const grant = async (isGranted: boolean): Promise<void> => {
    const entitlement = "kyb:data-request";
    await setEntitlement(ctx, { organizationId, entitlement, isGranted }, "test");
  };
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  await world.voteAs("alice", id, { optional });
  await grant(false);
  await world.voteAs("bob", id);
  const end = await world.until("the request has ended", async () => {
    const [row] = await ctx.db.query<{ status: string; reason: string | null }>(
      sql`select status, reason from data_request where id = ${id} and status <> 'pending_approval'`,
    );
    return row ?? null;
  });
  assert.deepEqual({ ...end }, { status: "failed", reason: "unavailable" });
  const { frozenChf, spentChf } = (await world.call("GET", "/api/v1/kyb/billing/account")).body;
  assert.deepEqual([frozenChf, spentChf], [0, 0]);
  await checkMoney(ctx);
  await grant(true);
  await world.until("the key may ask again", async () => {
    const { status } = await world.call("GET", `/api/v1/kyb/data-requests/${id}`);
    return status === 200 ? true : null;
  });
});

await test("a release does not wait for whoever is about to cancel the request, who learns that it is over", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  await world.voteAs("alice", id, { optional });
  const { answer } = await ctx.db.transaction(async (ballots) => {
    const waiting = await ctx.db.transaction(async (requests) => {
      // This lock lets votes write to the request, but makes a release leave it for later.
      await requests.query(sql`select from data_request where id = ${id} for key share`);
      await world.voteAs("bob", id);
      await ballots.query(sql`select from ballot where id = ${id} for update`);
      const cancelled = world.call("POST", `/api/v1/kyb/data-requests/${id}/cancel`, { body: {} });
      await untilBlocked(ctx.db, ballots, [cancelled]);
      return { answer: cancelled };
    });
    // Wakes the job of releases: its next turn may come after the cancellation's lock wait has timed out.
    await ctx.db.query(sql`select pg_notify('kyb_release', '')`);
    await world.waitFor(id, "released");
    return waiting;
  });
  assert.equal((await answer).body.error?.reason, "request_not_open");
  await checkMoney(ctx);
});

await test("a release that another process is working on holds up no other", async () => {
  const next = await world.found({ members: ["nina"], name: "Nächste AG" });
  await world.issueRecord(next.address, someRecord);
  const first = String((await world.ask()).body["requestId"]);
  const second = String(
    (await world.ask({ businessWalletAddress: next.address })).body["requestId"],
  );
  await world.voteAs("alice", first, { optional });
  await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from data_request where id = ${first} for key share`);
    await world.voteAs("bob", first);
    await world.voteAs("nina", second, { optional });
    const released = world.waitFor(second, "released");
    assert.equal(await untilOverOrBlocked(ctx.db, tx, released), "over");
  });
  await world.waitFor(first, "released");
});

await test("a stranger's vote is refused at once while a member votes, or its wait would tell of the member", async (t) => {
  const id = String((await world.ask()).body["requestId"]);
  t.after(async () => world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} }));
  const item = await world.findVote("alice", id);
  await ctx.db.transaction(async (tx) => {
    for (const held of [
      sql`select from ballot where id = ${id} for update`,
      sql`select from business where address = ${address} for update`,
    ]) {
      await tx.query(held);
      const refused = world.voteAs("mallory", id, { item });
      assert.equal(await untilOverOrBlocked(ctx.db, tx, refused), "over");
      assert.equal((await refused).body.error?.reason, "ballot_not_found");
    }
  });
});

await test("a request that meets the suspension of its business waits for it, and is refused for it", async () => {
  const { asked } = await ctx.db.transaction(async (tx) => {
    await setStatus(tx, "suspended");
    const asking = world.ask();
    await untilBlocked(ctx.db, tx, [asking]);
    return { asked: asking };
  });
  assert.equal((await asked).body.error?.reason, "business_not_verified");
  await setStatus(ctx.db, "active");
});

await test("after a change of members the first approval chooses anew which optional fields go", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  await world.voteAs("bob", id, { optional });
  assert.deepEqual((await world.findVote("alice", id))["fixedOptional"], optional);
  const members = world.rosterOf(["bob", "carol", "dave"]);
  await world.govern("bob", { operation: "changeCharter", members }, { voters: ["bob", "carol"] });
  await world.reachEpoch(address, 1);

  const item = await world.findVote("bob", id);
  assert.deepEqual([item["optional"], item["fixedOptional"]], [optional, null]);
  const voted = await world.voteAs("bob", id, { item, optional: [] });
  assert.deepEqual(voted.body, { id, status: "open" });
  assert.deepEqual((await world.findVote("dave", id))["fixedOptional"], []);
  await world.voteAs("dave", id);
  await world.waitFor(id, "released");
  const [, released] = await world.eventsOf(id);
  assert.deepEqual(released?.data["fields"], ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"]);
});

await test("a request that was cancelled lies in no inbox, and takes no vote from whoever had not voted yet", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  await world.voteAs("bob", id, { optional });
  const item = await world.findVote("carol", id);
  await world.call("POST", `/api/v1/kyb/data-requests/${id}/cancel`, { body: {} });
  const late = await world.voteAs("carol", id, { item });
  assert.deepEqual([late.status, late.body.error?.reason], [409, "ballot_over"]);
  const page = { hasAgreed: true, after: "", limit: 10, now: ctx.clock.now() };
  for (const name of ["bob", "carol"])
    assert.deepEqual(await listInbox(ctx.db, world.person(name).address, page), []);
});

await test("a request that has ended takes no approval, even where its ballot has not ended yet", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  const set = async (status: string, endedAt: number | null): Promise<unknown> =>
    ctx.db.query(
      sql`update data_request set status = ${status}, ended_at = ${endedAt} where id = ${id}`,
    );
  const item = await world.findVote("bob", id);
  await set("cancelled", ctx.clock.now());
  const late = await world.voteAs("bob", id, { item, optional });
  assert.deepEqual([late.status, late.body.error?.reason], [409, "ballot_over"]);
  await set("pending_approval", null);
  await world.call("POST", `/api/v1/kyb/data-requests/${id}/cancel`, { body: {} });
});

await test("whoever reads a request after its time is told its end, once, before a job has ended it", async (t) => {
  const other = await world.found({ members: ["gina", "hugo", "ines"] });
  await world.issueRecord(other.address, someRecord);
  const { body } = await world.ask({ businessWalletAddress: other.address });
  const { requestId, expiresAt } = body as { requestId: string; expiresAt: number };
  const read = async (): Promise<unknown> =>
    (await world.call("GET", `${requestsPath}/${requestId}`)).body["status"];
  const clock = t.mock.method(ctx.clock, "now", () => expiresAt);
  assert.equal(await read(), "pending_approval", "in its last second");
  clock.mock.mockImplementation(() => expiresAt + 1);
  const told = await Promise.all([read(), read(), read()]);
  clock.mock.restore();
  assert.deepEqual(told, ["refused", "refused", "refused"]);
  const events = await world.eventsOf(requestId);
  assert.deepEqual(
    events.map(({ event }) => event.split(".").at(-1)),
    ["pending_approval", "refused"],
  );
});

await test("nobody cancels a request after its time: it has expired, before a job has ended it", async (t) => {
  const other = await world.found({ members: ["jana", "karl", "lara"] });
  await world.issueRecord(other.address, someRecord);
  const { body } = await world.ask({ businessWalletAddress: other.address });
  const { requestId, expiresAt } = body as { requestId: string; expiresAt: number };
  const clock = t.mock.method(ctx.clock, "now", () => expiresAt + 1);
  const cancelled = await world.call("POST", `${requestsPath}/${requestId}/cancel`);
  clock.mock.restore();
  assert.deepEqual([cancelled.status, cancelled.body.error?.reason], [409, "request_not_open"]);
  const record = (await world.call("GET", `${requestsPath}/${requestId}`)).body;
  assert.deepEqual([record["status"], record["reason"]], ["refused", "expired"]);
});

await test("a vote counts in the last second of a request and not behind it, before a job has ended that", async (t) => {
  const other = await world.found({ members: ["dora", "emil", "finn"] });
  await world.issueRecord(other.address, someRecord);
  const asked = await world.ask({ businessWalletAddress: other.address });
  const { requestId, expiresAt } = asked.body as { requestId: string; expiresAt: number };
  const voteAt = async (now: number, name: string): Promise<unknown[]> => {
    const item = await world.findVote(name, requestId);
    const clock = t.mock.method(ctx.clock, "now", () => now);
    const { status, body } = await world.voteAs(name, requestId, { item });
    clock.mock.restore();
    return [status, body.error?.reason ?? body["status"]];
  };
  assert.deepEqual(await voteAt(expiresAt, "dora"), [200, "open"]);
  assert.deepEqual(await voteAt(expiresAt + 1, "emil"), [409, "ballot_over"]);
});
