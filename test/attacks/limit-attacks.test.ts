// What a flood meets: limits that say when to retry, and that make nobody lose a pushed request.
import assert from "node:assert/strict";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { setLimits } from "../../service/src/accounts/index.ts";
import { callerAddressOf } from "../../service/src/platform/http/client-address.ts";
import { createHttp } from "../../service/src/platform/http/http.ts";
import { openJar } from "../cookie-jar.ts";
import { authorizationUrl, basicOf, type LoginClient, makePkce } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

const perAddress = 6;
const perClient = 3;
let world: World;
/** However long a test takes, no bucket refills meanwhile. */
let held: Disposable;
before(async () => {
  world = await openWorld({
    LIMIT_LOOPBACK: "true",
    LIMIT_LOGINS_PER_ADDRESS_MINUTE: String(perAddress),
    LIMIT_LOGINS_PER_CLIENT_MINUTE: String(perClient),
    TRUSTED_PROXIES: "127.0.0.0/8,::1",
  });
  held = world.holdTime();
});
after(async () => {
  held[Symbol.dispose]();
  await world[Symbol.asyncDispose]();
});

function assertToldToWait(response: Response): void {
  assert.equal(response.status, 429);
  assert.match(response.headers.get("retry-after") ?? "", /^[1-9]\d*$/);
  assert.match(response.headers.get("ratelimit") ?? "", /r=0;t=\d+/);
  assert.match(response.headers.get("ratelimit-policy") ?? "", /q=\d+;w=60/);
}

async function untilStatus(status: number, ask: () => Promise<Response>): Promise<void> {
  for (let tries = 1; (await ask()).status !== status; tries += 1)
    assert.ok(tries < 200, `no answer with the status ${status}`);
}

function from(address: string): Record<string, string> {
  return { "x-forwarded-for": address };
}

/** One subscriber owns a whole /64, so a flood may come from another address of it each time. */
const fromNetwork = (network: number, host: number): Record<string, string> =>
  from(`2001:db8:0:${network}::${host}`);

async function push(client: LoginClient, headers: Record<string, string>): Promise<Response> {
  const { search } = new URL(authorizationUrl(world.baseUrl, client, makePkce()));
  const authorization = client.secret === undefined ? {} : { authorization: basicOf(client) };
  return fetch(`${world.baseUrl}/oauth2/par`, {
    method: "POST",
    headers: { ...headers, ...authorization },
    body: new URLSearchParams(search),
  });
}

test("an address that starts too many logins gets a page with Try again, by link and by form alike", async () => {
  const headers = fromNetwork(1, perAddress);
  const jar = openJar();
  const url = authorizationUrl(world.baseUrl, { ...world.client, id: "unknown" }, makePkce());
  for (let start = 0; start < perAddress; start += 1)
    assert.equal((await jar.fetch(url, { headers: fromNetwork(1, start) })).status, 400);
  const byLink = await jar.fetch(url, { headers });
  const body = new URL(url).searchParams;
  const byForm = await jar.fetch(`${world.baseUrl}/oauth2/auth`, { method: "POST", headers, body });
  for (const response of [byLink, byForm]) {
    assertToldToWait(response);
    const html = await response.text();
    const again = /href="(\/oauth2\/auth\?[^"]+)"/.exec(html)?.[1]?.replaceAll("&amp;", "&") ?? "";
    assert.equal(new URL(again, url).searchParams.toString(), body.toString());
  }
  const ofOther = { headers: fromNetwork(2, 0) };
  assert.equal((await jar.fetch(url, ofOther)).status, 400, "others go on");
});

test("a page that says to wait puts into no address who a form says the person is", async () => {
  const headers = from("192.0.2.3");
  const url = authorizationUrl(world.baseUrl, { ...world.client, id: "unknown" }, makePkce());
  for (let start = 0; start < perAddress; start += 1) await fetch(url, { headers });
  for (const hint of ["login_hint", "id_token_hint"]) {
    const body = new URL(url).searchParams;
    body.set(hint, newIdentity().address);
    const waiting = await fetch(`${world.baseUrl}/oauth2/auth`, { method: "POST", headers, body });
    assertToldToWait(waiting);
    assert.ok(!(await waiting.text()).includes(hint), hint);
  }
});

