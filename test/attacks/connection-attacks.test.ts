// What a hostile caller would do to connections, and to answers meant for other origins.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createHttp } from "../../service/src/platform/http.ts";
import { logIn } from "../login-flow.ts";
import { openRawConnection } from "../raw-connection.ts";
import { newIdentity } from "../raw-wallet.ts";
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
    ["GRAB / HTTP/1.1\r\nHost: localhost\r\n\r\n", 400, "malformed_request"],
    [
      "POST /oauth2/token HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
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
    assert.ok(head.includes(`\r\nX-Request-Id: ${error.requestId}`), head);
  }
});

test("a path that cannot be decoded is told so, with its request id in the header too", async () => {
  const response = await fetch(`${world.baseUrl}/api/v2/kyc/%zz`);
  const { error } = (await response.json()) as { error: { message: string; requestId: string } };
  assert.deepEqual([response.status, error.message], [400, "the request cannot be read"]);
  assert.equal(response.headers.get("x-request-id"), error.requestId);
});
