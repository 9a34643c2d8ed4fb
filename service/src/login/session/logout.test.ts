import assert from "node:assert/strict";
import { after, test } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import type { Address } from "@svc/protocol";
import { createLocalJWKSet, decodeJwt, decodeProtectedHeader, jwtVerify } from "jose";
import { sql } from "../../platform/database/db.ts";
import type { Outbound, OutboundResult } from "../../platform/outbound/outbound.ts";
import { keepPauses } from "../../platform/test-pauses.ts";
import { leaseDeliveries } from "./back-channel-store.ts";
import { deliverLogouts } from "./back-channel.ts";
import { endSession } from "./session-end.ts";
import {
  addClient,
  addCode,
  type Answer,
  get,
  openTestLogin,
  post,
  redeem,
  refresh,
  type TestClient,
  type TestCode,
  user,
} from "../test-login.ts";
import { logOutUser } from "../user-logout.ts";
import { insertTestLogouts, listTestLogouts, moveTestClients } from "../test-login-store.ts";
import { tokenJobs } from "../token/token-jobs.ts";

const hangingUrl = "https://slow.example/logout";
const sent: { url: string; token: string }[] = [];
const answered: OutboundResult = {
  kind: "answered",
  status: 200,
  headers: {},
  body: Buffer.alloc(0),
};
let answer: OutboundResult = answered;
/** Lets the clients that hang answer. */
let hanging = Promise.withResolvers<OutboundResult>();
const outbound: Outbound = {
  async send({ url, body }) {
    sent.push({ url, token: new URLSearchParams(String(body)).get("logout_token") ?? "" });
    return url === hangingUrl ? hanging.promise : answer;
  },
  close: async () => undefined,
};
const login = await openTestLogin({ outbound });
after(async () => login[Symbol.asyncDispose]());

const path = "/oauth2/sessions/logout";
const bye = "https://shop.example/bye";
const client = await addClient(login, { backchannelLogoutUri: "https://shop.example/logout" });

async function logIn(
  of: TestClient = client,
): Promise<TestCode & { tokens: Record<string, unknown>; cookie: string }> {
  const code = await addCode(login, of);
  const redeemed = await redeem(login, of, code);
  assert.equal(redeemed.status, 200);
  return { ...code, tokens: redeemed.body, cookie: `svc_session=${code.sessionSecret}` };
}

async function visit(form: Record<string, string>, cookie?: string): Promise<Answer> {
  const query = new URLSearchParams(form).toString();
  return get(login, `${path}?${query}`, cookie === undefined ? {} : { cookie });
}

async function isLive(tokens: Record<string, unknown>): Promise<boolean> {
  const authorization = `Bearer ${String(tokens["access_token"])}`;
  return (await get(login, "/userinfo", { authorization })).status === 200;
}

/** The hidden members of the page's form. */
function hiddenOf(page: string): Record<string, string> {
  const pairs = [...page.matchAll(/type="hidden" name="([^"]*)" value="([^"]*)"/g)];
  return Object.fromEntries(
    pairs.map(([, name, value]) => [name, (value ?? "").replaceAll("&amp;", "&")]),
  );
}

test("a logout with a hint of this browser's session is done at once and returns to the client", async () => {
  const { tokens, cookie } = await logIn();
  login.clock.advance(7200); // An expired hint will do.
  const form = {
    id_token_hint: String(tokens["id_token"]),
    post_logout_redirect_uri: bye,
    state: "a&b",
  };
  const done = await visit(form, cookie);
  assert.equal(done.status, 303, done.text);
  assert.equal(done.headers["location"], `${bye}?state=a%26b`);
  assert.match(String(done.headers["set-cookie"]), /^svc_session=; .*Max-Age=0/);
  assert.equal(
    (await refresh(login, client, tokens["refresh_token"])).body["error"],
    "invalid_grant",
  );
});

test("a hint alone, from a form of the client's site without our cookie, logs out too", async () => {
  const { tokens } = await logIn();
  const form = { id_token_hint: String(tokens["id_token"]) };
  const done = await post(login, path, { form });
  assert.equal(done.status, 200);
  assert.equal(await isLive(tokens), false);
});