test("whoever has to wait for a client keeps the request that was pushed", async () => {
  const client = await world.addClient();
  const pushed = (await (await push(client, {})).json()) as { request_uri: string };
  const open = async (address: string): Promise<Response> => {
    const query = new URLSearchParams({ client_id: client.id, request_uri: pushed.request_uri });
    return fetch(`${world.baseUrl}/oauth2/auth?${query.toString()}`, { headers: from(address) });
  };
  for (let start = 0; start < perClient; start += 1) {
    const url = authorizationUrl(world.baseUrl, client, makePkce());
    const response = await fetch(url, { headers: from(`192.0.2.${10 + start}`) });
    assert.equal(response.status, 200);
  }
  assertToldToWait(await open("192.0.2.20"));
  // By then two starts are allowed again, and the pushed request has not expired yet.
  await world.advance(45);
  const opened = await Promise.all(
    ["192.0.2.30", "192.0.2.31"].map(async (address) => open(address)),
  );
  assert.deepEqual(new Set(opened.map(({ status }) => status)), new Set([200, 400]), "used once");
});

test("requests are pushed no faster than logins start, by anybody's hand for a client without authentication", async () => {
  const browserOnly = await world.addClient({ authenticationMethod: "none" });
  const statuses: number[] = [];
  for (let at = 0; at <= perClient; at += 1) {
    const response = await push(browserOnly, from(`192.0.2.${40 + at}`));
    statuses.push(response.status);
    if (at === perClient) assertToldToWait(response);
  }
  assert.deepEqual(statuses, [201, 201, 201, 429]);
  const one = from("192.0.2.50");
  for (let at = 0; at < perAddress; at += 1)
    await push(await world.addClient({ authenticationMethod: "none" }), one);
  assertToldToWait(await push(await world.addClient({ authenticationMethod: "none" }), one));
  const server = await push(await world.addClient(), one);
  assert.equal(server.status, 201, "a client's own server is not counted by its address");
});

test("clients of an organization with a limit of its own are counted by that one", async () => {
  const { ctx, organizationId } = world;
  const set = async (loginsPerClientMinute: number | null) =>
    setLimits(ctx, { organizationId, changes: { loginsPerClientMinute } }, "test");
  await set(1);
  const client = await world.addClient();
  const start = async (address: string) =>
    fetch(authorizationUrl(world.baseUrl, client, makePkce()), { headers: from(address) });
  assert.equal((await start("192.0.2.70")).status, 200);
  assertToldToWait(await start("192.0.2.71"));
  assert.equal((await push(client, {})).status, 201, "pushed requests are counted apart");
  assertToldToWait(await push(client, {}));
  await set(null);
});

test("an address opens no more wallet sessions than it starts logins", async () => {
  for (let at = 0; at < perAddress; at += 1) await openWalletSession(world.baseUrl, newIdentity());
  const body = { svcID: "x", challenge: "x", deadline: 0, signature: "x" };
  assertToldToWait(await post(`${world.baseUrl}/w/session`, body));
});

test("an address sends no more answers to orders than it starts logins", async () => {
  const url = `${world.baseUrl}/w/o/AAAAAAAAAAAAAAAAAAAAAA`;
  for (let at = 0; at < perAddress; at += 1)
    assert.equal((await post(url, {}, fromNetwork(3, at))).status, 404);
  assertToldToWait(await post(url, {}, fromNetwork(3, perAddress)));
  assert.equal((await post(url, {}, fromNetwork(4, 0))).status, 404, "others go on");
});

