// What a hostile or clumsy wallet would try with a claim, and with an answer that leaves the claim out.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { buildLoginSession, claimOf, parseLoginSession, shortAddress } from "@svc/protocol";
import { decodeJwt } from "jose";
import { disableClient } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import {
  authorizationUrl,
  hooksOf,
  logIn,
  type LoginClient,
  makePkce,
  type OpenPage,
  openPage,
  statusOf,
} from "../login-flow.ts";
import { untilBlocked } from "../lock-waits.ts";
import { until } from "../patience.ts";
import {
  approvalOf,
  approve,
  claim,
  decline,
  type Identity,
  newIdentity,
  post,
  type Scanned,
  scan,
  tryClaim,
  unclaimedAnswer,
} from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
let relaxed: LoginClient;
before(async () => {
  world = await openWorld({ TRUSTED_PROXIES: "127.0.0.1,::1" });
  relaxed = await world.addClient({ numberMatching: false });
});
after(async () => world[Symbol.asyncDispose]());

async function refusal(response: Response | Promise<Response>): Promise<[number, string]> {
  const { status, ...answer } = await Promise.resolve(response).then(async (got) => ({
    status: got.status,
    body: (await got.json()) as { error: { reason: string } },
  }));
  return [status, answer.body.error.reason];
}

const pageUrl = ({ loginId }: { loginId: string }) => `${world.baseUrl}/oauth2/login/${loginId}`;

const claimRefusal = async (scanned: Scanned, identity = newIdentity()) =>
  refusal((await tryClaim(scanned, identity)).response);

test("a code that does not change ends with the time that a person has for a login", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const path = `/oauth2/login/${page.loginId}`;
  await page.jar.fetch(`${world.baseUrl}${path}/show-code`, { method: "POST" });
  const { qr } = hooksOf(await (await page.jar.fetch(`${world.baseUrl}${path}`)).text());
  await world.advance(world.ctx.config.loginLifetimeSeconds);
  assert.deepEqual(await claimRefusal(scan(qr)), [410, "code_expired"]);
});

test("a login for a business shows its code that stays no longer than a wallet may take it, and leads to a new one", async () => {
  using _ = world.holdTime();
  const page = await openPage(world.baseUrl, world.client, {
    changed: { scope: "openid business" },
  });
  const path = `${world.baseUrl}/oauth2/login/${page.loginId}`;
  const look = async (): Promise<string> => (await page.jar.fetch(path)).text();
  await page.jar.fetch(`${path}/show-code`, { method: "POST" });
  const { qr } = hooksOf(await look());
  await world.advance(world.ctx.config.loginLifetimeSeconds - 1);
  assert.equal(hooksOf(await look()).qr, qr);
  await world.advance(1);
  const html = await look();
  assert.equal(hooksOf(html).qr, "");
  assert.match(html, /The time is up/);
  const [shown = ""] = html.split("<template");
  assert.doesNotMatch(shown, /\/continue"/);
  const { headers } = await page.jar.fetch(`${path}/restart`, { method: "POST" });
  const next = await page.jar.fetch(`${world.baseUrl}${headers.get("location")}`);
  await claim(scan(hooksOf(await next.text()).qr), newIdentity());
});

test("the link of the same device is claimed by its own session, and not after its time", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const scanned = scan(page.sameDevice);
  const other = { ...scanned, session: scan(page.qr).session };
  assert.deepEqual(await claimRefusal(other), [404, "login_not_found"]);
  const unknown = randomBytes(16).toString("base64url");
  const elsewhere = {
    session: unknown,
    connection: scanned.connection.replace(page.loginId, unknown),
  };
  assert.deepEqual(await claimRefusal(elsewhere), [404, "login_not_found"]);
  await world.advance(world.ctx.config.loginLifetimeSeconds);
  assert.deepEqual(await claimRefusal(scanned), [409, "login_over"]);
});

