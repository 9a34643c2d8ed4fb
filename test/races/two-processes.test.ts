// What two server processes over one database do at the same instant.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { decodeJwt } from "jose";
import { disableClient, getPackage } from "../../service/src/accounts/index.ts";
import { openDb, sql, type Statement } from "../../service/src/platform/database/db.ts";
import { openTestDatabase } from "../../service/src/platform/database/test-database.ts";
import {
  decline as declineOrder,
  type KycWorld,
  openKycWorld,
  openRequest,
  shareResult,
} from "../kyc-world.ts";
import {
  approveByQr,
  authorizationUrl,
  basicOf,
  finish,
  logIn,
  makePkce,
  openPage,
  postToken,
  redeem,
  statusOf,
  type Tokens,
} from "../login-flow.ts";
import { untilBlocked } from "../lock-waits.ts";
import { until } from "../patience.ts";
import {
  approvalOf,
  approve,
  claim,
  claimedReturn,
  decline,
  newIdentity,
  openWalletSession,
  post,
  sameDeviceReturn,
  scan,
  tryClaim,
} from "../raw-wallet.ts";
import { untilAvailable } from "../try-again.ts";
import { type ServerProcess, startServer, untilTime } from "../world.ts";

let world: KycWorld;
let other: ServerProcess;
before(async () => {
  world = await openKycWorld({ REFRESH_GRACE_SECONDS: "0" });
  other = await world.startProcess();
});
after(async () => {
  await other[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

function alternate(index: number): string {
  return index % 2 === 0 ? world.baseUrl : other.url;
}

async function count(table: "svc_user" | "audit_entry", identity: string): Promise<number> {
  const text =
    table === "svc_user"
      ? "select count(*)::int as n from svc_user where address = $1"
      : "select count(*)::int as n from audit_entry where subject = $1 and action = 'user.sign-up'";
  const [row] = await world.ctx.db.query<{ n: number }>({ name: "", text, values: [identity] });
  return row?.n ?? -1;
}

test("one code redeemed 50 times in parallel gives exactly one success and revokes the family", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () =>
        redeem(alternate(index), world.client, { code, verifier: page.pkce.verifier }),
      ),
    ),
  );
  const good = answers.filter((answer) => answer.status === 200);
  assert.equal(good.length, 1);
  assert.ok(answers.every((answer) => answer.status === 200 || answer.status === 400));
  const tokens = (await good[0]?.json()) as Tokens;
  const userinfo = await fetch(`${other.url}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.access_token}` },
  });
  assert.equal(userinfo.status, 401, "the family is revoked");
});

test("one refresh token used 50 times in parallel outside the grace gives one success and revokes the family", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const parameters = { grant_type: "refresh_token", refresh_token: tokens.refresh_token ?? "" };
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () => postToken(alternate(index), world.client, parameters)),
    ),
  );
  const good = answers.filter((answer) => answer.status === 200);
  assert.equal(good.length, 1);
  const next = (await good[0]?.json()) as Tokens;
  const again = await postToken(world.baseUrl, world.client, {
    grant_type: "refresh_token",
    refresh_token: next.refresh_token ?? "",
  });
  assert.equal(again.status, 400);
});

test("of 20 wallets that claim one code at once, one claims it", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const scanned = scan(page.qr);
  const moved = { ...scanned, connection: scanned.connection.replace(world.baseUrl, other.url) };
  const answers = await Promise.all(
    Array.from({ length: 20 }, async (_, index) =>
      untilAvailable(
        async () => (await tryClaim(index % 2 === 0 ? scanned : moved, newIdentity())).response,
      ),
    ),
  );
  const statuses = answers.map(({ status }) => status).toSorted((a, b) => a - b);
  assert.deepEqual(statuses, [200, ...Array.from({ length: 19 }, () => 409)]);
  const state = await statusOf(other.url, page);
  assert.equal(state["contested"], true);
});