test("a logout without a hint asks the person, by a form that is good for this session and target alone", async () => {
  const { tokens, cookie } = await logIn();
  const asked = { client_id: client.id, post_logout_redirect_uri: bye, state: "s" };
  const page = await visit(asked, cookie);
  assert.equal(page.status, 200);
  assert.match(page.text, /Shop/);
  assert.match(String(page.headers["content-security-policy"]), /form-action 'self' https:;/);
  const unled = await visit({ client_id: client.id }, cookie);
  assert.match(String(unled.headers["content-security-policy"]), /form-action 'self';/);
  const hidden = hiddenOf(page.text);
  assert.ok(hidden["confirm"]);

  const submit = async (form: Record<string, string>, by = cookie): Promise<Answer> =>
    post(login, path, { form: { decision: "logout", ...form }, headers: { cookie: by } });
  const { confirm = "" } = hidden;
  for (const other of ["A".repeat(43), `${confirm.slice(0, -1)}_`, `${confirm}A`, confirm.slice(1)])
    assert.equal((await submit({ ...hidden, confirm: other })).status, 400, other);
  assert.equal((await submit({ ...hidden, state: "other" })).status, 400);
  const stranger = await logIn();
  assert.equal((await submit(hidden, stranger.cookie)).status, 400);
  for (const decision of ["stay", "", "yes"])
    assert.equal((await submit({ ...hidden, decision })).status, 200, decision);
  assert.equal(await isLive(tokens), true);

  const done = await submit(hidden);
  assert.deepEqual([done.status, done.headers["location"]], [303, `${bye}?state=s`]);
  assert.equal(await isLive(tokens), false);
  assert.equal(await isLive(stranger.tokens), true);
});

test("a hint of another session ends that one, and this one only when the person says so", async () => {
  const [mine, other] = [await logIn(), await logIn()];
  const page = await visit({ id_token_hint: String(other.tokens["id_token"]) }, mine.cookie);
  assert.equal(page.status, 200);
  const hidden = hiddenOf(page.text);
  assert.ok(hidden["confirm"]);
  assert.equal(await isLive(other.tokens), false);
  assert.equal(await isLive(mine.tokens), true);
  await post(login, path, {
    form: { decision: "logout", ...hidden },
    headers: { cookie: mine.cookie },
  });
  assert.equal(await isLive(mine.tokens), false);
});

test("a browser whose session is over is asked nothing, and loses its cookie", async () => {
  const { sessionId, cookie } = await logIn();
  await login.ctx.db.transaction(async (tx) => endSession(tx, sessionId, login.clock.now()));
  const done = await visit({ client_id: client.id, post_logout_redirect_uri: bye }, cookie);
  assert.deepEqual([done.status, done.headers["location"]], [303, bye]);
  assert.match(String(done.headers["set-cookie"]), /^svc_session=; .*Max-Age=0/);
});

test("a logout that comes as JSON is refused", async () => {
  const { tokens } = await logIn();
  const response = await login.http.inject({
    method: "POST",
    url: path,
    headers: { "content-type": "application/json" },
    payload: JSON.stringify({ id_token_hint: tokens["id_token"] }),
  });
  assert.equal(response.statusCode, 400);
  assert.equal(await isLive(tokens), true);
});

test("a logout that another site starts leaves the cookie of a session that it does not name", async () => {
  const other = await logIn();
  const form = { id_token_hint: String(other.tokens["id_token"]) };
  // The browser's own session is live, but its cookie stays behind: SameSite=Lax.
  for (const done of [await post(login, path, { form }), await visit(form)]) {
    assert.equal(done.status, 200);
    assert.equal(done.headers["set-cookie"], undefined);
  }
  assert.equal(await isLive(other.tokens), false);
  const dead = await visit(form, other.cookie);
  assert.match(String(dead.headers["set-cookie"]), /^svc_session=; .*Max-Age=0/);
});

