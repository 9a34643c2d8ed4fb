// A data request whose time is over is in nobody's way and decided by nobody, even before a job has ended it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { openDataWorld, requestsPath, someRecord } from "../kyb-data-world.ts";

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx } = world;

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
  assert.equal((await world.ask()).status, 201);
  clock.mock.restore();
  const record = (await world.call("GET", `${requestsPath}/${requestId}`)).body;
  assert.deepEqual([record["status"], record["reason"]], ["refused", "expired"]);
  assert.deepEqual(await account(), held, "money is held for the new one alone");
  const [, last] = await world.eventsOf(requestId);
  assert.equal(last?.event, "kyb.data_request.refused");
});

await test("whoever reads a request after its time is told its end, once, before a job has ended it", async (t) => {
  const { address } = await world.found({ members: ["gina", "hugo", "ines"] });
  await world.issueRecord(address, someRecord);
  const { body } = await world.ask({ businessWalletAddress: address });
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

await test("a vote counts in the last second of a request and not behind it, before a job has ended that", async (t) => {
  const { address } = await world.found({ members: ["dora", "emil", "finn"] });
  await world.issueRecord(address, someRecord);
  const asked = await world.ask({ businessWalletAddress: address });
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
