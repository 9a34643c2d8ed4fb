// What becomes of logins for a business when its members, its standing or its wallet change, and what the page of one can
// do while its members are asked, and once they have approved.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { type BusinessStatus, suspendBusiness } from "../../service/src/kyb/index.ts";
import { endBusinessLogins } from "../../service/src/login/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import {
  actAs,
  answerAs,
  checkAskedNoMore,
  logInFor,
  openBusinessPage,
  takeTokens,
} from "../business-login.ts";
import { type KybWorld, openKybWorld, type TestBusiness } from "../kyb-world.ts";
import {
  finish,
  introspect,
  type OpenPage,
  postToken,
  redeem,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { untilBlocked } from "../lock-waits.ts";
import { deleteUser } from "../operator-verbs.ts";
import { claim, scan } from "../raw-wallet.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

/** @returns the uses for which the tokens are still good */
async function usesOf(tokens: Tokens): Promise<string[]> {
  const bearer = { authorization: `Bearer ${tokens.access_token}` };
  const active = async (token = ""): Promise<unknown> =>
    (await introspect(world.baseUrl, world.client, token))["active"];
  const userinfo = await fetch(`${world.baseUrl}/userinfo`, { headers: bearer });
  const isAccess = await active(tokens.access_token);
  const isRefresh = await active(tokens.refresh_token);
  const refreshed = await postToken(world.baseUrl, world.client, {
    grant_type: "refresh_token",
    refresh_token: tokens.refresh_token ?? "",
  });
  return [
    ...(userinfo.status === 200 ? ["userinfo"] : []),
    ...(isAccess ? ["introspect access"] : []),
    ...(isRefresh ? ["introspect refresh"] : []),
    ...(refreshed.status === 200 ? ["refresh"] : []),
  ];
}

const allUses = ["userinfo", "introspect access", "introspect refresh", "refresh"];

/** Makes these members the roster, by the votes of the first of them, and waits until the chain has it. */
async function changeCharter(
  { address, members: former }: TestBusiness,
  { members, dataRule = "MAJORITY" }: { members: readonly string[]; dataRule?: string },
): Promise<void> {
  const [proposer = ""] = members;
  const request = {
    operation: "changeCharter",
    members: members.map((each) => ({
      address: world.person(each).address,
      name: each,
      votingRights: true,
    })),
    rules: { signature_requests: "MAJORITY", data_requests: dataRule, governance: "MAJORITY" },
  };
  const { epoch: past } = await world.businessOf(proposer, address);
  const voters = members.slice(0, Math.floor(former.length / 2) + 1);
  await world.govern(proposer, request, { business: address, voters });
  await world.until("the charter has changed", async () => {
    const { epoch } = await world.businessOf(proposer, address);
    return epoch === past ? null : true;
  });
}

/** Takes one member off the roster. */
async function removeMember(business: TestBusiness, name: string): Promise<void> {
  await changeCharter(business, { members: business.members.filter((each) => each !== name) });
}

test("a changed roster ends every login for the business, and a changed rule none", async () => {
  const business = await world.found({ members: ["ann", "ben", "cleo", "dan"] });
  const other = await world.found({ members: ["ann", "ben", "cleo"] });
  const elsewhere = await logInFor(world, { business: other, voters: ["ann", "ben"] });
  const ruled = await logInFor(world, { business, voters: ["dan", "ann", "ben"] });
  const leaving = await logInFor(world, { business, voters: ["dan", "ann", "ben"] });
  const staying = await logInFor(world, { business, voters: ["ann", "ben", "cleo"] });
  await changeCharter(business, { members: business.members, dataRule: "UNANIMOUS" });
  assert.deepEqual(await usesOf(ruled.tokens), allUses);
  await removeMember(business, "dan");
  assert.deepEqual(await usesOf(leaving.tokens), []);
  assert.deepEqual(await usesOf(staying.tokens), []);
  assert.deepEqual(await usesOf(elsewhere.tokens), allUses);
  const [row] = await world.ctx.db.query<{ reason: string }>({
    name: "",
    text: "select distinct revoked_reason as reason from token_family where user_address = $1",
    values: [world.person("dan").address],
  });
  assert.equal(row?.reason, "business_changed");
});

/** Sets the status alone, without what the service does along with it. */
async function setStatus({ address }: TestBusiness, status: BusinessStatus): Promise<void> {
  await world.ctx.db.query(sql`update business set status = ${status} where address = ${address}`);
}

test("tokens are looked after at each use, even where nobody has revoked them", async () => {
  for (const status of ["suspended", "moved"] satisfies BusinessStatus[]) {
    const business = await world.found({ members: ["eve"] });
    const { tokens } = await logInFor(world, { business, voters: ["eve"] });
    await setStatus(business, status);
    assert.deepEqual(await usesOf(tokens), [], status);
    await setStatus(business, "active");
    assert.deepEqual(await usesOf(tokens), allUses, status);
  }
});

test("a code and what was approved are looked after at their use as well, even where nobody has ended them", async () => {
  const business = await world.found({ members: ["uma"] });
  const approve = async (): Promise<OpenPage> => {
    const page = await openBusinessPage(world);
    assert.equal((await actAs(world, page, { name: "uma", business })).response.status, 200);
    return page;
  };
  const [finished, approved] = [await approve(), await approve()];
  const code = (await finish(world.baseUrl, finished)).searchParams.get("code") ?? "";
  const redeemed = async (): Promise<number> =>
    (await redeem(world.baseUrl, world.client, { code, verifier: finished.pkce.verifier })).status;
  await setStatus(business, "suspended");
  assert.equal(await redeemed(), 400);
  await assert.rejects(takeTokens(world, approved), /finish answered 409/);
  await setStatus(business, "active");
  assert.equal(await redeemed(), 200);
  await takeTokens(world, approved);
});

test("a suspension ends logins for the business, and what ended stays ended", async () => {
  const business = await world.found({ members: ["finn", "gail"] });
  const { tokens } = await logInFor(world, { business, voters: ["finn", "gail"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "gail", business });
  await suspendBusiness(world.ctx, business.address, "test");
  await world.until("the page is told", async () => {
    const { kind } = await statusOf(world.baseUrl, page);
    return kind === "failed" ? true : null;
  });
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "declined");
  assert.deepEqual(await usesOf(tokens), []);
  const refused = await openBusinessPage(world);
  const { response } = await actAs(world, refused, { name: "finn", business });
  assert.equal(response.status, 403);
});

test("a code of a member who has left meanwhile yields no tokens", async () => {
  const business = await world.found({ members: ["hal", "ida", "jan"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "jan", business });
  await world.voteAs("ida", page.loginId);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
  await removeMember(business, "jan");
  await assert.rejects(takeTokens(world, page), /finish answered 409/);
});

/** Prolongs codes, as if the chain had changed within the minute that a code lives. */
async function keepCodes(): Promise<void> {
  await world.ctx.db.query({
    name: "",
    text: "update login set code_expires_at = code_expires_at + 3600",
    values: [],
  });
}

test("what members approved yields no tokens to those who stay either, once the roster has changed", async () => {
  const business = await world.found({ members: ["lou", "mia", "ned", "ove"] });
  const approve = async (): Promise<OpenPage> => {
    const page = await openBusinessPage(world);
    await actAs(world, page, { name: "lou", business });
    for (const name of ["mia", "ove"]) await world.voteAs(name, page.loginId);
    assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
    return page;
  };
  const finished = await approve();
  const code = (await finish(world.baseUrl, finished)).searchParams.get("code") ?? "";
  await keepCodes();
  const approved = await approve();
  await removeMember(business, "ove");
  const { verifier } = finished.pkce;
  assert.equal((await redeem(world.baseUrl, world.client, { code, verifier })).status, 400);
  const { kind, failure } = await statusOf(world.baseUrl, approved);
  assert.deepEqual([kind, failure], ["failed", "declined"]);
  await assert.rejects(takeTokens(world, approved), /finish answered/);
});

test("what the last member approved at the end of its time ends with a changed roster as well", async () => {
  const business = await world.found({ members: ["ulf", "vic"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "ulf", business });
  await world.advance(14 * 60);
  await world.voteAs("vic", page.loginId);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
  await world.ctx.db.transaction(async (tx) => endBusinessLogins(world.ctx, tx, business.address));
  const { kind, failure } = await statusOf(world.baseUrl, page);
  assert.deepEqual([kind, failure], ["failed", "declined"]);
});

test("a login ends with a changed roster also where its page and its code live as long as they can be set to", async () => {
  await using slow = await openKybWorld({
    environment: { LOGIN_LIFETIME_SECONDS: "900", CODE_LIFETIME_SECONDS: "600" },
  });
  using _ = slow.holdTime();
  const page = await openBusinessPage(slow);
  await actAs(slow, page, { name: "alice", business: slow.business });
  await slow.advance(899);
  await slow.voteAs("bob", page.loginId);
  await slow.advance(899);
  const code = (await finish(slow.baseUrl, page)).searchParams.get("code") ?? "";
  await slow.advance(599);
  const { address } = slow.business;
  await slow.ctx.db.transaction(async (tx) => endBusinessLogins(slow.ctx, tx, address));
  const { verifier } = page.pkce;
  assert.equal((await redeem(slow.baseUrl, slow.client, { code, verifier })).status, 400);
});

test("a login that a browser finishes while the roster changes yields no tokens", async () => {
  const { ctx } = world;
  const business = await world.found({ members: ["pru", "ray"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "pru", business });
  await world.voteAs("ray", page.loginId);
  const { finishing, ending } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from login where id = ${page.loginId} for update`);
    const finished = finish(world.baseUrl, page);
    await untilBlocked(ctx.db, tx, [finished]);
    const ended = ctx.db.transaction(async (other) =>
      endBusinessLogins(ctx, other, business.address),
    );
    await untilBlocked(ctx.db, tx, [finished, ended]);
    return { finishing: finished, ending: ended };
  });
  const code = (await finishing).searchParams.get("code") ?? "";
  await ending;
  const { verifier } = page.pkce;
  const redeemed = await redeem(world.baseUrl, world.client, { code, verifier });
  assert.equal(redeemed.status, 400, await redeemed.clone().text());
});

test("votes on a login are collected anew when the roster changes", async () => {
  const business = await world.found({ members: ["kai", "lea", "max", "nia"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "kai", business });
  await world.voteAs("lea", page.loginId);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "gathering");
  await removeMember(business, "nia");
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "gathering");
  await world.voteAs("max", page.loginId);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "gathering");
  await world.voteAs("kai", page.loginId);
  await takeTokens(world, page);
});

test("a login ends with the acting member's place on the roster", async () => {
  const business = await world.found({ members: ["ola", "pia", "quin"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "quin", business });
  await removeMember(business, "quin");
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "declined");
  const items = await world.inboxOf("pia");
  assert.ok(items.every(({ id }) => id !== page.loginId));
});

/** @returns what is left of the member's login and of the vote that it began */
async function leftOf(name: string, loginId: string): Promise<Record<string, unknown>[]> {
  return world.ctx.db.query({
    name: "",
    text: `select 'login' as left from login where id = $1
      union all select 'open login' from business_login where member = $2
      union all select 'open vote' from ballot where id = $1 and status = 'open'`,
    values: [loginId, world.person(name).address],
  });
}

test("deleting the acting member ends what it asked the others", async () => {
  const business = await world.found({ members: ["rea", "sam", "tom"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "rea", business });
  const item = await world.findVote("sam", page.loginId);
  const [status, said] = await deleteUser(world, world.person("rea").address);
  assert.equal(status, 0, said);
  assert.deepEqual(await leftOf("rea", page.loginId), []);
  await checkAskedNoMore(world, { item, acting: { name: "rea", business } });
});

test("deleting a member that is about to act leaves nothing of what it asks", async () => {
  const business = await world.found({ members: ["ulf", "vio", "wim"] });
  const page = await openBusinessPage(world);
  const { address } = world.person("ulf");
  const underWay = await world.ctx.db.transaction(async (tx) => {
    // A login that is over: its row takes the member's one place until this transaction ends.
    const text = `insert into business_login (login_id, member, business, requester, expires_at)
      values ('over', $1, $2, '', 0)`;
    await tx.query({ name: "", text, values: [address, business.address] });
    const asked = actAs(world, page, { name: "ulf", business });
    await untilBlocked(world.ctx.db, tx, [asked]);
    const deleted = deleteUser(world, address);
    await untilBlocked(world.ctx.db, tx, [asked, deleted]);
    return [asked, deleted] as const;
  });
  const [acting, [status, said]] = await Promise.all(underWay);
  assert.equal(acting.response.status, 200);
  assert.equal(status, 0, said);
  assert.deepEqual(await leftOf("ulf", page.loginId), []);
});

test("a code that was issued before its member left yields no tokens", async () => {
  const business = await world.found({ members: ["rea", "sam", "tim"] });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "tim", business });
  await world.voteAs("rea", page.loginId);
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  await keepCodes();
  await removeMember(business, "tim");
  const { verifier } = page.pkce;
  const redeemed = await redeem(world.baseUrl, world.client, { code, verifier });
  assert.equal(redeemed.status, 400, await redeemed.clone().text());
  assert.equal(((await redeemed.json()) as { error: string }).error, "invalid_grant");
});

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

test("as long as a vote counts, the page waits for it, and nobody begins the login or another of the member anew", async () => {
  using _ = world.holdTime();
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