test("a hint that is forged, or of another issuer, counts as none", async () => {
  const { tokens, cookie } = await logIn();
  const forged = `${String(tokens["id_token"]).slice(0, -6)}AAAAAA`;
  assert.ok(hiddenOf((await visit({ id_token_hint: forged }, cookie)).text)["confirm"]);
  const access = String(tokens["access_token"]);
  assert.ok(hiddenOf((await visit({ id_token_hint: access }, cookie)).text)["confirm"]);
  // As after a change of `BASE_URL`: the issuer was another one.
  await using moved = await openTestLogin({ with: login, environment: { PORT: "4001" } });
  const query = new URLSearchParams({ id_token_hint: String(tokens["id_token"]) });
  const asked = await get(moved, `${path}?${query.toString()}`, { cookie });
  assert.ok(hiddenOf(asked.text)["confirm"]);
  assert.equal(await isLive(tokens), true);
});

test("a POST without cookie and hint comes back as a GET that carries the cookie", async () => {
  const form = { client_id: client.id, post_logout_redirect_uri: bye };
  const again = await post(login, path, { form });
  assert.equal(again.status, 303);
  const expected = `${path}?${new URLSearchParams(form).toString()}`;
  assert.equal(again.headers["location"], expected);
});

test("a logout sends nobody to an address that is not registered", async () => {
  const { tokens } = await logIn();
  const hint = String(tokens["id_token"]);
  const other = await addClient(login);
  const cases: Record<string, string>[] = [
    { id_token_hint: hint, post_logout_redirect_uri: "https://evil.example/" },
    { id_token_hint: hint, post_logout_redirect_uri: `${bye}/` },
    { client_id: client.id, post_logout_redirect_uri: `${bye}?x` },
    { post_logout_redirect_uri: bye },
    { id_token_hint: hint, client_id: other.id, post_logout_redirect_uri: bye },
    { client_id: "unknown", post_logout_redirect_uri: bye },
    { state: "x".repeat(5000) },
  ];
  for (const form of cases) {
    for (const done of [await visit(form), await post(login, path, { form })]) {
      assert.equal(done.status, 400, JSON.stringify(form).slice(0, 200));
      assert.equal(done.headers["location"], undefined);
      assert.match(String(done.headers["content-type"]), /^text\/html/);
    }
  }
  assert.equal(await isLive(tokens), true);
});

test("a logout that fails says that the login may go on, and leads to one that asks", async () => {
  const { tokens, cookie } = await logIn();
  const form = { client_id: client.id, post_logout_redirect_uri: "https://evil.example/" };
  const failed = await visit(form, cookie);
  assert.equal(failed.status, 400);
  assert.match(failed.text, /This logout cannot go on[^]*You may still be logged in here/);
  const [, link = ""] = /<a class="button" href="([^"]*)"/.exec(failed.text) ?? [];
  const asked = await get(login, link, { cookie });
  await post(login, link, {
    form: { decision: "logout", ...hiddenOf(asked.text) },
    headers: { cookie },
  });
  assert.equal(await isLive(tokens), false);
});

test("a logout that fails, by GET or POST, and the one that it leads to keep the language that was asked for", async () => {
  const form = { client_id: "unknown", ui_locales: "de" };
  for (const failed of [await visit(form), await post(login, path, { form })])
    assert.match(failed.text, /<html lang="de">[^]* href="\/[a-z\d/]+\/logout\?ui_locales=de"/);
});

test("every client of the session that wants to know is told once, by a signed logout token", async () => {
  await deliverLogouts(login.ctx);
  sent.length = 0;
  const { tokens, cookie, sessionId } = await logIn();
  const form = { id_token_hint: String(tokens["id_token"]) };
  for (let time = 0; time < 2; time += 1) assert.equal((await visit(form, cookie)).status, 200);
  await deliverLogouts(login.ctx);
  await deliverLogouts(login.ctx);
  assert.equal(sent.length, 1);
  assert.equal(sent[0]?.url, "https://shop.example/logout");
  const keys = createLocalJWKSet(JSON.parse((await get(login, "/.well-known/jwks.json")).text));
  const options = {
    currentDate: new Date(login.clock.nowMs()),
    typ: "logout+jwt",
    audience: client.id,
  };
  const { payload } = await jwtVerify(sent[0]?.token ?? "", keys, options);
  const { jti, ...claims } = payload;
  assert.ok(jti);
  const now = login.clock.now();
  assert.deepEqual(claims, {
    iss: "http://localhost:4000",
    sub: `svcid:${user}`,
    aud: client.id,
    iat: now,
    toe: now,
    exp: now + 120,
    events: { "http://schemas.openid.net/event/backchannel-logout": {} },
    sid: sessionId,
  });
});

