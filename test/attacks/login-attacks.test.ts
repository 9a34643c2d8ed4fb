// What a hostile browser, wallet or client could try on a login.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { claimOf, loginDigest, signDigest, zeroHash } from "@svc/protocol";
import { openJar } from "../cookie-jar.ts";
import {
  approveByQr,
  authorizationUrl,
  finish,
  hooksOf,
  introspect,
  logIn,
  makePkce,
  openPage,
  redeem,
  statusOf,
} from "../login-flow.ts";
import {
  approvalOf,
  approve,
  claim,
  decline,
  newIdentity,
  post,
  sameDeviceReturn,
  scan,
  signLogin,
  tryClaim,
} from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

async function reasonOf(response: Response): Promise<string> {
  const body = (await response.json()) as { error: { reason: string } };
  return body.error.reason;
}

function finishUrl(loginId: string): string {
  return `${world.baseUrl}/oauth2/login/${loginId}/finish`;
}

test("another browser gets neither the state nor the code of an approved login", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const stranger = await openPage(world.baseUrl, world.client);
  for (const jar of [openJar(), stranger.jar]) {
    assert.equal((await jar.fetch(finishUrl(page.loginId), { method: "POST" })).status, 404);
    assert.equal(
      (await jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/status`)).status,
      404,
    );
    assert.equal(
      (await jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/events`)).status,
      404,
    );
    assert.equal((await jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`)).status, 404);
  }
  const renamed = openJar(
    new Map(
      [...stranger.jar.cookies].map(([name, value]) => [
        name.replace(stranger.loginId, page.loginId),
        value,
      ]),
    ),
  );
  assert.equal((await renamed.fetch(finishUrl(page.loginId), { method: "POST" })).status, 404);
  assert.ok((await finish(world.baseUrl, page)).searchParams.get("code"));
});

test("guessed login ids and made-up macs claim nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { session, connection } = scan(page.qr);
  const [loginId = "", step = ""] = session.split(".");
  const guesses = [
    {
      session: `${randomBytes(16).toString("base64url")}.${step}.${randomBytes(16).toString("base64url")}`,
      connection,
    },
    { session: `${loginId}.${step}.${randomBytes(16).toString("base64url")}`, connection },
    { session: `${loginId}.0.${session.split(".")[2]}`, connection },
    { session: loginId, connection },
    { session, connection: connection.replace(loginId, randomBytes(16).toString("base64url")) },
  ];
  for (const guess of guesses) {
    const { response } = await tryClaim(guess, newIdentity());
    assert.equal(response.status, 404, JSON.stringify(guess));
    assert.equal(await reasonOf(response), "login_not_found");
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});

test("a code older than two steps cannot be claimed", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await world.advance(8);
  const { response } = await tryClaim(scan(page.qr), newIdentity());
  assert.equal(response.status, 410);
  assert.equal(await reasonOf(response), "code_expired");
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});

test("a second claim is refused and both sides are told, while the same claim again gets the same answer", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const identity = newIdentity();
  const scanned = scan(page.qr);
  const first = await claim(scanned, identity);
  const again = await tryClaim(scanned, identity, first.secret);
  assert.equal(await again.response.text(), first.object);
  const { response } = await tryClaim(scan(page.qr), newIdentity());
  assert.equal(response.status, 409);
  assert.equal(await reasonOf(response), "already_claimed");
  assert.equal((await statusOf(world.baseUrl, page))["contested"], true);
  const thief = await post(
    first.connection,
    approvalOf({ ...first, identity: newIdentity() }, "00"),
  );
  assert.equal(await reasonOf(thief), "identity_changed");
});

test("one wrong number ends the login", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await statusOf(world.baseUrl, page);
  const wrong = digits === "17" ? "18" : "17";
  const refused = await approve(claimed, wrong);
  assert.equal(refused.status, 403);
  assert.equal(await reasonOf(refused), "wrong_number");
  assert.equal(await reasonOf(await approve(claimed, wrong)), "wrong_number", "the same again");
  assert.equal((await approve(claimed, String(digits))).status, 409);
  const state = await statusOf(world.baseUrl, page);
  assert.deepEqual([state["kind"], state["failure"]], ["failed", "wrong_number"]);
});

test("an approval without the number is refused and costs nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const refused = await approve(claimed, "");
  assert.equal(await reasonOf(refused), "number_required");
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "claimed");
});

test("an approval before any claim is refused where numbers are matched", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const identity = newIdentity();
  const { session, connection } = scan(page.qr);
  const signature = signDigest(
    loginDigest({ session, connection, requester: "", code: "", object: zeroHash }),
    identity.privateKey,
  );
  const unclaimed = await post(connection, { signature, session, svcID: identity.address });
  assert.equal(await reasonOf(unclaimed), "not_claimed");
  const secret = randomBytes(32).toString("base64url");
  const invented = await post(connection, {
    signature,
    session,
    svcID: identity.address,
    claimSecret: secret,
  });
  assert.equal(await reasonOf(invented), "not_claimed");
});

test("a page cannot finish before the approval", async () => {
  const page = await openPage(world.baseUrl, world.client);
  assert.equal((await page.jar.fetch(finishUrl(page.loginId), { method: "POST" })).status, 409);
  await claim(scan(page.qr), newIdentity());
  const response = await page.jar.fetch(finishUrl(page.loginId), { method: "POST" });
  assert.equal(response.status, 409);
  assert.equal(await reasonOf(response), "not_claimed");
});

test("the identity cannot change between claim and approval", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await statusOf(world.baseUrl, page);
  const other = { ...claimed, identity: newIdentity() };
  assert.equal(await reasonOf(await approve(other, String(digits))), "identity_changed");
  const forged = { ...approvalOf(other, String(digits)), svcID: claimed.identity.address };
  assert.equal(await reasonOf(await post(claimed.connection, forged)), "signature_wrong");
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "claimed");
});

test("only the holder of the claim secret approves", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await statusOf(world.baseUrl, page);
  const stolen = {
    ...approvalOf(claimed, String(digits)),
    claimSecret: randomBytes(32).toString("base64url"),
  };
  assert.equal(await reasonOf(await post(claimed.connection, stolen)), "claim_wrong");
});

test("a login claimed by QR cannot be finished by the link of the same device, nor the reverse", async () => {
  const byQr = await openPage(world.baseUrl, world.client);
  const identity = newIdentity();
  await claim(scan(byQr.qr), identity);
  const crossed = await byQr.jar.fetch(sameDeviceReturn(scan(byQr.sameDevice), identity));
  assert.equal(crossed.status, 409);
  await approveByQrOf(byQr, identity).catch(() => undefined);
  assert.equal((await byQr.jar.fetch(scan(byQr.sameDevice).connection)).status, 409);

  const byLink = await openPage(world.baseUrl, world.client);
  const returned = await byLink.jar.fetch(sameDeviceReturn(scan(byLink.sameDevice), identity));
  assert.equal(returned.status, 303);
  const { response } = await tryClaim(scan(byLink.qr), newIdentity());
  assert.equal(response.status, 409);
  const finished = await byLink.jar.fetch(finishUrl(byLink.loginId), { method: "POST" });
  assert.equal(await reasonOf(finished), "wrong_channel");
});

async function approveByQrOf(
  page: Awaited<ReturnType<typeof openPage>>,
  identity: ReturnType<typeof newIdentity>,
): Promise<void> {
  await approveByQr(world.baseUrl, page, identity);
}

test("a signature is good for one session, connection, client, number and request object", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { digits } = await statusOf(world.baseUrl, page);
  const code = String(digits);
  const other = await openPage(world.baseUrl, world.client);
  const otherClaimed = await claim(scan(other.qr), claimed.identity);
  const replays: string[] = [
    signLogin(claimed, code, { session: scan(other.qr).session }),
    signLogin(claimed, code, { connection: scan(other.qr).connection }),
    signLogin(claimed, code, { connection: claimed.connection.replace("/w/l/", "/w/b/") }),
    signLogin(claimed, code, { requester: "evil.example" }),
    signLogin(claimed, code, { requester: "" }),
    signLogin(claimed, code === "11" ? "12" : "11", {}),
    signLogin(claimed, code, { object: zeroHash }),
    signLogin(otherClaimed, code),
  ];
  for (const signature of replays) {
    const refused = await post(claimed.connection, { ...approvalOf(claimed, code), signature });
    assert.equal(refused.status, 422);
    assert.equal(await reasonOf(refused), "signature_wrong");
  }
  assert.equal((await approve(claimed, code)).status, 200);
});

test("a decline counts only from the wallet that claimed", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const unclaimed = await post(scan(page.qr).connection, {
    error: "access_denied",
    session: scan(page.qr).session,
  });
  assert.equal(await reasonOf(unclaimed), "not_claimed");
  const claimed = await claim(scan(page.qr), newIdentity());
  assert.equal(
    await reasonOf(await decline({ ...claimed, identity: newIdentity() })),
    "signature_wrong",
  );
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "claimed");
  assert.equal((await decline(claimed)).status, 200);
  const state = await statusOf(world.baseUrl, page);
  assert.equal(state["failure"], "declined");
  const location = new URL(String(state["location"]));
  assert.equal(location.searchParams.get("error"), "access_denied");
  assert.equal(location.searchParams.get("iss"), world.baseUrl);
  assert.equal(location.searchParams.get("state"), "state-of-the-browser");
});

test("the same-device answer in another browser ends the login and says so", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const link = sameDeviceReturn(scan(page.sameDevice), newIdentity());
  const elsewhere = await openJar().fetch(link);
  assert.equal(elsewhere.status, 404);
  assert.match(await elsewhere.text(), /another browser/i);
  assert.equal((await page.jar.fetch(link)).status, 409);
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "other_browser");
});

test("a link preview of the return address changes nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { connection, session } = scan(page.sameDevice);
  await openJar().fetch(connection);
  await openJar().fetch(`${connection}?error=access_denied&session=${session}`);
  await openJar().fetch(
    `${connection}?signature=0x${"11".repeat(65)}&session=${session}&svcID=${newIdentity().address}`,
  );
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});

test("the same-device return leaves an address without signature, and no referrer", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const first = await page.jar.fetch(sameDeviceReturn(scan(page.sameDevice), newIdentity()));
  assert.equal(first.status, 303);
  const bare = first.headers.get("location") ?? "";
  assert.equal(bare, scan(page.sameDevice).connection);
  assert.equal(first.headers.get("referrer-policy"), "no-referrer");
  assert.equal(first.headers.get("cache-control"), "no-store");
  const second = await page.jar.fetch(bare);
  assert.equal(second.status, 303);
  const callback = new URL(second.headers.get("location") ?? "");
  const redeemed = await redeem(world.baseUrl, world.client, {
    code: callback.searchParams.get("code") ?? "",
    verifier: page.pkce.verifier,
  });
  assert.equal(redeemed.status, 200);
});

test("a code is good for the client, redirect URI and verifier it was made for", async () => {
  const other = await world.addClient();
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  assert.equal(
    (await redeem(world.baseUrl, other, { code, verifier: page.pkce.verifier })).status,
    400,
  );
  assert.equal(
    (
      await redeem(
        world.baseUrl,
        { ...world.client, redirectUri: `${world.client.redirectUri}/` },
        { code, verifier: page.pkce.verifier },
      )
    ).status,
    400,
  );
  assert.equal(
    (await redeem(world.baseUrl, world.client, { code, verifier: makePkce().verifier })).status,
    400,
  );
  assert.equal(
    (await redeem(world.baseUrl, world.client, { code, verifier: page.pkce.verifier })).status,
    200,
  );
});

test("an id token is no access token, and another client's token tells a client nothing", async () => {
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const asBearer = await fetch(`${world.baseUrl}/userinfo`, {
    headers: { authorization: `Bearer ${tokens.id_token}` },
  });
  assert.equal(asBearer.status, 401);
  const other = await world.addClient({ audiences: [] });
  const told = await introspect(world.baseUrl, other, tokens.access_token);
  assert.deepEqual(told, { active: false });
});

test("no page can be framed, and none runs inline script", async () => {
  const page = await openJar().fetch(authorizationUrl(world.baseUrl, world.client, makePkce()));
  const error = await fetch(`${world.baseUrl}/oauth2/auth`);
  for (const response of [page, error]) {
    const policy = response.headers.get("content-security-policy") ?? "";
    assert.match(policy, /default-src 'none'/);
    assert.match(policy, /frame-ancestors 'none'/);
    assert.doesNotMatch(policy, /unsafe/);
    assert.equal(response.headers.get("x-frame-options"), "DENY");
    assert.equal(response.headers.get("referrer-policy"), "same-origin");
  }
});

test("no spelling of the redirect URI but the registered one is ever redirected to", async () => {
  const good = world.client.redirectUri;
  const payloads = [
    "https://evil.example/callback",
    `${good}/`,
    `${good}?x=1`,
    `${good}#x`,
    `${good}%2F..`,
    good.replace("localhost", "localhost.evil.example"),
    good.replace("localhost", "user@localhost"),
    good.replace("http:", "HTTP:"),
    good.replace("localhost", "LOCALHOST"),
    `${good}\r\nlocation: https://evil.example`,
    "//evil.example",
    "javascript:alert(1)",
    "data:text/html,x",
    "",
  ];
  for (const payload of payloads) {
    const response = await fetch(
      authorizationUrl(world.baseUrl, world.client, makePkce(), { redirect_uri: payload }),
      { redirect: "manual" },
    );
    assert.equal(response.status, 400, payload);
    assert.equal(response.headers.get("location"), null, payload);
    assert.doesNotMatch(await response.text(), /evil\.example|javascript:|data:text/);
  }
});

