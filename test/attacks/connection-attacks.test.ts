// What a hostile caller would do to connections, and to answers meant for other origins.
import assert from "node:assert/strict";
import { once } from "node:events";
import { connect } from "node:net";
import { after, before, test, type TestContext } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createHttp } from "../../service/src/platform/http/http.ts";
import { createLog } from "../../service/src/platform/telemetry/log.ts";
import { createMetrics } from "../../service/src/platform/telemetry/metrics.ts";
import { logIn } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

test("a request that does not end and a connection that says nothing are cut off", async () => {
  const { server } = createHttp(world.ctx);
  assert.equal(server.requestTimeout, 60_000);
  assert.equal(server.headersTimeout, 60_000);
  // A long poll is silent for 25 s, a status stream for 15 s.
  assert.equal(server.timeout, 120_000);
});

test("a connection is kept longer than proxies keep one, so that none sends into its end", async () => {
  const { headers } = await fetch(`${world.baseUrl}/health/alive`);
  assert.equal(headers.get("keep-alive"), "timeout=72");
});

test("userinfo is readable from the origins of the token's client alone, whatever the form calls itself", async () => {
  const other = await world.addClient({ redirectUris: ["http://localhost:4998/callback"] });
  const { tokens } = await logIn(world.baseUrl, world.client, newIdentity());
  const ask = async (origin: string, client_id: string): Promise<string | null> => {
    const response = await fetch(`${world.baseUrl}/userinfo`, {
      method: "POST",
      headers: { authorization: `Bearer ${tokens.access_token}`, origin },
      body: new URLSearchParams({ client_id }),
    });
    assert.equal(response.status, 200);
    assert.match(response.headers.get("vary") ?? "", /origin/i);
    return response.headers.get("access-control-allow-origin");
  };
  assert.equal(await ask("http://localhost:4998", other.id), null);
  assert.equal(await ask("http://localhost:4999", other.id), "http://localhost:4999");
});

test("what is no HTTP request is answered in the envelope, with a request id, and its connection closed", async () => {
  const cases: readonly [bytes: string, status: number, reason: string][] = [
    [`GET /oauth2/auth?state=${"a".repeat(20_000)} HTTP/1.1\r\n`, 431, "headers_too_large"],
    [`GET / HTTP/1.1\r\nCookie: ${"a".repeat(20_000)}\r\n`, 431, "headers_too_large"],
    ["GET / HTTP/1.1\r\nHost: localhost\r\nno colon\r\n\r\n", 400, "malformed_request"],
    ["GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 400, "malformed_request"],
    [
      "GET / HTTP/1.1\r\nHost: localhost\r\nhost: evil.example\r\nConnection: close\r\n\r\n",
      400,
      "malformed_request",
    ],
    ["GRAB / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request"],
    [
      "POST /oauth2/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
      400,
      "malformed_request",
    ],
    [
      "POST /w/session HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\nx",
      400,
      "malformed_request",
    ],
  ];
  for (const [bytes, status, reason] of cases) {
    const connection = await openRawConnection(world.baseUrl);
    connection.send(bytes);
    const [head = "", body = ""] = (await connection.all).split("\r\n\r\n");
    const { success, error } = JSON.parse(body) as {
      success: boolean;
      error: { code: number; reason: string; message: string; requestId: string };
    };
    assert.ok(head.startsWith(`HTTP/1.1 ${status} `), head);
    assert.deepEqual([success, error.code, error.reason], [false, status, reason], bytes);
    assert.match(error.requestId, /^req_[0-9a-f]{32}$/);
    assert.ok(head.toLowerCase().includes(`\r\nx-request-id: ${error.requestId}`), head);
    assert.ok(head.toLowerCase().includes("\r\nx-content-type-options: nosniff"), head);
  }
});

/** A server whose routes answer only when the test lets them. */
async function openServer(t: TestContext) {
  const lines: string[] = [];
  const log = createLog({ level: "info", destination: { write: (line) => lines.push(line) } });
  const metrics = createMetrics();
  const http = createHttp({ ...world.ctx, log, metrics });
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  const { promise: asked, resolve: noteAsked } = Promise.withResolvers<void>();
  http.get("/wait", async () => {
    noteAsked();
    return answered.then(() => ({ waited: true }));
  });
  http.post("/take", async () => ({}));
  http.get("/stream", (_request, reply) => {
    reply.hijack();
    reply.raw.writeHead(200).write("begun");
  });
  const baseUrl = await http.listen({ host: "127.0.0.1", port: 0 });
  t.after(async () => {
    answer();
    http.server.closeAllConnections();
    await http.close();
  });
  return { baseUrl, lines, metrics, asked, answer };
}

test("the id of a request that was broken stands in the log, and the request in the metrics", async (t) => {
  const { baseUrl, lines, metrics } = await openServer(t);
  const connection = await openRawConnection(baseUrl);
  connection.send("GRAB /secret HTTP/1.1\r\n\r\n");
  const answer = await connection.all;
  const [id = ""] = /req_[0-9a-f]{32}/.exec(answer) ?? [];
  const told = lines.filter((line) => line.includes(id));
  assert.equal(told.length, 1);
  assert.ok(!told.some((line) => line.includes("secret")));
  assert.match(await metrics.registry.metrics(), /_count\{[^}]*status="400"\} 1/);
});