test("a client is told with the algorithm of its id tokens, and once more where its answer leads elsewhere", async () => {
  await deliverLogouts(login.ctx);
  const own = { backchannelLogoutUri: "https://es.example/logout", idTokenAlgorithm: "ES256" };
  const { sessionId } = await logIn(await addClient(login, own));
  sent.length = 0;
  answer = { ...answered, status: 302 };
  await login.ctx.db.transaction(async (tx) => endSession(tx, sessionId, login.clock.now()));
  assert.equal(await deliverLogouts(login.ctx), 1);
  answer = answered;
  login.clock.advance(5);
  assert.equal(await deliverLogouts(login.ctx), 1);
  login.clock.advance(86_400);
  assert.equal(await deliverLogouts(login.ctx), 0);
  assert.deepEqual(
    sent.map(({ token }) => decodeProtectedHeader(token).alg),
    ["ES256", "ES256"],
  );
});

test("a client that the person approved in the session is told though it fetched no tokens", async () => {
  await deliverLogouts(login.ctx);
  const { sessionId } = await addCode(login, client);
  const approvals = JSON.stringify([{ client: client.id }]);
  await login.ctx.db.query(
    sql`update session set approvals = ${approvals} where id = ${sessionId}`,
  );
  sent.length = 0;
  await login.ctx.db.transaction(async (tx) => endSession(tx, sessionId, login.clock.now()));
  assert.equal(await deliverLogouts(login.ctx), 1);
  assert.equal(decodeJwt(sent[0]?.token ?? "")["sid"], sessionId);
});

test("an operator logs a user out of everything: sessions, and logins that outlived theirs", async () => {
  const logOut = async (of = user) =>
    login.ctx.db.transaction(async (tx) =>
      logOutUser(tx, of as Address, {
        now: login.clock.now(),
        withdraw: async (id) => assert.fail(id),
      }),
    );
  await logOut();
  await deliverLogouts(login.ctx);
  const offline = await logIn();
  const others = [await logIn(), await logIn()];
  const code = await addCode(login, client);
  await login.ctx.db.query(
    sql`update token_family set session_id = null where session_id = ${offline.sessionId}`,
  );
  await login.ctx.db.query(sql`delete from session where id = ${offline.sessionId}`);
  sent.length = 0;
  assert.deepEqual(await logOut(), { sessions: 3, offline: 1, unfinished: 0 });
  assert.equal(await deliverLogouts(login.ctx), 2);
  for (const { tokens } of [offline, ...others]) {
    assert.equal(await isLive(tokens), false);
    const { body } = await refresh(login, client, tokens["refresh_token"]);
    assert.equal(body["error"], "invalid_grant");
  }
  assert.equal((await redeem(login, client, code)).body["error"], "invalid_grant");
  assert.deepEqual(await logOut(), { sessions: 0, offline: 0, unfinished: 0 });
  assert.equal(await logOut(`0x${"0d".repeat(20)}`), null);
});

