// `svc user logout`: what somebody approved ends too, wherever it had come to.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { actAs, logInFor, openBusinessPage } from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { approveByQr, finish, openPage, statusOf, type Tokens } from "../login-flow.ts";
import { newIdentity } from "../raw-wallet.ts";
import { logOutUser } from "../user-verbs.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function logOut(address: string): Promise<unknown> {
  const [status, said] = await logOutUser(world, address);
  assert.equal(status, 0, said);
  return JSON.parse(said);
}

async function isLive({ access_token: token }: Tokens): Promise<boolean> {
  const headers = { authorization: `Bearer ${token}` };
  return (await fetch(`${world.baseUrl}/userinfo`, { headers })).status === 200;
}

test("a login that was approved and has no code yet ends, and its page leads back to the client", async () => {
  const identity = newIdentity();
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, identity);
  const loggedOut = identity.address;
  const none = { sessions: 0, offline: 0, walletSessions: 0 };
  assert.deepEqual(await logOut(loggedOut), { loggedOut, ...none, unfinished: 1 });
  const state = await statusOf(world.baseUrl, page);
  assert.equal(state["failure"], "declined");
  assert.match(String(state["location"]), /[?&]error=access_denied/);
  await assert.rejects(finish(world.baseUrl, page), /answered 409/);
  assert.deepEqual(await logOut(loggedOut), { loggedOut, ...none, unfinished: 0 });
});

test("a member is logged out for its business too, and what it asked the others ends", async () => {
  const business = await world.found({ members: ["rea", "sam", "tom"] });
  const { tokens } = await logInFor(world, { business, voters: ["rea", "sam"] });
  assert.equal(await isLive(tokens), true);
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "rea", business });
  const item = await world.findVote("sam", page.loginId);
  await logOut(world.person("rea").address);
  assert.equal(await isLive(tokens), false);
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "declined");
  const items = await world.inboxOf("sam");
  assert.ok(items.every(({ id }) => id !== page.loginId));
  const late = await world.voteAs("sam", page.loginId, { item });
  assert.equal(late.body.error?.reason, "ballot_over");
  const next = await openBusinessPage(world);
  assert.equal((await actAs(world, next, { name: "rea", business })).response.status, 200);
});
