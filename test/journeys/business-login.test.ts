// Logging in for a business: the acting member's wallet, the page, and the other members.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  actAs,
  answerAs,
  answerOf,
  businessPart,
  businessScope,
  logInFor,
  openBusinessPage,
  takeTokens,
} from "../business-login.ts";
import { type KybWorld, openKybWorld } from "../kyb-world.ts";
import { isAcquainted } from "../../service/src/accounts/index.ts";
import { suspendBusiness } from "../../service/src/kyb/index.ts";
import {
  authorizationUrl,
  finish,
  hooksOf,
  introspect,
  logIn,
  makePkce,
  openPage,
  postToken,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { approvalOf, claim, post, scan, signLogin, tryClaim } from "../raw-wallet.ts";

let world: KybWorld;
before(async () => {
  world = await openKybWorld();
});
after(async () => world[Symbol.asyncDispose]());

const reasonOf = async (response: Response): Promise<string> =>
  ((await response.json()) as { error: { reason: string } }).error.reason;
const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >;
async function userinfo(token: string): Promise<Response> {
  return fetch(`${world.baseUrl}/userinfo`, { headers: { authorization: `Bearer ${token}` } });
}

test("a majority logs in, and every token says for which business and by whom", async () => {
  const page = await openBusinessPage(world);
  assert.match(page.html, /Your business and your role in it/);
  const { claimed, response } = await actAs(world, page, { name: "alice" });
  const claims = claimed.claims as unknown as Record<string, unknown>;
  assert.equal(claims["client_id"], world.client.id);
  assert.equal(claims["valid_until"], Number(claims["exp"]) + 3600);
  assert.deepEqual([response.status, await response.json()], [200, { status: "waiting" }]);
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  const votedFrom = world.ctx.clock.now();
  const voted = await world.voteAs("bob", page.loginId);
  assert.deepEqual(voted.body, { id: page.loginId, status: "approved" });
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "approved" });
  const tokens = await takeTokens(world, page);
  const access = claimsOf(tokens.access_token);
  const alice = world.person("alice").address;
  const ext = access["ext"] as { approved_at: number };
  assert.ok(ext.approved_at >= votedFrom && ext.approved_at <= world.ctx.clock.now());
  assert.deepEqual(ext, {
    login_type: "business",
    business: {
      id: world.business.address,
      name: "Muster AG",
      domain: null,
      verified: true,
      status: "active",
    },
    acting_member: {
      id: alice,
      name: "alice",
      authority: "JOINT",
      voting_rights: true,
      is_creator: true,
    },
    approved_at: ext.approved_at,
  });
  assert.equal(access["sub"], `svcid:${alice}`);
  const idToken = claimsOf(tokens.id_token);
  assert.deepEqual([idToken["sub"], idToken["ext"]], [access["sub"], ext]);
  const info = await userinfo(tokens.access_token);
  assert.deepEqual(await info.json(), { sub: access["sub"], ext });
  assert.deepEqual(
    (await introspect(world.baseUrl, world.client, tokens.access_token))["ext"],
    ext,
  );
  const members = await world.call("GET", `/api/v1/kyb/members/${world.business.address}`);
  assert.match(JSON.stringify(members.body), /"name":"bob"/);
});

test("with one voting member the login completes at once", async () => {
  const business = await world.found({ members: ["solo"], name: "Solo GmbH", isVerified: false });
  const page = await openBusinessPage(world);
  const { response } = await actAs(world, page, { name: "solo", business });
  assert.deepEqual(await response.json(), { status: "approved" });
  const { ext } = claimsOf((await takeTokens(world, page)).access_token) as {
    ext: { business: { verified: boolean }; acting_member: { authority: string } };
  };
  assert.equal(ext.acting_member.authority, "SOLE");
  assert.equal(ext.business.verified, false);
});

