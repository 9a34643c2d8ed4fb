// What becomes of a login whose client is changed while a wallet holds it.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { moveLocalDomain, setLimits, updateClient } from "../../service/src/accounts/index.ts";
import { changeTestClient } from "../../service/src/login/test-login-store.ts";
import {
  approveByQr,
  authorizationUrl,
  basicOf,
  finish,
  type LoginClient,
  makePkce,
  openPage,
  redeem,
  statusOf,
} from "../login-flow.ts";
import { until } from "../patience.ts";
import { approve, claim, newIdentity, scan } from "../raw-wallet.ts";
import { callbackUri, openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a login that was claimed goes on with the number that its wallet was told of", async () => {
  for (const numberMatching of [true, false]) {
    const client = await world.addClient({ numberMatching });
    const page = await openPage(world.baseUrl, client);
    const claimed = await claim(scan(page.qr), newIdentity());
    assert.equal(claimed.claims.number_matching, numberMatching);
    const changes = { numberMatching: !numberMatching };
    await updateClient(world.ctx, { clientId: client.id, changes }, "test");
    const { digits } = await statusOf(world.baseUrl, page);
    assert.equal(typeof digits === "string", numberMatching);
    const answer = await approve(claimed, typeof digits === "string" ? digits : "");
    assert.equal(answer.status, 200, await answer.text());
    assert.ok((await finish(world.baseUrl, page)).searchParams.has("code"));
  }
});

test("an organization's own limit of logins counts on loopback too, which dev spares the others", async () => {
  const { ctx, organizationId } = world;
  const set = async (loginsPerClientMinute: number | null) =>
    setLimits(ctx, { organizationId, changes: { loginsPerClientMinute } }, "test");
  await set(1);
  const client = await world.addClient();
  const start = async () =>
    (await fetch(authorizationUrl(world.baseUrl, client, makePkce()))).status;
  assert.deepEqual([await start(), await start()], [200, 429]);
  await set(null);
});

const elsewhere = "http://localhost:4999/elsewhere";

test("an address that was taken from a client gets no code any more, nor tokens for one that it has", async () => {
  const client = await world.addClient({ redirectUris: [callbackUri, elsewhere] });
  const [early, late] = [
    await openPage(world.baseUrl, client),
    await openPage(world.baseUrl, client),
  ];
  for (const page of [early, late]) await approveByQr(world.baseUrl, page, newIdentity());
  const code = (await finish(world.baseUrl, early)).searchParams.get("code") ?? "";
  const changes = { redirectUris: [elsewhere] };
  await updateClient(world.ctx, { clientId: client.id, changes }, "test");
  await until("the change is known", async () => {
    const answer = await fetch(authorizationUrl(world.baseUrl, client, makePkce()));
    return answer.status === 400 ? true : null;
  });
  const redeemed = await redeem(world.baseUrl, client, { code, verifier: early.pkce.verifier });
  assert.equal(redeemed.status, 400);
  const released = await late.jar.fetch(`${world.baseUrl}/oauth2/login/${late.loginId}/finish`, {
    method: "POST",
  });
  assert.equal(released.status, 409);
  assert.doesNotMatch(await released.text(), /code=/);
});

test("a browser that gets no code for an address that was taken away keeps its session", async () => {
  const client = await world.addClient({ redirectUris: [callbackUri, elsewhere] });
  const user = newIdentity();
  const first = await openPage(world.baseUrl, client, { changed: { scope: "openid" } });
  await approveByQr(world.baseUrl, first, user);
  await finish(world.baseUrl, first);
  const { jar } = first;
  const changed = { scope: "openid", prompt: "consent" };
  const late = await openPage(world.baseUrl, client, { jar, changed });
  await approveByQr(world.baseUrl, late, user);
  await updateClient(
    world.ctx,
    { clientId: client.id, changes: { redirectUris: [elsewhere] } },
    "test",
  );
  const url = `${world.baseUrl}/oauth2/login/${late.loginId}/finish`;
  await until("the change is known", async () => {
    const answer = await fetch(authorizationUrl(world.baseUrl, client, makePkce()));
    return answer.status === 400 ? true : null;
  });
  assert.equal((await jar.fetch(url, { method: "POST" })).status, 409);
  const answered = await jar.fetch(
    authorizationUrl(world.baseUrl, { ...client, redirectUri: elsewhere }, makePkce(), {
      scope: "openid",
      prompt: "none",
    }),
  );
  assert.match(answered.headers.get("location") ?? "", /[?&]code=/);
});

test("a login that was claimed goes on under the domain that its wallet was shown", async () => {
  const page = await openPage(world.baseUrl, world.client);
  const claimed = await claim(scan(page.qr), newIdentity());
  assert.equal(claimed.claims.domain, "localhost");
  const moved = { id: world.clientDomainId, domain: "localhost:4999" };
  await moveLocalDomain(world.ctx, moved, "test");
  const { digits } = await statusOf(world.baseUrl, page);
  const answer = await approve(claimed, String(digits));
  assert.equal(answer.status, 200, await answer.text());
  assert.ok((await finish(world.baseUrl, page)).searchParams.has("code"));
});

test("an address that a client was given since it was read begins a login, pushed or not, that ends in tokens", async () => {
  const client = await world.addClient({ redirectUris: [callbackUri] });
  const push = async (by: LoginClient): Promise<number> => {
    const { search } = new URL(authorizationUrl(world.baseUrl, by, makePkce()));
    const response = await fetch(`${world.baseUrl}/oauth2/par`, {
      method: "POST",
      headers: { authorization: basicOf(by) },
      body: new URLSearchParams(search),
    });
    return response.status;
  };
  const pushing = { ...client, redirectUri: elsewhere };
  assert.equal(await push(pushing), 400);
  await changeTestClient(world.ctx.db, client.id, { redirectUris: [elsewhere] });
  assert.equal(await push(pushing), 201);
  assert.equal(await push(client), 400);

  const visiting = { ...client, redirectUri: "http://localhost:4999/yonder" };
  await changeTestClient(world.ctx.db, client.id, { redirectUris: [visiting.redirectUri] });
  const page = await openPage(world.baseUrl, visiting);
  await approveByQr(world.baseUrl, page, newIdentity());
  const code = (await finish(world.baseUrl, page)).searchParams.get("code") ?? "";
  const redeemed = await redeem(world.baseUrl, visiting, { code, verifier: page.pkce.verifier });
  assert.equal(redeemed.status, 200);
});