test("a form of another site cannot finish, restart or switch a login", async () => {
  const page = await openPage(world.baseUrl, world.client);
  await approveByQr(world.baseUrl, page, newIdentity());
  for (const verb of ["finish", "continue", "restart", "show-code"]) {
    const response = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/${verb}`, {
      method: "POST",
      headers: { origin: "https://evil.example" },
    });
    assert.equal(response.status, 403, verb);
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
});

test("a session cookie planted before the login is worth nothing after it", async () => {
  const attacker = await logIn(world.baseUrl, world.client, newIdentity());
  const planted = [...attacker.page.jar.cookies].find(([name]) => name.endsWith("svc_session"));
  assert.ok(planted);
  const victim = openJar(new Map([planted]));
  const identity = newIdentity();
  await logIn(world.baseUrl, world.client, identity, { jar: victim });
  const renewed = victim.cookies.get(planted[0]);
  assert.notEqual(renewed, planted[1]);
  const silent = await openJar(new Map([planted])).fetch(
    authorizationUrl(world.baseUrl, world.client, makePkce(), { prompt: "none" }),
  );
  const code = new URL(silent.headers.get("location") ?? "").searchParams.get("code");
  assert.ok(code, "the attacker still has no more than the attacker's own session");
  const same = openJar(new Map([[planted[0], planted[1]]]));
  const { page } = await logIn(world.baseUrl, world.client, newIdentity(), { jar: same });
  assert.notEqual(page.jar.cookies.get(planted[0]), planted[1]);
});

test("two tabs are two logins, and the ninth evicts the oldest cookie", async () => {
  const jar = openJar();
  const pages = [];
  // Within a second or two, as a browser reopens its tabs.
  for (let tab = 0; tab < 9; tab += 1)
    pages.push(await openPage(world.baseUrl, world.client, { jar }));
  const held = [...jar.cookies.keys()].filter((name) => name.includes("svc_login_"));
  assert.equal(held.length, 8);
  const [oldest, second] = pages;
  assert.ok(oldest && second);
  assert.ok(!held.some((name) => name.endsWith(oldest.loginId)));
  assert.equal((await statusOf(world.baseUrl, second))["kind"], "waiting");
  assert.equal(new Set(pages.map((page) => page.loginId)).size, 9);
});

test("without scripts the page switches for good to one code with number matching", async () => {
  const relaxed = await world.addClient({ numberMatching: false });
  const page = await openPage(world.baseUrl, relaxed);
  const rolling = scan(page.qr);
  const switched = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/show-code`, {
    method: "POST",
  });
  assert.equal(switched.status, 303);
  const html = await (
    await page.jar.fetch(`${world.baseUrl}${switched.headers.get("location")}`)
  ).text();
  const { qr } = hooksOf(html);
  const { response } = await tryClaim(rolling, newIdentity());
  assert.equal(response.status, 410, "the rolling code is off for good");
  await world.advance(60);
  const claimed = await claim(scan(qr), newIdentity());
  assert.equal(claimed.claims.number_matching, true);
  assert.equal(await reasonOf(await approve(claimed)), "number_required");
  const shown = await (
    await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}`)
  ).text();
  const digits = /data-code[^>]*>\s*(\d\d)/.exec(shown)?.[1];
  assert.equal((await approve(claimed, String(digits))).status, 200);
  const left = await page.jar.fetch(`${world.baseUrl}/oauth2/login/${page.loginId}/continue`, {
    method: "POST",
  });
  assert.match(left.headers.get("location") ?? "", /^http:\/\/localhost:4999\/callback\?code=/);
});

test("claims with made-up shapes are refused with 400 and change nothing", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { session, connection } = scan(page.qr);
  const good = {
    session,
    svcID: newIdentity().address,
    claim: claimOf(randomBytes(32).toString("base64url")),
  };
  const bad = [
    {},
    [],
    "x",
    null,
    { ...good, claim: "short" },
    { ...good, svcID: "0x12" },
    { ...good, svcID: 5 },
    { ...good, session: { a: 1 } },
    { ...good, session: "x".repeat(5000) },
    { ...good, claim: `${"A".repeat(42)}B` },
  ];
  for (const body of bad) {
    const response = await post(`${connection}/claim`, body);
    assert.equal(response.status, 400, JSON.stringify(body));
  }
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});