test("a client that does not answer is tried six times with the time of the logout, then given up", async () => {
  await deliverLogouts(login.ctx);
  const { tokens, cookie } = await logIn();
  await visit({ id_token_hint: String(tokens["id_token"]) }, cookie);
  const endedAt = login.clock.now();
  sent.length = 0;
  answer = { kind: "failed", reason: "timeout" };
  for (const waitSeconds of [0, 5, 30, 120, 600, 3600]) {
    login.clock.advance(Math.max(0, waitSeconds - 1));
    if (waitSeconds > 0) assert.equal(await deliverLogouts(login.ctx), 0);
    login.clock.advance(1);
    assert.equal(await deliverLogouts(login.ctx), 1);
  }
  login.clock.advance(86_400);
  assert.equal(await deliverLogouts(login.ctx), 0);
  assert.equal(new Set(sent.map((each) => each.token)).size, 6);
  assert.deepEqual(new Set(sent.map(({ token }) => decodeJwt(token)["toe"])), new Set([endedAt]));
  const rows = await listTestLogouts(login.ctx.db);
  assert.ok(rows.some((row) => row.outcome === "given_up" && row.attempts === 6));
  answer = answered;
});

test("a client is not given up within minutes because processes that were to tell it died", async () => {
  const dueAt = login.clock.now();
  await insertTestLogouts(login.ctx.db, { clientId: client.id, user, dueAt, count: 1 });
  const lease = { seconds: 60, limit: 1, perClient: 1, underWay: {}, fullOrganizations: [] };
  for (let deaths = 0; deaths < 6; deaths += 1)
    await leaseDeliveries(login.ctx.db, { ...lease, now: dueAt + 60 * deaths });
  login.clock.advance(360);
  sent.length = 0;
  answer = { kind: "failed", reason: "timeout" };
  for (const waitSeconds of [0, 3600, 3600, 86_400]) {
    login.clock.advance(waitSeconds);
    await deliverLogouts(login.ctx);
  }
  assert.equal(sent.length, 3, "until more than 75 minutes are over");
  answer = answered;
});

test("a client that hangs with a long queue delays no other; what begins no more when the process ends stays due", async () => {
  await deliverLogouts(login.ctx);
  const slow = await addClient(login, { backchannelLogoutUri: hangingUrl });
  const dueAt = login.clock.now();
  await insertTestLogouts(login.ctx.db, { clientId: slow.id, user, dueAt: dueAt - 60, count: 100 });
  await insertTestLogouts(login.ctx.db, { clientId: client.id, user, dueAt, count: 20 });
  sent.length = 0;
  const closing = new AbortController();
  const delivered = deliverLogouts(login.ctx, { closing: closing.signal });
  const others = (): number => sent.filter(({ url }) => url !== hangingUrl).length;
  while (others() < 20) await turn();
  closing.abort();
  hanging.resolve({ kind: "failed", reason: "timeout" });
  assert.equal(await delivered, 28);
  assert.equal(sent.length, 28, "eight of the slow one, and none after the end");
  await deliverLogouts(login.ctx);
  assert.equal(sent.length, 120, "each once");
});

test("a client is told at once of a logout that comes while another client hangs", async (t) => {
  await deliverLogouts(login.ctx);
  keepPauses(t); // The queue is looked at again after one.
  hanging = Promise.withResolvers();
  const slow = await addClient(login, { backchannelLogoutUri: hangingUrl });
  const due = { user, dueAt: login.clock.now(), count: 1 };
  await insertTestLogouts(login.ctx.db, { ...due, clientId: slow.id });
  sent.length = 0;
  let news = Promise.withResolvers<void>();
  const delivered = deliverLogouts(login.ctx, { nextWake: async () => news.promise });
  while (sent.length < 1) await turn();
  await insertTestLogouts(login.ctx.db, { ...due, clientId: client.id });
  news.resolve();
  news = Promise.withResolvers();
  const late = AbortSignal.timeout(60_000);
  while (sent.length < 2 && !late.aborted) await turn();
  hanging.resolve({ kind: "failed", reason: "timeout" });
  await delivered;
  assert.equal(sent[1]?.url, "https://shop.example/logout");
  assert.ok(!late.aborted);
});