test("what the link of the same device claimed is neither claimed, approved nor declined by QR", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.sameDevice), newIdentity());
  assert.equal(claimed.claims.number_matching, false, "there is no second screen to compare with");
  const byQr = { ...claimed, connection: scan(page.qr).connection };
  assert.deepEqual(await claimRefusal(scan(page.qr), claimed.identity), [409, "wrong_channel"]);
  assert.deepEqual(await refusal(approve(byQr)), [409, "wrong_channel"]);
  assert.deepEqual(await refusal(decline(byQr)), [409, "wrong_channel"]);
});

test("a login of a client that is disabled meanwhile is over for the wallet", async () => {
  const client = await world.addClient();
  const page = await openPage(world.baseUrl, client);
  await disableClient(world.ctx, client.id, "test");
  await until("the client is known to be disabled", async () => {
    const answer = await fetch(authorizationUrl(world.baseUrl, client, makePkce()));
    return answer.status === 400 ? true : null;
  });
  assert.deepEqual(await claimRefusal(scan(page.qr)), [409, "login_over"]);
});

test("a wallet on another network than the client lets it be neither claims nor approves, and one beside the page still may", async () => {
  const acrMinimum = "urn:svc:acr:qr-near";
  const near = await world.addClient({ numberMatching: false, acrMinimum });
  const page = await openPage(world.baseUrl, near);
  const { session, connection } = scan(page.qr);
  const away = { "x-forwarded-for": "203.0.113.9" };
  const { address: svcID } = newIdentity();
  const taken = { session, svcID, claim: claimOf(randomBytes(32).toString("base64url")) };
  assert.deepEqual(await refusal(post(`${connection}/claim`, taken, away)), [403, "acr_unmet"]);
  const unclaimed = unclaimedAnswer({ session, connection }, newIdentity());
  assert.deepEqual(await refusal(post(connection, unclaimed, away)), [403, "acr_unmet"]);
  const { claims } = await claim({ session, connection }, newIdentity());
  assert.equal(claims.acr, acrMinimum);
});

test("a login that is asked of one identity is claimed by no other", async () => {
  const identity = newIdentity();
  const { tokens } = await logIn(world.baseUrl, relaxed, identity);
  const changed = { id_token_hint: tokens.id_token };
  const page = await openPage(world.baseUrl, relaxed, { changed });
  const scanned = scan(page.qr);
  assert.deepEqual(await claimRefusal(scanned), [403, "identity_refused"]);
  const unclaimed = post(scanned.connection, unclaimedAnswer(scanned, newIdentity()));
  assert.deepEqual(await refusal(unclaimed), [403, "identity_refused"]);
  assert.equal((await approve(await claim(scanned, identity))).status, 200);
});

test("a claim is repeated by the identity and session that made it, and while its login is open", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const { identity, secret, object } = await claim(scanned, newIdentity());
  const repeat = async (by: Identity, of = scanned): Promise<Response> =>
    (await tryClaim(of, by, secret)).response;
  assert.equal(await (await repeat(identity)).text(), object);
  assert.deepEqual(await refusal(repeat(newIdentity())), [409, "already_claimed"]);
  await world.advance(8);
  assert.equal(await (await repeat(identity)).text(), object, "the code is no longer shown");
  assert.deepEqual(await refusal(repeat(newIdentity())), [410, "code_expired"]);
  await world.advance(world.ctx.config.loginLifetimeSeconds);
  assert.deepEqual(await refusal(repeat(identity)), [409, "login_over"]);
});

test("the request object is addressed to wallets alone, and good until the login's own end", async () => {
  const { clock, config } = world.ctx;
  const earliest = clock.now();
  const page = await openPage(world.baseUrl, world.client);
  const latest = clock.now();
  await world.advance(8);
  const fresh = hooksOf(await (await page.jar.fetch(pageUrl(page))).text());
  const { object } = await claim(scan(fresh.qr), newIdentity());
  const { iss, aud, exp = 0 } = decodeJwt(object);
  assert.deepEqual([iss, aud], [world.baseUrl, "svc-wallet"]);
  assert.equal(decodeJwt(object)["redirect_host"], new URL(world.client.redirectUri).host);
  const openedAt = exp - config.loginLifetimeSeconds;
  assert.ok(openedAt >= earliest && openedAt <= latest, `${openedAt - earliest} s late`);
});