test("the page that waits is the same after every vote that does not decide", async () => {
  const business = await world.found({
    members: ["wes", "xia", "yan", "zoe"],
    rules: { signature_requests: "UNANIMOUS" },
  });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "wes", business });
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  const shown = async (): Promise<string> => {
    const response = await page.jar.fetch(url);
    const headers = [...response.headers].filter(([name]) => !/^(?:date|x-request-id)$/.test(name));
    const html = (await response.text()).replace(/&quot;nowMs&quot;:\d+/, "");
    return JSON.stringify([headers, html, await statusOf(world.baseUrl, page)]);
  };
  const first = await shown();
  for (const name of ["xia", "yan"]) {
    assert.equal((await world.voteAs(name, page.loginId)).body["status"], "open");
    assert.equal(await shown(), first);
  }
});

test("where all must agree, no smaller number logs in", async () => {
  const known = async (name: string): Promise<boolean> =>
    isAcquainted(world.ctx.db, world.organizationId, world.person(name).address);
  const business = await world.found({
    members: ["una", "uri", "ugo"],
    rules: { signature_requests: "UNANIMOUS" },
  });
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "una", business });
  await world.voteAs("uri", page.loginId);
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  const early = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
  });
  assert.equal(early.status, 409);
  assert.equal(await known("una"), false);
  await world.voteAs("ugo", page.loginId);
  assert.deepEqual([await known("una"), await known("ugo")], [true, false]);
  assert.ok((await takeTokens(world, page)).refresh_token);
});

test("the page that waits names nobody and counts nobody", async () => {
  const page = await openBusinessPage(world);
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  await actAs(world, page, { name: "carol" });
  const html = await (await page.jar.fetch(url)).text();
  assert.match(html, /<h2[^>]*>Waiting for other members of the business/);
  // The id may contain a name by chance.
  const all = (html + JSON.stringify(await statusOf(world.baseUrl, page))).replaceAll(
    page.loginId,
    "",
  );
  for (const name of world.business.members) {
    assert.ok(!all.includes(name), name);
    const { address } = world.person(name);
    assert.ok(!all.toLowerCase().includes(address), address);
    assert.ok(!all.toLowerCase().includes(address.slice(0, 6)), address);
  }
  assert.doesNotMatch(all, /Muster AG|\d of \d/);
  assert.equal(hooksOf(html).qr, "");
  const asked = await page.jar.fetch(`${url}/continue`, { method: "POST" });
  assert.equal(asked.headers.get("location"), `/oauth2/login/${page.loginId}`);
  const left = await page.jar.fetch(`${url}/give-up`, { method: "POST" });
  const back = new URL(left.headers.get("location") ?? "");
  assert.equal(back.searchParams.get("error"), "access_denied");
  const items = await world.inboxOf("bob");
  assert.ok(items.every(({ id }) => id !== page.loginId));
});

test("members who refuse send the browser back with access_denied", async () => {
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.voteAs("bob", page.loginId, { vote: "reject" });
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  await world.voteAs("carol", page.loginId, { vote: "reject" });
  const state = await statusOf(world.baseUrl, page);
  assert.deepEqual([state["kind"], state["failure"]], ["failed", "declined"]);
  const location = new URL(String(state["location"]));
  assert.equal(location.searchParams.get("error"), "access_denied");
  assert.equal(location.searchParams.get("state"), "state-of-the-browser");
  assert.equal(location.searchParams.get("iss"), world.baseUrl);
  const late = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/finish`, {
    method: "POST",
  });
  assert.equal(late.status, 409);
});

test("after 15 minutes the page stays, with a new start, and no vote counts", async () => {
  const page = await openBusinessPage(world);
  await world.advance(600);
  const current = hooksOf(
    await (await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`)).text(),
  );
  await actAs(world, { ...page, qr: current.qr }, { name: "alice" });
  const item = await world.findVote("bob", page.loginId);
  await world.advance(301);
  const late = await world.voteAs("bob", page.loginId, { item });
  assert.equal(late.body.error?.reason, "ballot_over");
  const state = await statusOf(world.baseUrl, page);
  assert.deepEqual(state, { kind: "failed", failure: "expired", canRestart: true });
  const url = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  const again = await page.jar.fetch(`${url}/restart`, { method: "POST" });
  const next = again.headers.get("location") ?? "";
  assert.notEqual(next, `/oauth2/login/${page.loginId}`);
  const html = await (await page.jar.fetch(`${world.baseUrl}${next}`)).text();
  const restarted = Object.assign(hooksOf(html), { jar: page.jar, html, pkce: page.pkce });
  const { response } = await actAs(world, restarted, { name: "alice" });
  assert.deepEqual(await response.json(), { status: "waiting" });
  await world.voteAs("bob", restarted.loginId);
  await takeTokens(world, restarted);
});

