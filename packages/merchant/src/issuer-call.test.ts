import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import { callIssuer } from "./issuer-call.ts";

test("a broker that fails with a long page, however often it is called, costs no connection each time", async (t) => {
  const page = "x".repeat(200_000);
  const server = createServer((_, response) => response.writeHead(503).end(page));
  let connections = 0;
  server.on("connection", () => {
    connections += 1;
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
  for (let call = 0; call < 10; call++)
    await assert.rejects(callIssuer(fetch, { url }), { code: "issuer_unreachable" });
  assert.ok(connections < 5, `${connections} connections`);
});

test("a call says that it takes JSON, and is left after ten seconds", async (t) => {
  const limit = new AbortController();
  const { mock } = t.mock.method(AbortSignal, "timeout", () => limit.signal);
  const inits: (RequestInit | undefined)[] = [];
  const silent: typeof fetch = async (_, init) => {
    inits.push(init);
    limit.abort();
    init?.signal?.throwIfAborted();
    return Response.json({});
  };
  const called = callIssuer(silent, { url: "https://id.example.com/" });
  await assert.rejects(called, { code: "issuer_unreachable" });
  assert.deepEqual(mock.calls[0]?.arguments, [10_000]);
  assert.equal(new Headers(inits[0]?.headers).get("accept"), "application/json");
});
