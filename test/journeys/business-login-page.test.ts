// What the page of a login for a business can do while its members are asked, and once they have approved.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { actAs, openBusinessPage, takeTokens } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { statusOf } from "../login-flow.ts";
import { scan } from "../raw-wallet.ts";

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
