// A process that drains answers what reaches it on connections that are open, and keeps nobody waiting.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { keepPauses } from "../../service/src/platform/test-pauses.ts";
import { listBlocked } from "../lock-waits.ts";
import { openPage } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { type ServerProcess, openWorld, type World } from "../world.ts";
import { until } from "../patience.ts";

/** Waits until the process accepts no more connections. */
async function untilRefusing(baseUrl: string): Promise<void> {
  for (;;) {
    const socket = connect(Number(new URL(baseUrl).port), "localhost");
    const isTaken = await once(socket, "connect").then(
      () => true,
      () => false,
    );
    socket.destroy();
    if (!isTaken) return;
  }
}

test("requests that were on their way when it began to drain are answered as ever, and their connections closed", async () => {
  const world = await openWorld({ DRAIN_SECONDS: "300" });
  const page = await openPage(world.baseUrl, world.client);
  const login = `/oauth2/login/${page.loginId}`;
  const cookies = [...page.jar.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const lines = `Host: localhost\r\nCookie: ${cookies}\r\n`;
  const form = "Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 0\r\n";
  const requests: readonly [begin: string, rest: string, answer: RegExp][] = [
    ["GET /health/alive HTTP/1.1\r\n", lines, /^HTTP\/1.1 200 OK[^]*"status":"ok"/],
    [
      "POST /oauth2/token HTTP/1.1\r\n",
      lines + form,
      /^HTTP\/1.1 400 [^]*"error":"invalid_request"/,
    ],
    [
      "POST /w/session HTTP/1.1\r\nContent-Type: application/json\r\n",
      `${lines}Content-Length: 70000\r\n`,
      /^HTTP\/1.1 413 [^]*"reason":"body_too_large"/,
    ],
    ["GET /api/v1/key HTTP/1.1\r\n", lines, /^HTTP\/1.1 401 [^]*"reason":"apikey_missing"/],
    [`GET ${login}/events HTTP/1.1\r\n`, lines, /^HTTP\/1.1 200 OK[^]*data: {"kind":"waiting"/],
    [`GET ${login}/status?after=waiting HTTP/1.1\r\n`, lines, /^HTTP\/1.1 200 OK[^]*"waiting"/],
  ];
  const connections = await Promise.all(
    requests.map(async ([begin]) => {
      const connection = await openRawConnection(world.baseUrl);
      // In one piece: once the whole request is answered, the beginning of the next has been read too.
      connection.send(`GET /health/ready HTTP/1.1\r\nHost: localhost\r\n\r\n${begin}`);
      await connection.first;
      return connection;
    }),
  );
  const closed = world[Symbol.asyncDispose]();
  await untilRefusing(world.baseUrl);
  for (const [at, [, rest]] of requests.entries()) connections[at]?.send(`${rest}\r\n`);
  for (const [at, [begin, , answer]] of requests.entries()) {
    const [, second = ""] = ((await connections[at]?.all) ?? "").split(/(?<=.)(?=HTTP)/s);
    assert.match(second, answer, begin);
    assert.match(second, /\r\nconnection: close\r\n/i, begin);
  }
  await closed;
});

test("an answer that is under way when it begins to drain says that its connection ends, and a connection that was never used keeps nobody", async () => {
  const world = await openWorld({ DRAIN_SECONDS: "300" });
  const page = await openPage(world.baseUrl, world.client);
  const status = `/oauth2/login/${page.loginId}/status`;
  const cookie = [...page.jar.cookies].map(([name, value]) => `${name}=${value}`).join("; ");
  const waiting = await openRawConnection(world.baseUrl);
  waiting.send(
    `GET ${status}?after=waiting HTTP/1.1\r\nHost: localhost\r\nCookie: ${cookie}\r\n\r\n`,
  );
  const unused = await openRawConnection(world.baseUrl);
  // Once these are answered, the long poll has surely begun.
  for (let at = 0; at < 5; at += 1)
    await (await fetch(`${world.baseUrl}${status}`, { headers: { cookie } })).text();
  const startedMs = performance.now();
  await world[Symbol.asyncDispose]();
  assert.match(await waiting.all, /^HTTP\/1.1 200 OK[^]*\r\nconnection: close\r\n/i);
  assert.equal(await unused.all, "");
  assert.ok(performance.now() - startedMs < 100_000, "long before the drain is over");
});

test("a connection on which nothing is under way when it begins to drain is good for one more request", async (t) => {
  const world = await openWorld();
  const kept = await openRawConnection(world.baseUrl);
  const request = "GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n";
  kept.send(request);
  await kept.first;
  const pauses = keepPauses(t);
  const closed = world[Symbol.asyncDispose]();
  while ((await fetch(`${world.baseUrl}/health/ready`)).status === 200);
  kept.send(request);
  const [, second = ""] = (await kept.all).split(/(?<=.)(?=HTTP)/s);
  assert.match(second, /^HTTP\/1.1 200 OK[^]*\r\nconnection: close\r\n/i);
  pauses.end();
  await closed;
});

test("idle connections, used or not, stay open as long as new ones are accepted", async (t) => {
  t.mock.timers.enable({ apis: ["setInterval"] });
  const world = await openWorld();
  const [kept, unused] = [
    await openRawConnection(world.baseUrl),
    await openRawConnection(world.baseUrl),
  ];
  const request = "GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n";
  kept.send(request);
  await kept.first;
  const pauses = keepPauses(t);
  const closed = world[Symbol.asyncDispose]();
  while ((await fetch(`${world.baseUrl}/health/ready`)).status === 200);
  t.mock.timers.tick(1000);
  t.mock.timers.reset();
  kept.send(request);
  unused.send(request);
  assert.match(await kept.all, /HTTP\/1.1 200 OK[^]*\r\nconnection: close\r\n/i);
  assert.match(await unused.all, /^HTTP\/1.1 200 OK[^]*\r\nconnection: close\r\n/i);
  pauses.end();
  await closed;
});

const stuckName = "drained";
const halfRequest = `POST /oauth2/token HTTP/1.1\r
Host: localhost\r
Content-Type: application/x-www-form-urlencoded\r
Content-Length: 100\r
\r
grant`;

async function startNamed(world: World, drainSeconds: number): Promise<ServerProcess> {
  return world.startProcess({ PGAPPNAME: stuckName, DRAIN_SECONDS: String(drainSeconds) });
}

/** Runs `work` while the table of orders is locked and a job of the process under test waits for it. */
async function whileStuck(world: World, work: () => Promise<void>): Promise<void> {
  await world.ctx.db.transaction(async (tx) => {
    await tx.query(sql`set local idle_in_transaction_session_timeout = 0`);
    await tx.query(sql`lock table kyc_order`);
    await until("a job waits for the orders", async () => {
      const blocked = await listBlocked(world.ctx.db);
      return blocked.some(({ application }) => application === stuckName) ? true : null;
    });
    await work();
  });
}

test("a process that is asked to stop soon takes no new connection, whatever is under way", async () => {
  await using world = await openWorld();
  const stuck = await startNamed(world, 60);
  const connection = await openRawConnection(stuck.url);
  connection.send(`GET /health/alive HTTP/1.1\r\nHost: localhost\r\n\r\n${halfRequest}`);
  await connection.first;
  let ending: Promise<number | null> | undefined;
  await whileStuck(world, async () => {
    const startedMs = performance.now();
    ending = stuck.stop();
    await untilRefusing(stuck.url);
    assert.ok(performance.now() - startedMs < 30_000, "at once, not when its jobs have ended");
    connection.send("x".repeat(95));
    const answers = await connection.all;
    assert.match(answers, /HTTP\/1.1 400 [^]*invalid_request/, "what was under way is answered");
    assert.ok(performance.now() - startedMs < 45_000, "and its connection closed");
  });
  assert.equal(await ending, 0);
});

test("a process that is asked to stop ends after its drain, whatever hangs", async () => {
  await using world = await openWorld();
  const stuck = await startNamed(world, 1);
  const connection = await openRawConnection(stuck.url);
  connection.send(halfRequest);
  const answer = connection.all.catch(() => "");
  await whileStuck(world, async () => {
    const startedMs = performance.now();
    assert.equal(await stuck.stop(), 0);
    assert.ok(performance.now() - startedMs < 15_000, "after 1 s, and 4 s to close");
  });
  assert.equal(await answer, "", "a request that never came is cut off");
});