test("the first logins of one identity on two processes are one sign-up: one user, one audit entry", async () => {
  const identity = newIdentity();
  const relaxed = await world.addClient({ numberMatching: false });
  const claims = await Promise.all(
    Array.from({ length: 10 }, async () =>
      claim(scan((await openPage(world.baseUrl, relaxed)).qr), identity),
    ),
  );
  const answers = await Promise.all(
    claims.map(async (claimed, index) =>
      post(claimed.connection.replace(world.baseUrl, alternate(index)), approvalOf(claimed)),
    ),
  );
  assert.ok(answers.every((answer) => answer.status === 200));
  assert.equal(await count("svc_user", identity.address), 1);
  assert.equal(await count("audit_entry", identity.address), 1);
});

test("an approval posted twice at once is one approval, and the code comes out once", async () => {
  const relaxed = await world.addClient({ numberMatching: false });
  const page = await openPage(world.baseUrl, relaxed);
  const claimed = await claim(scan(page.qr), newIdentity());
  const approvals = await Promise.all([approve(claimed), approve({ ...claimed })]);
  assert.ok(approvals.every((answer) => answer.status === 200));
  const finishes = await Promise.all(
    Array.from({ length: 10 }, async (_, index) =>
      page.jar
        .copy()
        .fetch(`${alternate(index)}/oauth2/login/${page.loginId}/finish`, { method: "POST" }),
    ),
  );
  assert.equal(finishes.filter((answer) => answer.status === 200).length, 1);
});

const rowOfLogin = (loginId: string): Statement =>
  sql`select from login where id = ${loginId} for update`;

/** Both calls read the row and then wait for its lock; the first one gets it first. */
async function oneAfterTheOther(
  hold: Statement,
  first: () => Promise<Response>,
  second: () => Promise<Response>,
): Promise<[number, number]> {
  const [one, two] = await world.ctx.db.transaction(async (tx) => {
    await tx.query(hold);
    const answers = [first()];
    await untilBlocked(world.ctx.db, tx, answers);
    answers.push(second());
    await untilBlocked(world.ctx.db, tx, answers);
    return answers.map((answer) => ({ answer }));
  });
  return [(await one?.answer)?.status ?? 0, (await two?.answer)?.status ?? 0];
}

test("of two claims, redemptions or refreshes that meet at one row the first alone succeeds", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const scanned = scan(page.qr);
  const moved = { ...scanned, connection: scanned.connection.replace(world.baseUrl, other.url) };
  const claimed = await oneAfterTheOther(
    rowOfLogin(page.loginId),
    async () => (await tryClaim(scanned, newIdentity())).response,
    async () => (await tryClaim(moved, newIdentity())).response,
  );
  assert.deepEqual(claimed, [200, 409]);

  const approved = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, approved, newIdentity());
  const code = (await finish(world.baseUrl, approved)).searchParams.get("code") ?? "";
  const { verifier } = approved.pkce;
  const redeemed = await oneAfterTheOther(
    rowOfLogin(approved.loginId),
    async () => redeem(world.baseUrl, world.client, { code, verifier }),
    async () => redeem(other.url, world.client, { code, verifier }),
  );
  assert.deepEqual(redeemed, [200, 400]);

  const { tokens, page: done } = await logIn(world.baseUrl, world.client, newIdentity());
  const parameters = { grant_type: "refresh_token", refresh_token: tokens.refresh_token ?? "" };
  const refreshed = await oneAfterTheOther(
    sql`select from token_family
      where id = (select family_id from login where id = ${done.loginId}) for update`,
    async () => postToken(world.baseUrl, world.client, parameters),
    async () => postToken(other.url, world.client, parameters),
  );
  assert.deepEqual(refreshed, [200, 400]);
});