test("clients of one organization that hang, however many they are, delay no other's", async () => {
  await deliverLogouts(login.ctx);
  hanging = Promise.withResolvers();
  const slow = await Promise.all(
    Array.from({ length: 10 }, async () => addClient(login, { backchannelLogoutUri: hangingUrl })),
  );
  const ids = slow.map(({ id }) => id);
  await moveTestClients(login.ctx.db, ids, ids[0] ?? "");
  const dueAt = login.clock.now();
  for (const clientId of ids)
    await insertTestLogouts(login.ctx.db, { clientId, user, dueAt: dueAt - 60, count: 10 });
  await insertTestLogouts(login.ctx.db, { clientId: client.id, user, dueAt, count: 20 });
  sent.length = 0;
  const closing = new AbortController();
  const delivered = deliverLogouts(login.ctx, { closing: closing.signal });
  const others = (): number => sent.filter(({ url }) => url !== hangingUrl).length;
  const late = AbortSignal.timeout(60_000);
  while (sent.length < 20 + 32 && !late.aborted) await turn();
  const [told, under] = [others(), sent.length - others()];
  closing.abort();
  hanging.resolve({ kind: "failed", reason: "timeout" });
  await delivered;
  assert.deepEqual([told, under], [20, 32], "the slow ones have half of what is made at once");
  await deliverLogouts(login.ctx);
});

test("a logout costs three calls of the database: it is taken, its end is kept, and nothing more is due", async () => {
  await deliverLogouts(login.ctx);
  await login.ctx.clients.find(client.id);
  const { id: clientId } = client;
  await insertTestLogouts(login.ctx.db, { clientId, user, dueAt: login.clock.now(), count: 1 });
  const before = login.ctx.db.callsTotal;
  assert.equal(await deliverLogouts(login.ctx), 1);
  assert.equal(login.ctx.db.callsTotal - before, 3);
});

test("what a client was told of a logout is kept for 30 days", async () => {
  await using own = await openTestLogin();
  const { id: clientId } = await addClient(own);
  const now = own.clock.now();
  await insertTestLogouts(own.ctx.db, { clientId, user, dueAt: now, count: 1 });
  await own.ctx.db.query(sql`update logout_delivery set ended_at = ${now}`);
  const job = tokenJobs(own.ctx).find(({ name }) => name === "logout-records");
  own.clock.advance(30 * 86_400);
  await job?.run(AbortSignal.any([]));
  assert.equal((await listTestLogouts(own.ctx.db)).length, 1);
  own.clock.advance(1);
  await job?.run(AbortSignal.any([]));
  assert.deepEqual(await listTestLogouts(own.ctx.db), []);
  await insertTestLogouts(own.ctx.db, { clientId, user, dueAt: now, count: 1 });
  await own.ctx.db.query(sql`update logout_delivery set is_user_deleted = true`);
  await job?.run(AbortSignal.any([]));
  assert.equal((await listTestLogouts(own.ctx.db)).length, 1, "a client is still to be told of it");
  await own.ctx.db.query(sql`update logout_delivery set ended_at = ${own.clock.now()}`);
  await job?.run(AbortSignal.any([]));
  assert.deepEqual(await listTestLogouts(own.ctx.db), [], "of a deleted user nothing is kept");
});

test("the form that asks leads where it said, for the client that it named", async () => {
  const uris = [bye, "https://shop.example/elsewhere?from=svc&"];
  const [one, two] = [await addClient(login, { postLogoutRedirectUris: uris }), client];
  const { cookie } = await logIn(one);
  const page = await visit({ client_id: one.id, post_logout_redirect_uri: bye }, cookie);
  const hidden = { ...hiddenOf(page.text), decision: "logout" };
  const submit = async (form: Record<string, string>): Promise<number> =>
    (await post(login, path, { form, headers: { cookie } })).status;
  assert.equal(await submit({ ...hidden, post_logout_redirect_uri: uris[1] ?? "" }), 400);
  assert.equal(await submit({ ...hidden, client_id: two.id }), 400);
  assert.equal(await submit(hidden), 303);
  const [{ cookie: again }, uri = ""] = [await logIn(one), uris[1]];
  const asked = { client_id: one.id, post_logout_redirect_uri: uri, state: "s" };
  const form = { ...hiddenOf((await visit(asked, again)).text), decision: "logout" };
  const done = await post(login, path, { form, headers: { cookie: again } });
  assert.equal(done.headers["location"], `${uri}state=s`);
});
