// A data request whose votes began, and whose business has other members before they came to an end.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDataWorld } from "../kyb-data-world.ts";
import { reachEpoch, rosterOf } from "../kyb-signature-world.ts";

await using world = await openDataWorld();
const { address } = world.business;
const optional = ["BUSINESS_DIRECTOR_COUNT"];

await test("after a change of members the first approval chooses anew which optional fields go", async () => {
  const { body } = await world.ask();
  const id = String(body["requestId"]);
  await world.voteAs("alice", id, { optional });
  assert.deepEqual((await world.findVote("bob", id))["fixedOptional"], optional);
  const members = rosterOf(world, ["bob", "carol", "dave"]);
  await world.govern("bob", { operation: "changeCharter", members }, { voters: ["bob", "carol"] });
  await reachEpoch(world, { name: "bob", address, epoch: 1 });

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