test("of two browsers with one pushed request, or two wallets with one box, that meet at its row the first alone gets it", async () => {
  const { client } = world;
  const { page } = await logIn(world.baseUrl, client, newIdentity());
  for (const [prompt, first] of [
    ["login", 200],
    ["none", 303],
  ] as const) {
    const { challenge } = makePkce();
    const { search } = new URL(authorizationUrl(world.baseUrl, client, { challenge }, { prompt }));
    const pushed = await fetch(`${world.baseUrl}/oauth2/par`, {
      method: "POST",
      headers: { authorization: basicOf(client) },
      body: new URLSearchParams(search),
    });
    const { request_uri = "" } = (await pushed.json()) as { request_uri?: string };
    const query = new URLSearchParams({ client_id: client.id, request_uri }).toString();
    const opened = await oneAfterTheOther(
      sql`select from pushed_request where client_id = ${client.id} for update`,
      async () => page.jar.copy().fetch(`${world.baseUrl}/oauth2/auth?${query}`),
      async () => page.jar.copy().fetch(`${other.url}/oauth2/auth?${query}`),
    );
    assert.deepEqual(opened, [first, 400], prompt);
  }

  const identity = newIdentity();
  const session = await openWalletSession(world.baseUrl, identity);
  for (const readers of [
    [{}, {}],
    [{ reader: "a".repeat(22) }, { reader: "b".repeat(22) }],
  ] as const) {
    const left = await fetch(`${world.baseUrl}/w/mailbox`, {
      method: "POST",
      headers: { ...session, "content-type": "application/json" },
      body: JSON.stringify({ box: "c2VhbGVk", expiresAt: world.ctx.clock.now() + 600 }),
    });
    const { id } = (await left.json()) as { id: string };
    const taken = await oneAfterTheOther(
      sql`select from mailbox where user_address = ${identity.address} for update`,
      async () => post(`${world.baseUrl}/w/mailbox/${id}/take`, readers[0]),
      async () => post(`${other.url}/w/mailbox/${id}/take`, readers[1]),
    );
    assert.deepEqual(taken, [200, 404]);
  }
});

test("of two restarts of a login, or two ends of a session, that meet at its row one has an effect", async () => {
  const told = await world.addClient({ backchannelLogoutUri: "http://localhost:4999/logout" });
  const countOf = async (table: "login" | "logout_delivery"): Promise<number> => {
    const text = `select from ${table} where client_id = $1`;
    return (await world.ctx.db.query({ name: "", text, values: [told.id] })).length;
  };
  const page = await openPage(world.baseUrl, told);
  const restart = async (baseUrl: string): Promise<Response> =>
    page.jar.copy().fetch(`${baseUrl}/oauth2/login/${page.loginId}/restart`, {
      method: "POST",
      redirect: "manual",
    });
  const restarted = await oneAfterTheOther(
    rowOfLogin(page.loginId),
    async () => restart(world.baseUrl),
    async () => restart(other.url),
  );
  assert.deepEqual([restarted, await countOf("login")], [[303, 303], 2]);

  const { tokens } = await logIn(world.baseUrl, told, newIdentity());
  const { sid = "" } = decodeJwt(tokens.id_token) as { sid?: string };
  const query = new URLSearchParams({ id_token_hint: tokens.id_token }).toString();
  const ended = await oneAfterTheOther(
    sql`select from session where id = ${sid} for update`,
    async () => fetch(`${world.baseUrl}/oauth2/sessions/logout?${query}`),
    async () => fetch(`${other.url}/oauth2/sessions/logout?${query}`),
  );
  assert.deepEqual([ended, await countOf("logout_delivery")], [[200, 200], 1]);
});

test("of an approval and a refusal at once the first counts, and the other is told that it came too late", async () => {
  const open = async () => {
    const page = await openPage(world.baseUrl, world.client);
    const claimed = await claim(scan(page.qr), newIdentity());
    const digits = String((await statusOf(world.baseUrl, page))["digits"]);
    const elsewhere = claimed.connection.replace(world.baseUrl, other.url);
    const approveElsewhere = async (code = digits): Promise<Response> =>
      post(elsewhere, approvalOf(claimed, code));
    return { page, claimed, digits, approveElsewhere };
  };
  const kept = await open();
  const declinedLate = await oneAfterTheOther(
    rowOfLogin(kept.page.loginId),
    kept.approveElsewhere,
    async () => decline(kept.claimed),
  );
  assert.deepEqual(declinedLate, [200, 409]);
  assert.ok((await finish(world.baseUrl, kept.page)).searchParams.has("code"));

  const ended = await open();
  const approvedLate = await oneAfterTheOther(
    rowOfLogin(ended.page.loginId),
    async () => decline(ended.claimed),
    ended.approveElsewhere,
  );
  assert.deepEqual(approvedLate, [200, 409]);

  const typo = await open();
  const wrongLate = await oneAfterTheOther(
    rowOfLogin(typo.page.loginId),
    async () => approve(typo.claimed, typo.digits),
    async () => typo.approveElsewhere(typo.digits === "11" ? "12" : "11"),
  );
  assert.deepEqual(wrongLate, [200, 409]);
  assert.ok((await finish(world.baseUrl, typo.page)).searchParams.has("code"));
});

