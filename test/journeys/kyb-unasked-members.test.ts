// Anybody may make anybody a member of a business of its own: that keeps nobody from what it agreed to.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findBusiness } from "../../service/src/kyb/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openDataWorld } from "../kyb-data-world.ts";

await using world = await openDataWorld();
const { db } = world.ctx;

/** A stranger makes alice a member of its own business, without asking, and has two questions for her there. */
async function enrolAlice(stranger: string): Promise<string[]> {
  const business = await world.found({ members: [stranger], isVerified: false });
  const members = world.rosterOf([stranger, "alice"]);
  const act = { operation: "changeCharter", members, rules: { governance: "UNANIMOUS" } };
  await world.govern(stranger, act, { business: business.address, voters: [stranger] });
  await world.until("alice is a member", async () => {
    const { epoch } = (await findBusiness(db, business.address)) ?? {};
    return epoch === 1 ? true : null;
  });
  const ids: string[] = [];
  const move = { operation: "moveTo", successor: world.business.address };
  for (const body of [move, { ...act, rules: { governance: "MAJORITY" } }]) {
    const path = `/w/businesses/${business.address}/proposals`;
    const { status, body: made } = await world.walletCall(stranger, "POST", path, { body });
    assert.equal(status, 201, JSON.stringify(made));
    ids.push(String(made["proposalId"] ?? made["id"]));
  }
  return ids;
}

const hintsTo = async (name: string): Promise<string[]> => {
  const rows = await db.query<{ subject: string }>(sql`
    select subject from push_notice where member = ${world.person(name).address} order by subject`);
  return rows.map(({ subject }) => subject.split(":")[1] ?? "");
};

await test("votes in businesses that a person never agreed to join come after all others, and no device is told of them", async () => {
  const strange = [...(await enrolAlice("mallory")), ...(await enrolAlice("trudy"))];
  const asked = await world.ask({ fields: ["BUSINESS_LEGAL_NAME"], optionalFields: [] });
  const own = String(asked.body["requestId"]);
  await world.findVote("alice", own);
  const inbox = (await world.inboxOf("alice")).map(({ id }) => id);
  assert.deepEqual(inbox, [own, ...strange.toSorted()]);
  assert.deepEqual(await hintsTo("alice"), [own]);

  const pages: unknown[] = [];
  let cursor = "";
  do {
    const path = `/w/inbox?limit=2${cursor === "" ? "" : `&cursor=${cursor}`}`;
    const { body } = await world.walletCall("alice", "GET", path);
    pages.push(...(body["items"] as { id: string }[]).map(({ id }) => id));
    cursor = encodeURIComponent((body["nextCursor"] as string | undefined) ?? "");
  } while (cursor !== "");
  assert.deepEqual(pages, inbox);

  const { body } = await world.walletCall("alice", "GET", "/w/businesses");
  const [first] = body["items"] as { address: string }[];
  assert.equal(first?.address, world.business.address);
});

await test("whoever votes in a business has agreed to be its member", async () => {
  const [, , strange = ""] = (await world.inboxOf("alice")).map(({ id }) => id);
  await world.voteAs("alice", strange, { vote: "reject" });
  const [row] = await db.query<{ business: string }>(sql`
    select business from business_member where member = ${world.person("alice").address} and has_voted`);
  assert.ok(row !== undefined && row.business !== world.business.address);
});
