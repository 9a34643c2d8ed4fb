// A process that drains answers what reaches it on connections that are open, and keeps nobody waiting.
import assert from "node:assert/strict";
import { connect } from "node:net";
import { once } from "node:events";
import { test } from "node:test";
import { openPage } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { openWorld } from "../world.ts";

/** Until the process takes no connection any more. */
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
  const world = await openWorld();
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
      /^HTTP\/1.1 401 [^]*"error":"invalid_client"/,
    ],
    ["GET /api/v1/key HTTP/1.1\r\n", lines, /^HTTP\/1.1 401 [^]*"reason":"apikey_missing"/],
    [`GET ${login}/events HTTP/1.1\r\n`, lines, /^HTTP\/1.1 200 OK[^]*data: {"kind":"waiting"/],
    [`GET ${login}/status?after=waiting HTTP/1.1\r\n`, lines, /^HTTP\/1.1 200 OK[^]*"waiting"/],
  ];
  const connections = await Promise.all(
    requests.map(async ([begin]) => {
      const connection = await openRawConnection(world.baseUrl);
      // In one piece: when the whole request is answered, the begin of the next was read too.
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
