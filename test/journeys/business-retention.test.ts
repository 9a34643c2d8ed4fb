// What is kept of the work on businesses, and for how long (decisions section 8, Retention).
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, parseLink } from "@svc/protocol";
import { listMemberRows } from "../../service/src/kyb/business/business-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openDataWorld, requestsPath, someRequest } from "../kyb-data-world.ts";
import { runHourlyJobs } from "../kyb-retention.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import { logIn } from "../login-flow.ts";
import { deleteUser } from "../operator-verbs.ts";
import { tablesWith } from "../tables-with.ts";

await using world = await openDataWorld();
const { ctx, business } = world;
const day = 86_400;

async function listProposals(): Promise<unknown[]> {
  const { proposals } = await world.businessOf("alice", business.address);
  return (proposals as { id: string }[]).map(({ id }) => id);
}

async function propose(): Promise<string> {
  const members = world.rosterOf(["alice", "bob"]);
  return world.govern("alice", { operation: "changeCharter", members }, { voters: [] });
}

await test("proposals are shown for 30 days after their end, and for as long as they are open", async () => {
  using _ = world.holdTime();
  const ended = await propose();
  const path = `/w/businesses/${business.address}/proposals/${ended}/retract`;
  assert.equal((await world.walletCall("alice", "POST", path, { body: {} })).status, 200);
  await world.advance(30 * day - 1);
  const open = await propose();
  await runHourlyJobs(ctx);
  assert.deepEqual(await listProposals(), [open, ended]);
  await world.advance(2);
  await runHourlyJobs(ctx);
  assert.deepEqual(await listProposals(), [open]);
});

await test("a vote that is over is known as such for 30 days, and then unknown", async () => {
  using _ = world.holdTime();
  const id = String((await world.ask()).body["requestId"]);
  const item = await world.findVote("alice", id);
  const reject = async () => {
    const { status, body } = await world.voteAs("alice", id, { item, vote: "reject" });
    return [status, body["status"] ?? body.error?.reason];
  };
  const cancelled = await world.call("POST", `${requestsPath}/${id}/cancel`, { body: {} });
  assert.equal(cancelled.status, 200, JSON.stringify(cancelled.body));
  await world.advance(30 * day - 1);
  await runHourlyJobs(ctx);
  assert.deepEqual(await reject(), [409, "ballot_over"]);
  await world.advance(2);
  await runHourlyJobs(ctx);
  assert.deepEqual(await reject(), [404, "ballot_not_found"]);
});

await test("a founding that came to nothing is forgotten with the names in it, 30 days after its time", async () => {
  using _ = world.holdTime();
  const asked = await world.askFounding({ members: ["rosa", "sven"] });
  const address = asked.body["address"] as Address;
  const abandon = `/w/businesses/${address}/abandon`;
  assert.equal((await world.walletCall("rosa", "POST", abandon, { body: {} })).status, 200);
  await world.advance(Number(asked.body["deadline"]) - ctx.clock.now() + 30 * day - 1);
  await runHourlyJobs(ctx);
  assert.equal((await listMemberRows(ctx.db, [address])).length, 2);
  await world.advance(2);
  await runHourlyJobs(ctx);
  assert.equal((await listMemberRows(ctx.db, [address])).length, 0);
});

await test("an idempotency key stands for its first call for 24 hours, and for another one after that", async () => {
  const offer = async (reference: string) =>
    world.call("POST", `${requestsPath}/offers`, {
      headers: { "idempotency-key": "offer-1" },
      body: { ...someRequest, reference },
    });
  const countKeys = async () => (await ctx.db.query(sql`select from kyb_idempotency`)).length;
  using _ = world.holdTime();
  const first = await offer("one");
  assert.equal(first.status, 201, JSON.stringify(first.body));
  await world.advance(day - 1);
  await runHourlyJobs(ctx);
  assert.deepEqual((await offer("one")).body, first.body);
  assert.equal((await offer("two")).body.error?.reason, "idempotency_key_conflict");
  await world.advance(1);
  assert.equal(await countKeys(), 1);
  await runHourlyJobs(ctx);
  assert.equal(await countKeys(), 0);
  const other = await offer("two");
  assert.equal(other.status, 201, JSON.stringify(other.body));
  assert.notEqual(other.body["offerId"], first.body["offerId"]);
  await ctx.db.query(sql`update kyb_idempotency set created_at = created_at - ${day}`);
  const third = await offer("three");
  assert.deepEqual(
    (await offer("three")).body,
    third.body,
    "also where the key was not deleted yet",
  );
});

await test("who took an offer is known for a day after it is over, and no longer than its user is", async () => {
  const claimantOf = async (id: unknown): Promise<string | null | undefined> => {
    const rows = await ctx.db.query<{ claimant: string | null }>(
      sql`select claimant from kyb_offer where id = ${String(id)}`,
    );
    return rows[0]?.claimant;
  };
  const take = async (name: string, key: string): Promise<unknown> => {
    const own = await world.found({ members: [name] });
    const headers = { "idempotency-key": key };
    const offered = { messageKind: "TEXT", message: key, purpose: "To be kept" };
    const made = await world.call("POST", `${signaturesPath}/offers`, { headers, body: offered });
    const { connection = "" } = parseLink(String(made.body["link"])) as { connection?: string };
    const body = { svcID: world.person(name).address, business: own.address };
    const path = `${new URL(connection).pathname}/claim`;
    assert.equal((await world.walletCall(name, "POST", path, { body })).status, 200);
    assert.equal(await claimantOf(made.body["offerId"]), world.person(name).address);
    return made.body["offerId"];
  };
  const [kept, forgotten] = [await take("viktor", "one"), await take("wanda", "two")];
  await logIn(world.baseUrl, world.client, world.person("wanda"));
  const [status, said] = await deleteUser(world, world.person("wanda").address);
  assert.equal(status, 0, said);
  assert.equal(await claimantOf(forgotten), null);
  assert.equal(await claimantOf(kept), world.person("viktor").address);
  await world.advance(day + 3600);
  await runHourlyJobs(ctx);
  assert.equal(await claimantOf(kept), null);
});

await test("of a deleted member its business keeps the seat, votes and proposals, which the chain and the trail have too", async () => {
  const other = await world.found({ members: ["yves", "zora"] });
  const member = world.person("yves").address;
  const proposed = await world.walletCall(
    "yves",
    "POST",
    `/w/businesses/${other.address}/proposals`,
    {
      body: { operation: "startRemoval", member: world.person("zora").address },
    },
  );
  assert.equal(proposed.status, 201, JSON.stringify(proposed.body));
  const asked = await world.call("POST", signaturesPath, {
    headers: { "idempotency-key": "of-yves" },
    body: { businessWalletAddress: other.address, ...someText },
  });
  assert.equal(asked.status, 201, JSON.stringify(asked.body));
  const voted = await world.voteAs("yves", String(asked.body["requestId"]));
  assert.equal(voted.status, 200, JSON.stringify(voted.body));
  const keeping = ["ballot", "ballot_vote", "business", "business_member", "business_proposal"];
  const lasting = ["audit_entry", "chain_transaction", "chain_transaction_hash"];
  const [status, said] = await deleteUser(world, member);
  assert.equal(status, 0, said);
  const left = await tablesWith(ctx.db, member.slice(2));
  assert.deepEqual(
    left,
    [...lasting, ...keeping, "embedded_transaction"].toSorted(),
    "no session, device, hint or claim",
  );
});