test("an approval for another session, client, issuer, scope, business or member is refused", async () => {
  const other = await world.found({ members: ["alice", "bob", "carol"], name: "Other AG" });
  const page = await openBusinessPage(world);
  const { loginId } = await openBusinessPage(world);
  const client = await world.addClient();
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const wrong = [
    { message: { session: loginId } },
    { message: { clientId: client.id } },
    { message: { issuer: "https://elsewhere.example" } },
    { message: { requester: "elsewhere.example" } },
    { message: { scope: "openid business" } },
    { message: { business: other.address } },
    { message: { actingMember: world.person("bob").address } },
    { approval: { business: other.address } },
    { approval: { category: 1 as const } },
    { approval: { category: 2 as const } },
    { approval: { category: 3 as const } },
    { approval: { chainId: 1 } },
    { sent: { address: other.address } },
  ];
  for (const changed of wrong) {
    const response = await answerAs(world, page, {
      claimed,
      acting: { name: "alice", ...changed },
    });
    const reason = await reasonOf(response);
    assert.equal(reason, "signature_wrong", JSON.stringify(changed));
  }
  const validUntil = world.ctx.clock.now() + 99_999;
  for (const approval of [{ epoch: 7 }, { validUntil }]) {
    const response = await answerAs(world, page, { claimed, acting: { name: "alice", approval } });
    assert.equal(await reasonOf(response), "ballot_changed");
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "claimed");
  const good = await answerAs(world, page, { claimed, acting: { name: "alice" } });
  assert.deepEqual(await good.json(), { status: "waiting" });
  const vote = await world.voteAs("bob", page.loginId, { changed: { category: 1 } });
  assert.equal(vote.body.error?.reason, "signature_wrong");
  await world.voteAs("bob", page.loginId);
  await takeTokens(world, page);
});

test("an approval of a login does not approve an act of governance", async () => {
  const address = world.business.address;
  const { body } = await world.walletCall("alice", "POST", `/w/businesses/${address}/proposals`, {
    body: { operation: "startRemoval", member: world.person("carol").address },
  });
  const id = String(body["proposalId"]);
  const voted = await world.voteAs("alice", id, { changed: { category: 4 } });
  assert.equal(voted.body.error?.reason, "signature_wrong");
});

test("only a voting member of an active business of the client's environment acts", async () => {
  const watched = await world.found({ members: ["wanda", "watcher"], observers: ["watcher"] });
  const sandbox = await world.found({ members: ["sandy"], environment: "sandbox" });
  for (const [name, business] of [
    ["mallory", world.business],
    ["watcher", watched],
    ["sandy", sandbox],
    ["wanda", world.business],
  ] as const) {
    const page = await openBusinessPage(world);
    const { response } = await actAs(world, page, { name, business });
    assert.equal(await reasonOf(response), "not_a_member", name);
  }
});

test("a login for a business names one, and is claimed first", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.qr), world.person("alice"));
  const { digits } = await statusOf(world.baseUrl, page);
  const nothing = await post(claimed.connection, approvalOf(claimed, String(digits)));
  assert.equal(await reasonOf(nothing), "invalid_request");
  const malformed = await post(claimed.connection, {
    ...approvalOf(claimed, String(digits)),
    business: { address: "0x12", epoch: 0, validUntil: 1, approval: "0x" },
  });
  assert.equal(await reasonOf(malformed), "invalid_request");
  const client = await world.addClient({ numberMatching: false });
  const open = await openBusinessPage(world, { client });
  const scanned = scan(open.qr);
  const unclaimed = await post(scanned.connection, {
    session: scanned.session,
    svcID: world.person("alice").address,
    signature: `0x${"11".repeat(65)}`,
    business: { address: world.business.address, epoch: 0, validUntil: 1, approval: "0x" },
  });
  assert.equal(await reasonOf(unclaimed), "invalid_request");
});