test("a login moves between processes at every step", async () => {
  const page = await openPage(other.url, world.client);
  assert.ok(
    page.qr.includes(encodeURIComponent(world.baseUrl)),
    "the issuer is the same everywhere",
  );
  await approveByQr(world.baseUrl, page, newIdentity());
  const callback = await finish(other.url, page);
  const answer = await redeem(world.baseUrl, world.client, {
    code: callback.searchParams.get("code") ?? "",
    verifier: page.pkce.verifier,
  });
  assert.equal(answer.status, 200);
});

test("a browser that comes back twice is led on twice, and gets its code once", async () => {
  for (const isClaimed of [false, true]) {
    const page = await openPage(world.baseUrl, world.client);
    const scanned = scan(page.sameDevice);
    const url = isClaimed
      ? claimedReturn(await claim(scanned, newIdentity()))
      : sameDeviceReturn(scanned, newIdentity());
    const elsewhere = url.replace(world.baseUrl, other.url);
    const urls = [url, elsewhere, url, elsewhere];
    const atOnce = await Promise.all(urls.map(async (each) => page.jar.copy().fetch(each)));
    for (const back of [...atOnce, await page.jar.fetch(url)])
      assert.deepEqual(
        [back.status, back.headers.get("location"), back.headers.get("referrer-policy")],
        [303, `${world.baseUrl}/w/b/${page.loginId}`, "no-referrer"],
      );
    const kept = page.jar.copy();
    const bare = await page.jar.fetch(`${world.baseUrl}/w/b/${page.loginId}`);
    assert.ok(new URL(bare.headers.get("location") ?? "").searchParams.has("code"));
    for (const late of [url, `${other.url}/w/b/${page.loginId}`])
      assert.equal((await kept.fetch(late)).status, 409);
  }
});

test("the event stream of one process tells what another process did", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const response = await page.jar.fetch(`${other.url}/oauth2/login/${page.loginId}/events`);
  assert.equal(response.headers.get("content-type"), "text/event-stream");
  const reader = response.body?.pipeThrough(new TextDecoderStream()).getReader();
  assert.ok(reader);
  const next = async (): Promise<Record<string, unknown>> => {
    for (;;) {
      const { value = "", done } = await reader.read();
      const data = /data: (.+)/.exec(value)?.[1];
      if (data !== undefined) return JSON.parse(data) as Record<string, unknown>;
      if (done) throw new Error("the stream ended");
    }
  };
  assert.equal((await next())["kind"], "waiting");
  const claimed = await claim(scan(page.qr), newIdentity());
  const told = await next();
  assert.equal(told["kind"], "claimed");
  await approve(claimed, String(told["digits"]));
  assert.deepEqual(await next(), { kind: "approved" });
  await reader.cancel();
});

test("a client changed in one process is known in the other at once", async () => {
  const client = await world.addClient();
  const unreadMs = performance.now();
  await openPage(other.url, client);
  await disableClient(world.ctx, client.id, "test");
  const parameters = new URLSearchParams({
    client_id: client.id,
    redirect_uri: client.redirectUri,
  });
  const refused = async (): Promise<boolean> =>
    (await fetch(`${other.url}/oauth2/auth?${parameters.toString()}`, { redirect: "manual" }))
      .status === 400;
  await until("the other process knows of it", async () => ((await refused()) ? true : null));
  assert.ok(performance.now() - unreadMs < 60_000, "before what it has read is too old");
});