test("a request whose body is cut off is counted once, for its route", async (t) => {
  const { baseUrl, lines, metrics } = await openServer(t);
  const connection = await openRawConnection(baseUrl);
  const head = ["Host: localhost", "Content-Type: application/json", "Content-Length: 9"];
  connection.send(`POST /take HTTP/1.1\r\n${head.join("\r\n")}\r\n\r\n{`);
  connection.cut();
  while (!lines.some((line) => line.includes("/take"))) await setImmediate();
  const text = await metrics.registry.metrics();
  const counts = [...text.matchAll(/^http_request_duration_seconds_count\{(.*)\} (\d+)$/gm)];
  assert.deepEqual(
    counts.map(([, labels, count]) => [labels, count]),
    [['route="/take",method="POST",status="499"', "1"]],
  );
});

test("a malformed request writes nothing into an answer that has begun", async (t) => {
  const { baseUrl } = await openServer(t);
  const begun = await openRawConnection(baseUrl);
  begun.send("GET /stream HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await begun.first;
  begun.send("GRAB\r\n\r\n");
  assert.ok(!(await begun.all).includes("malformed_request"));
});

test("a malformed request is answered once, after the answers that are due before it", async (t) => {
  const { baseUrl, answer } = await openServer(t);
  const wait = "GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n";
  const due = await openRawConnection(baseUrl);
  due.send(`${wait}${wait}GRAB\r\n\r\n`);
  const other = await openRawConnection(baseUrl);
  other.send("GET /none HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await other.first;
  due.send("GRAB\r\n\r\n");
  answer();
  const isOk = 'HTTP/1.1 200 OK[^]*"waited":true[^]*';
  assert.match(await due.all, new RegExp(`^${isOk}${isOk}HTTP/1.1 400 [^]*malformed_request`));
  assert.equal((await due.all).split("malformed_request").length, 2);
  other.send("GRAB\r\n\r\n");
  assert.match(await other.all, /route_not_found[^]*malformed_request/);
});

test("a request that was answered before its body was there gets no second answer for it", async (t) => {
  const { baseUrl } = await openServer(t);
  const connection = await openRawConnection(baseUrl);
  const head = "Host: localhost\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked";
  connection.send(`POST /none HTTP/1.1\r\n${head}\r\n\r\n`);
  await connection.first;
  connection.send("no length\r\n");
  assert.equal((await connection.all).match(/HTTP\/1.1 /g)?.length, 1);
});

test("whoever sends too large a body can send all of it, and reads that it is too large", async () => {
  const size = 70_000;
  const body = "a".repeat(size);
  const chunk = `${size.toString(16)}\r\n${body}\r\n`;
  const wallet = ["/w/session", "application/json", "body_too_large"];
  const oauth = ["/oauth2/token", "application/x-www-form-urlencoded", "invalid_request"];
  for (const [path, type, reason] of [wallet, oauth])
    for (const [length, first, rest] of [
      [`Content-Length: ${size}`, "", body],
      ["Transfer-Encoding: chunked", chunk, `${chunk}0\r\n\r\n`],
    ]) {
      const connection = await openRawConnection(world.baseUrl);
      const head = `Host: localhost\r\nContent-Type: ${type}\r\n${length}`;
      connection.send(`POST ${path} HTTP/1.1\r\n${head}\r\n\r\n${first}`);
      await connection.first;
      connection.send(`${rest}GET /health/alive HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n`);
      const said = new RegExp(`^HTTP/1.1 413 [^]*${reason}[^]*HTTP/1.1 200 `);
      assert.match(await connection.all, said, `${path} ${length}`);
    }
});

const large = 5_000_000;

/** Sends everything before it reads. @returns all that it then reads until the connection is closed */
async function sendAll(bytes: string): Promise<string> {
  const connection = await openRawConnection(world.baseUrl);
  connection.send(bytes);
  return connection.all;
}

test("whoever asks for the end of the connection, or knows no other, can send megabytes and reads why they were refused", async () => {
  const type = "Content-Type: application/json";
  const chunked = `Transfer-Encoding: chunked\r\n\r\n${large.toString(16)}\r\n${"a".repeat(large)}\r\n0\r\n\r\n`;
  const whole = `Content-Length: ${large}\r\n\r\n${"a".repeat(large)}`;
  for (const [path, status] of [
    ["POST /none", 404],
    ["POST /health/alive", 405],
    ["POST /api/v1/kyb/data-requests", 401],
    ["POST /w/session", 413],
    ["GET /health/alive", 200],
  ] as const)
    for (const head of [
      `HTTP/1.0\r\n${type}\r\n${whole}`,
      `HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${type}\r\n${whole}`,
      `HTTP/1.1\r\nHost: x\r\nConnection: close\r\n${type}\r\n${chunked}`,
    ])
      assert.match(
        await sendAll(`${path} ${head}`),
        new RegExp(`^HTTP/1.1 ${status} [^]*\\}$`),
        `${path} ${head.slice(0, 70)}`,
      );
});

test("whoever sends megabytes that are no request can send all of them, and reads what is wrong", async () => {
  const noise = "a".repeat(large);
  const broken = "POST /w/session HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked";
  for (const [bytes, status] of [
    [`GRAB / HTTP/1.1\r\n${noise}`, 400],
    [`GET / HTTP/1.1\r\nHost: x\r\nCookie: ${noise}\r\n\r\n`, 431],
    [`${broken}\r\n\r\n${noise}`, 415],
    [`${broken}\r\nContent-Type: application/json\r\n\r\n${noise}`, 400],
  ] as const)
    assert.match(await sendAll(bytes), new RegExp(`^HTTP/1.1 ${status} [^]*\\}$`));
});

test("a sender that does not come to an end is cut off after a minute", async (t) => {
  const { mock } = t.mock.method(globalThis, "setTimeout");
  const { baseUrl } = await openServer(t);
  const { hostname, port } = new URL(baseUrl);
  for (const bytes of [
    `POST /none HTTP/1.0\r\nContent-Length: ${large}\r\n\r\n`,
    "GRAB / HTTP/1.1\r\n",
  ]) {
    mock.resetCalls();
    const sender = connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    sender.on("error", () => undefined).write(bytes);
    await once(sender.resume(), "end");
    for (let at = 0; at < 5; at += 1) {
      sender.write("a");
      await setImmediate();
    }
    assert.equal(sender.closed, false);
    const limit = mock.calls.findLast(({ arguments: [, ms] }) => ms === 60_000);
    assert.ok(limit);
    limit.arguments[0]();
    while (!sender.closed) {
      sender.write("a");
      await setImmediate();
    }
  }
});

test("a body of 64 KiB is read, and one byte more is too large", async () => {
  for (const [bytes, status] of [
    [64 * 1024, 400],
    [64 * 1024 + 1, 413],
  ] as const) {
    const body = "a".repeat(bytes);
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const answer = await fetch(`${world.baseUrl}/oauth2/token`, { method: "POST", headers, body });
    assert.equal(answer.status, status);
    await answer.body?.cancel();
  }
});

test("a request whose caller did not wait for its answer stands in log and metrics", async (t) => {
  const { baseUrl, lines, metrics, asked } = await openServer(t);
  const connection = await openRawConnection(baseUrl);
  connection.send("GET /wait HTTP/1.1\r\nHost: localhost\r\n\r\n");
  await asked;
  connection.cut();
  while (lines.length === 0) await setImmediate();
  const [{ route, status }] = lines.map((line) => JSON.parse(line));
  assert.deepEqual([route, status], ["/wait", 499]);
  assert.match(await metrics.registry.metrics(), /_count\{route="\/wait"[^}]*status="499"\} 1/);
});

test("an expectation that nobody knows is ignored", async () => {
  const connection = await openRawConnection(world.baseUrl);
  const head = ["Host: localhost", "Expect: a-miracle", "Connection: close"].join("\r\n");
  connection.send(`GET /health/alive HTTP/1.1\r\n${head}\r\n\r\n`);
  assert.match(await connection.all, /^HTTP\/1\.1 200 /);
});

test("a query that cannot be read is told so", async () => {
  const many = "x=1&".repeat(201);
  for (const path of ["/health/alive?x=%00", "/health/alive?%00=x", `/health/alive?${many}`]) {
    const response = await fetch(`${world.baseUrl}${path}`);
    const { error } = (await response.json()) as { error: { reason: string } };
    assert.deepEqual([response.status, error.reason], [400, "malformed_request"], path);
  }
});

test("a body with a member whose name no text may be is told so, however deep it lies", async () => {
  for (const name of ["\\u0000", "\\ud800", "__proto__"])
    for (const body of [`{"${name}":1}`, `{"more":[{"${name}":1}]}`]) {
      const headers = { "content-type": "application/json" };
      const url = `${world.baseUrl}/w/session`;
      const response = await fetch(url, { method: "POST", headers, body });
      const { error } = (await response.json()) as { error: { reason: string } };
      assert.deepEqual([response.status, error.reason], [400, "malformed_request"], body);
    }
});

test("no cache may keep an answer unless it says so, a wallet's session least of all", async () => {
  const session = await openWalletSession(world.baseUrl, newIdentity());
  const paths = ["/w/logins", "/w/orders", "/health/alive", "/nowhere"];
  for (const path of paths) {
    const { headers } = await fetch(`${world.baseUrl}${path}`, { headers: session });
    assert.equal(headers.get("cache-control"), "no-store", path);
  }
  const opened = await fetch(`${world.baseUrl}/w/session/challenge`, { method: "POST" });
  assert.equal(opened.headers.get("cache-control"), "no-store");
  const keys = await fetch(`${world.baseUrl}/.well-known/jwks.json`);
  assert.match(keys.headers.get("cache-control") ?? "", /^public/);
});

test("outside dev every answer demands https of browsers, errors too, and in dev none does", async () => {
  const path = "/nowhere";
  const ours = await fetch(`${world.baseUrl}${path}`);
  assert.equal(ours.headers.get("strict-transport-security"), null);
  const config = { ...world.ctx.config, profile: "production" as const };
  await using served = createHttp({ ...world.ctx, config });
  for (const url of [path, "/%zz"]) {
    const { headers } = await served.inject({ url, headers: { host: "id.example.com" } });
    assert.equal(headers["strict-transport-security"], "max-age=31536000", url);
  }
});

test("a path that cannot be decoded is told so, with the header lines of every answer", async () => {
  const response = await fetch(`${world.baseUrl}/api/v1/kyb/status/%zz`);
  const { error } = (await response.json()) as { error: { message: string; requestId: string } };
  const message = "malformed_request: the request cannot be read";
  assert.deepEqual([response.status, error.message], [400, message]);
  assert.equal(response.headers.get("x-request-id"), error.requestId);
  assert.equal(response.headers.get("x-content-type-options"), "nosniff");
});