test("a member has one open login; the wallet that began it ends it", async () => {
  const page = await openBusinessPage(world);
  const { claimed } = await actAs(world, page, { name: "carol" });
  const second = await openBusinessPage(world);
  const again = await actAs(world, second, { name: "carol" });
  assert.equal(await reasonOf(again.response), "business_login_open");
  const ended = await post(claimed.connection, {
    error: "access_denied",
    session: claimed.session,
    claimSecret: claimed.secret,
  });
  assert.deepEqual(await ended.json(), { status: "declined" });
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "declined");
  const body = await answerOf(world, second, {
    claimed: again.claimed,
    acting: { name: "carol" },
  });
  for (const time of ["first", "again"]) {
    const retried = await post(claimed.connection.replace(page.loginId, second.loginId), body);
    assert.deepEqual(await retried.json(), { status: "waiting" }, time);
  }
  await world.voteAs("alice", second.loginId);
  await takeTokens(world, second);
});

test("on the same device the browser that came back waits on its page", async () => {
  const page = await openBusinessPage(world);
  const claimed = await claim(scan(page.sameDevice), world.person("alice"));
  const { address, ...part } = await businessPart(world, claimed, { name: "alice" });
  const query = new URLSearchParams({
    signature: signLogin(claimed, ""),
    session: claimed.session,
    svcID: claimed.identity.address,
    business: String(address),
    ...Object.fromEntries(Object.entries(part).map(([name, value]) => [name, String(value)])),
  });
  const back = await page.jar.fetch(`${claimed.connection}?${query.toString()}`);
  assert.deepEqual(
    [back.status, back.headers.get("location"), back.headers.get("referrer-policy")],
    [303, `${world.baseUrl}/oauth2/login/${page.loginId}`, "no-referrer"],
  );
  assert.deepEqual(await statusOf(world.baseUrl, page), { kind: "gathering" });
  const bare = await page.jar.fetch(claimed.connection);
  assert.equal(bare.headers.get("location"), `/oauth2/login/${page.loginId}`);
  await world.voteAs("bob", page.loginId);
  const { acr, ext } = claimsOf((await takeTokens(world, page)).id_token) as {
    acr: string;
    ext: { login_type: string };
  };
  assert.deepEqual([acr, ext.login_type], ["urn:svc:acr:same-device", "business"]);
});

test("on the same device too a business is claimed first, and one member is enough where there is one", async () => {
  const business = await world.found({ members: ["sole"] });
  const page = await openBusinessPage(world);
  const { response } = await tryClaim(
    scan(page.sameDevice),
    world.person("mallory"),
    "A".repeat(43),
  );
  assert.equal(response.status, 200);
  const own = await openBusinessPage(world);
  const claimed = await claim(scan(own.sameDevice), world.person("sole"));
  const { address, ...part } = await businessPart(world, claimed, { name: "sole", business });
  const query = new URLSearchParams({
    signature: signLogin(claimed, ""),
    session: claimed.session,
    svcID: claimed.identity.address,
    business: String(address),
    ...Object.fromEntries(Object.entries(part).map(([name, value]) => [name, String(value)])),
  });
  const back = await own.jar.fetch(`${claimed.connection}?${query.toString()}`);
  assert.equal(back.headers.get("location"), claimed.connection);
  const done = await own.jar.fetch(claimed.connection);
  assert.ok(new URL(done.headers.get("location") ?? "").searchParams.get("code"));
  const unclaimed = await openBusinessPage(world);
  const direct = await unclaimed.jar.fetch(
    `${world.baseUrl}/w/b/${unclaimed.loginId}?${new URLSearchParams({
      ...Object.fromEntries(query),
      session: unclaimed.loginId,
    }).toString()}`,
  );
  assert.match(await direct.text(), /not_claimed/);
});