const chainHead = "POST /w/chain HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
const askLargely = async (address: string): Promise<Response> =>
  fetch(`${world.baseUrl}/w/chain`, {
    method: "POST",
    headers: { ...from(address), "content-type": "application/json" },
    // Not a JSON-RPC call, which is refused only after the whole body was read.
    body: "[]".padEnd(100_000),
  });

test("an address has sixteen large bodies under way at once; others, and ordinary bodies, go on meanwhile", async () => {
  const address = "192.0.2.80";
  const opened = await Promise.all(
    Array.from({ length: 17 }, async () => {
      const connection = await openRawConnection(world.baseUrl);
      const head = [`X-Forwarded-For: ${address}`, "Transfer-Encoding: chunked"];
      connection.send(`${chainHead}${head.join("\r\n")}\r\n\r\n1\r\n{\r\n`);
      return connection;
    }),
  );
  const told = await Promise.race(
    opened.map(async (connection) => ({ connection, text: String(await connection.first) })),
  );
  assert.match(told.text, /^HTTP\/1\.1 429 /, "the last of them to arrive");
  const begun = opened.filter((connection) => connection !== told.connection);
  const refused = await askLargely(address);
  assert.deepEqual([refused.status, refused.headers.get("retry-after")], [429, "1"]);
  assert.equal((await post(`${world.baseUrl}/w/chain`, [], from(address))).status, 400);
  assert.equal((await askLargely("192.0.2.81")).status, 400);
  begun[0]?.cut();
  await untilStatus(400, async () => askLargely(address));
  for (const connection of begun) connection.cut();
});

test("a large body whose caller left before its route began is no longer under way", async () => {
  await using http = createHttp(world.ctx);
  const arrivals: PromiseWithResolvers<void>[] = [];
  http.addHook("onRequest", async (request, reply) => {
    const arrival = arrivals.shift();
    // As limits do: read before the connection closes, the address stays known afterwards.
    callerAddressOf(world.ctx, request);
    arrival?.resolve();
    if (arrival !== undefined) await once(reply.raw, "close");
  });
  http.post("/large", { bodyLimit: 200_000 }, async () => "read");
  const baseUrl = await http.listen({ port: 0, host: "127.0.0.1" });
  const head = "Host: localhost\r\nContent-Type: application/json\r\nContent-Length: 100000";
  for (let left = 0; left < 16; left += 1) {
    const arrival = Promise.withResolvers<void>();
    arrivals.push(arrival);
    const connection = await openRawConnection(baseUrl);
    connection.send(`POST /large HTTP/1.1\r\n${head}\r\n\r\n[`);
    await arrival.promise;
    connection.cut();
  }
  const body = "[]".padEnd(100_000);
  const headers = { "content-type": "application/json" };
  const answer = await fetch(`${baseUrl}/large`, { method: "POST", headers, body });
  assert.equal(answer.status, 200);
});

test("what wallets leave, take, relay and subscribe to is counted by network, each kind on its own", async () => {
  await world.advance(60);
  const session = await openWalletSession(world.baseUrl, newIdentity());
  const device = { endpoint: "x", keys: { p256dh: "x", auth: "x" } };
  const calls: [number, string, unknown, number][] = [
    [5, "/w/mailbox", { box: "x", expiresAt: 0 }, 400],
    [6, `/w/mailbox/${"A".repeat(32)}/take`, {}, 404],
    [5, "/w/relay", { url: "x", body: { svcID: "x" } }, 400],
    [5, "/w/push", device, 400],
  ];
  for (const [network, path, body, status] of calls) {
    const call = async (by: Record<string, string>): Promise<Response> =>
      post(`${world.baseUrl}${path}`, body, { ...session, ...by });
    for (let at = 0; at < perAddress; at += 1)
      assert.equal((await call(fromNetwork(network, at))).status, status);
    assertToldToWait(await call(fromNetwork(network, perAddress)));
    assert.equal((await call(fromNetwork(7, 0))).status, status, "others go on");
  }
});
