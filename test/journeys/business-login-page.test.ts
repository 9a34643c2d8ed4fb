// What the page of a login for a business can do while its members are asked, and once they have approved.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { actAs, answerAs, openBusinessPage, takeTokens } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { statusOf } from "../login-flow.ts";
import { claim, scan } from "../raw-wallet.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a login whose members are asked is not started again beside them", async () => {
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  const path = `/oauth2/login/${page.loginId}`;
  const restarted = await page.jar.fetch(`${world.baseUrl}${path}/restart`, { method: "POST" });
  assert.equal(restarted.headers.get("location"), path);
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

test("what members approved by QR code is finished by the page alone, not by the link of the same device", async () => {
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.voteAs("bob", page.loginId);
  const followed = await page.jar.fetch(scan(page.sameDevice).connection);
  assert.equal(followed.status, 409);
  await takeTokens(world, page);
});

test("what was approved is not finished without a place in the business, even where nobody has ended it", async () => {
  const business = await world.found({ members: ["eve"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "eve", business });
  const set = async (status: string): Promise<unknown> =>
    world.ctx.db.query(
      sql`update business set status = ${status} where address = ${business.address}`,
    );
  await set("suspended");
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}/finish`;
  assert.equal((await page.jar.fetch(url, { method: "POST" })).status, 409);
  await set("active");
  await takeTokens(world, page);
});

test("as long as a vote counts, the page waits for it, and nobody begins the login or another of the member anew", async (t) => {
  // A whole second lies ahead: the world's clock passes a machine's clock that stands only slowly.
  t.mock.timers.enable({ apis: ["Date"], now: (Math.floor(Date.now() / 1000) + 1) * 1000 });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.advance(10);
  const other = await openBusinessPage(world);
  const acting = { name: "alice" };
  const claimed = await claim(scan(other.qr), world.person("alice"));
  const { expiresAt } = await world.findVote("bob", page.loginId);
  await world.advance(Number(expiresAt) - world.ctx.clock.now());
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  const path = `/oauth2/login/${page.loginId}`;
  const restarted = await page.jar.fetch(`${world.baseUrl}${path}/restart`, { method: "POST" });
  assert.equal(restarted.headers.get("location"), path);
  const second = await answerAs(world, other, { claimed, acting });
  assert.match(await second.text(), /business_login_open/);
  const voted = await world.voteAs("bob", page.loginId);
  assert.equal(world.ctx.clock.now(), expiresAt, "all of this was in the last second");
  assert.equal(voted.status, 200);
  await takeTokens(world, page);
});