test("fifty identical requests make one order and hold one transfer, and 49 are answered that it exists", async () => {
  const kycPackage = await world.buy({ transfers: 50 });
  const body = { sourceKey: kycPackage.sourceKey, expiration: world.ctx.clock.now() + 600 };
  const answers = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () => world.ask(body, index % 2 === 0 ? {} : { baseUrl: other.url })),
    ),
  );
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [200]);
  const keys = new Set(answers.map(({ body: answer }) => answer.data?.["referenceKey"]));
  assert.equal(keys.size, 1);
  const repeats = answers.filter(({ body: answer }) => answer.data?.["alreadySent"] === true);
  assert.equal(repeats.length, 49);
  const { transfersHeld, transfersConsumed } = await getPackage(world.ctx, kycPackage.id);
  assert.deepEqual([transfersHeld, transfersConsumed], [1, 0]);
  const referenceKey = String([...keys][0]);
  const events = await world.call("GET", `/api/v2/kyc/events?referenceKey=${referenceKey}`);
  const items = events.body.data?.["items"] as { sequence: number }[];
  assert.deepEqual(
    items.map(({ sequence }) => sequence),
    [1],
  );
});

test("approval, refusal and cancellation at once end in one of them, with exact credits", async () => {
  const kycPackage = await world.buy({ transfers: 5 });
  const asked = await world.ask({ sourceKey: kycPackage.sourceKey });
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const { link } = asked.body.data ?? {};
  // Opened before any of the three calls, because after the end it can no longer be opened.
  const opened = await openRequest(link);
  const outcomes = await Promise.all([
    post(opened.connection, shareResult(world.person, opened)).then(({ status }) => status),
    declineOrder(world.person, link).then(({ status }) => status),
    world
      .call("POST", "/api/v2/kyc/cancel", { body: { referenceKey }, baseUrl: other.url })
      .then(({ status }) => status)
      .catch(() => 0),
  ]);
  assert.equal(outcomes.filter((status) => status === 200).length, 1, String(outcomes));
  const { status } = await world.statusOf(referenceKey);
  if (status !== "FAILED") await world.reach(referenceKey, "CONFIRMED");
  const { transfersHeld, transfersConsumed } = await getPackage(world.ctx, kycPackage.id);
  assert.deepEqual([transfersHeld, transfersConsumed], [0, status === "FAILED" ? 0 : 1]);
});

test("an approval sent again to the other process is confirmed after the time that the login had before it", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const scanned = scan(page.qr);
  const moved = { ...scanned, connection: scanned.connection.replace(world.baseUrl, other.url) };
  const claimed = await claim(moved, newIdentity());
  const { digits } = await statusOf(world.baseUrl, page);
  await world.advance(world.ctx.config.loginLifetimeSeconds - 20);
  const approval = approvalOf({ ...claimed, connection: scanned.connection }, String(digits));
  assert.equal((await post(scanned.connection, approval)).status, 200);
  await world.advance(30);
  await untilTime(other, world.ctx.clock.now());
  const again = await post(moved.connection, approval);
  assert.deepEqual([again.status, await again.json()], [200, { status: "approved" }]);
});

test("two processes that start on an empty database migrate it once", async () => {
  await using database = await openTestDatabase({ migrated: false });
  const settings = {
    PROFILE: "dev",
    METRICS_PORT: "0",
    DATABASE_URL: database.url,
    MASTER_KEY: "22".repeat(32),
    LOG_LEVEL: "silent",
  };
  const processes = await Promise.all([startServer(settings), startServer(settings)]);
  const db = openDb({ ...database.connection, connections: 1 });
  const rows = await db.query<{ number: number }>({
    name: "",
    text: "select number from migration order by number",
    values: [],
  });
  assert.deepEqual(
    rows.map((row) => row.number),
    [...new Set(rows.map((row) => row.number))],
  );
  assert.ok(rows.length > 0);
  const keys = await db.query<{ purpose: string }>({
    name: "",
    text: "select purpose from signing_key where starts_at <= extract(epoch from now())",
    values: [],
  });
  assert.equal(
    new Set(keys.map((key) => key.purpose)).size,
    keys.length,
    "one signing key for each purpose",
  );
  await db.close();
  for (const each of processes) await each[Symbol.asyncDispose]();
});