test("no session answers for a business", async () => {
  const page = await openBusinessPage(world);
  await actAs(world, page, { name: "alice" });
  await world.voteAs("bob", page.loginId);
  await finish(world.baseUrl, page);
  const silent = await page.jar.fetch(
    authorizationUrl(world.baseUrl, world.client, makePkce(), {
      scope: "openid business",
      prompt: "none",
    }),
  );
  const location = new URL(silent.headers.get("location") ?? "");
  assert.equal(location.searchParams.get("error"), "login_required");
  const promptless = await openPage(world.baseUrl, world.client, {
    jar: page.jar,
    changed: { scope: businessScope, prompt: undefined },
  });
  assert.notEqual(promptless.qr, "");
});

test("the age of a login for a business counts from the acting member's approval, not from the last vote", async () => {
  const changed = { scope: "openid" };
  const { page: own } = await logIn(world.baseUrl, world.client, world.person("alice"), {
    changed,
  });
  const { jar } = own;
  const page = await openPage(world.baseUrl, world.client, {
    jar,
    changed: { scope: businessScope },
  });
  const actingFrom = world.ctx.clock.now();
  await actAs(world, page, { name: "alice" });
  const actingUntil = world.ctx.clock.now();
  await world.advance(600);
  await world.voteAs("bob", page.loginId);
  const { auth_time: at, ext } = claimsOf((await takeTokens(world, page)).id_token);
  assert.ok(Number(at) >= actingFrom && Number(at) <= actingUntil, `auth_time ${String(at)}`);
  assert.ok((ext as { approved_at: number }).approved_at >= actingUntil + 600);
  const silently = async (maxAge: string): Promise<URLSearchParams> => {
    const asked = { ...changed, prompt: "none", max_age: maxAge };
    const url = authorizationUrl(world.baseUrl, world.client, makePkce(), asked);
    return new URL((await jar.fetch(url)).headers.get("location") ?? "").searchParams;
  };
  assert.equal((await silently("300")).get("error"), "login_required");
  assert.ok((await silently("900")).has("code"));
});

test("a family of a business ends after 30 days, however often it is refreshed", async () => {
  const { tokens } = await logInFor(world, { voters: ["alice", "bob"] });
  const day = 86_400;
  await world.advance(29 * day);
  const first = await refresh(tokens.refresh_token);
  assert.equal(first.status, 200);
  const next = (await first.json()) as { refresh_token: string; id_token: string };
  assert.equal((claimsOf(next.id_token)["ext"] as { login_type: string }).login_type, "business");
  await world.advance(day);
  assert.equal((await refresh(next.refresh_token)).status, 400);
});

test("tokens that a refresh narrowed to a scope without business name none, and end with it all the same", async () => {
  const business = await world.found({ members: ["ivo"] });
  const { tokens } = await logInFor(world, { business, voters: ["ivo"] });
  const granted = tokens.scope.split(" ");
  assert.ok(granted.includes("business"));
  const narrow = granted.filter((each) => each !== "business").join(" ");
  const next = (await (await refresh(tokens.refresh_token, { scope: narrow })).json()) as Tokens;
  assert.equal(next.scope, narrow);
  assert.deepEqual(claimsOf(next.access_token)["ext"], {});
  assert.equal(claimsOf(next.id_token)["ext"], undefined);
  const sub = `svcid:${world.person("ivo").address}`;
  assert.deepEqual(await (await userinfo(next.access_token)).json(), { sub, ext: {} });
  assert.deepEqual((await introspect(world.baseUrl, world.client, next.access_token))["ext"], {});
  await suspendBusiness(world.ctx, business.address, "test");
  assert.equal((await userinfo(next.access_token)).status, 401);
  assert.equal((await introspect(world.baseUrl, world.client, next.access_token))["active"], false);
});

async function refresh(token = "", asked: { scope?: string } = {}): Promise<Response> {
  const form = { grant_type: "refresh_token", refresh_token: token, ...asked };
  return postToken(world.baseUrl, world.client, form);
}