/** The code that the page shows next; the service accepts it already. */
function afterOf({ session }: Scanned, { html }: OpenPage): string {
  const { loginId, step, mac } = parseLoginSession(session) ?? assert.fail(session);
  const macs = /data-macs="([^"]+)"/.exec(html)?.[1]?.split(" ") ?? [];
  const next = macs[macs.indexOf(mac) + 1] ?? assert.fail(html);
  return buildLoginSession({ loginId, step: step + 1, mac: next });
}

test("a claim is repeated by no other code of its login, and no login is claimed by the code of another", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const { identity, secret } = await claim(scanned, newIdentity());
  const { response } = await tryClaim(
    { ...scanned, session: afterOf(scanned, page) },
    identity,
    secret,
  );
  assert.deepEqual(await refusal(response), [409, "already_claimed"]);
  const other = await openPage(world.baseUrl, relaxed);
  const mixed = { session: scan(other.qr).session, connection: scanned.connection };
  assert.deepEqual(await claimRefusal(mixed), [404, "login_not_found"]);
  const back = { session: scanned.session, connection: scan(other.qr).connection };
  assert.deepEqual(await claimRefusal(back), [404, "login_not_found"]);
});

test("the number that a page shows is any of a hundred", async () => {
  const numbers: string[] = [];
  for (let login = 0; login < 15; login += 1) {
    const page = await openPage(world.baseUrl, world.client);
    await claim(scan(page.qr), newIdentity());
    numbers.push(String((await statusOf(world.baseUrl, page))["digits"]));
  }
  for (const number of numbers) assert.match(number, /^\d\d$/);
  assert.ok(new Set(numbers.map(([tens]) => tens)).size > 2, numbers.join(" "));
});

test("a page is told the short form of who claimed its login, and no more", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const { address } = (await claim(scan(page.qr), newIdentity())).identity;
  const state = await statusOf(world.baseUrl, page);
  assert.equal(state["identity"], shortAddress(address));
  const shown = await (await page.jar.fetch(pageUrl(page))).text();
  for (const told of [JSON.stringify(state), shown]) assert.ok(!told.includes(address.slice(2)));
});

test("a login that was declined is over for the next wallet that claims it", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const claimed = await claim(scan(page.qr), newIdentity());
  assert.equal((await decline(claimed)).status, 200);
  assert.deepEqual(await claimRefusal(scan(page.qr)), [409, "login_over"]);
});

test("an answer belongs to the session that was claimed", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  await world.advance(4);
  const next = await openPage(world.baseUrl, world.client);
  const other = { ...claimed, session: scan(next.qr).session };
  const { digits } = await statusOf(world.baseUrl, page);
  assert.deepEqual(await refusal(approve(other, String(digits))), [422, "signature_wrong"]);
  assert.deepEqual(await refusal(decline(other)), [422, "signature_wrong"]);
  assert.equal((await approve(claimed, String(digits))).status, 200);
});

test("a number that nobody asked for is refused, claimed or not", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const guess = unclaimedAnswer(scanned, newIdentity(), "17");
  assert.deepEqual(await refusal(post(scanned.connection, guess)), [422, "signature_wrong"]);
  const claimed = await claim(scanned, newIdentity());
  assert.deepEqual(await refusal(approve(claimed, "17")), [422, "signature_wrong"]);
  assert.equal((await approve(claimed)).status, 200);
});

test("an answer without a claim counts by its own signature alone", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const identity = newIdentity();
  const forged = { ...unclaimedAnswer(scanned, newIdentity()), svcID: identity.address };
  assert.deepEqual(await refusal(post(scanned.connection, forged)), [422, "signature_wrong"]);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
  const claimSecret = randomBytes(32).toString("base64url");
  const invented = { ...unclaimedAnswer(scanned, identity), claimSecret };
  assert.deepEqual(await refusal(post(scanned.connection, invented)), [409, "not_claimed"]);
  const answered = await post(scanned.connection, unclaimedAnswer(scanned, identity));
  assert.equal(answered.status, 200);
});

test("an answer without a claim counts by a code that is shown, or was a step ago, of its own login", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const answer = async (sent = scanned): Promise<[number, string]> =>
    refusal(post(scanned.connection, unclaimedAnswer(sent, newIdentity())));
  const madeUp = scanned.session.replace(/[^.]+$/, randomBytes(16).toString("base64url"));
  assert.deepEqual(await answer({ ...scanned, session: madeUp }), [404, "login_not_found"]);
  const other = scan((await openPage(world.baseUrl, relaxed)).qr);
  assert.deepEqual(await answer({ ...scanned, session: other.session }), [404, "login_not_found"]);
  await world.advance(8);
  assert.deepEqual(await answer(), [410, "code_expired"]);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "waiting");
});

test("of many wallets that answer one code without a claim in the same instant one is let in", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const { db } = world.ctx;
  // The lock lets all three read the login before the first of them may change it.
  const { sent } = await db.transaction(async (tx) => {
    await tx.query(sql`select from login where id = ${page.loginId} for update`);
    const all = Array.from({ length: 3 }, async () =>
      post(scanned.connection, unclaimedAnswer(scanned, newIdentity())),
    );
    await untilBlocked(db, tx, all.length);
    return { sent: all };
  });
  const answers = await Promise.all(sent);
  const statuses = answers.map(({ status }) => status).toSorted((one, other) => one - other);
  assert.deepEqual(statuses, [200, 409, 409]);
  assert.equal((await statusOf(world.baseUrl, page))["kind"], "approved");
});

test("a login for a business is not approved without a claim, which tells whom the member approves", async () => {
  const page = await openPage(world.baseUrl, relaxed, { changed: { scope: "openid business" } });
  const scanned = scan(page.qr);
  const answer = post(scanned.connection, unclaimedAnswer(scanned, newIdentity()));
  assert.deepEqual(await refusal(answer), [409, "not_claimed"]);
});

test("who declines proves it by the claim's secret as well, and may say that somebody else began the login", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  const { session, connection, secret: claimSecret } = claimed;
  const body = { error: "access_denied", session, notStarted: true };
  const guess = { ...body, claimSecret: randomBytes(32).toString("base64url") };
  assert.deepEqual(await refusal(post(connection, guess)), [403, "claim_wrong"]);
  assert.equal((await post(connection, { ...body, claimSecret })).status, 200);
  assert.equal((await statusOf(world.baseUrl, page))["failure"], "not_started");
  assert.deepEqual(await refusal(decline(claimed)), [409, "login_over"], "it said another thing");
  assert.deepEqual(await refusal(post(connection, approvalOf(claimed, "17"))), [409, "login_over"]);
});

test("a page that was switched to a code that stays takes no answer without a claim, by an earlier code either", async () => {
  const page = await openPage(world.baseUrl, relaxed);
  const scanned = scan(page.qr);
  const path = `${world.baseUrl}/oauth2/login/${page.loginId}/show-code`;
  assert.equal((await page.jar.fetch(path, { method: "POST" })).status, 303);
  const { qr } = hooksOf(await (await page.jar.fetch(pageUrl(page))).text());
  const stays = post(scanned.connection, unclaimedAnswer(scan(qr), newIdentity()));
  assert.deepEqual(await refusal(stays), [409, "not_claimed"]);
  const unclaimed = post(scanned.connection, unclaimedAnswer(scanned, newIdentity()));
  assert.deepEqual(await refusal(unclaimed), [409, "login_over"]);
});
