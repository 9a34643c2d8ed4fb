import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Pool } from "undici";
import { KeptConnections } from "./kept-connections.ts";
import {
  answering,
  failed,
  fakeInternet,
  get,
  open,
  openReceiver,
  publicAddress,
  withoutHead,
} from "./test-receivers.ts";

test("a kept connection is used again, and only where the name leads to the same addresses", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => void response.end("ok"));
  const both = [publicAddress, "93.184.215.16"];
  const resolve = answering(both, both.toReversed(), ["93.184.215.15"], ["10.0.0.1"]);
  const connect = fakeInternet();
  const outbound = open(t, "production", { resolve, connect });
  const send = async () => outbound.send(get(receiver.url, { keepAlive: true }));
  for (let each = 0; each < 3; each += 1) {
    assert.equal((await send()).kind, "answered");
    // The connection is free a turn after its answer was read.
    await nextTurn();
  }
  assert.equal(receiver.sockets.length, 2);
  assert.deepEqual(connect.reached, [...both, "93.184.215.15"]);
  assert.deepEqual(await send(), failed("blocked"));
  assert.equal(receiver.requests.length, 3);
});

test("a place that was not used for a minute is forgotten with its connections, and all are at the end", (t) => {
  let nowMs = 20_000;
  t.mock.method(performance, "now", () => nowMs);
  const kept = new KeptConnections();
  const ended: string[] = [];
  const use = (name: string): Pool =>
    kept.find(name, () => ({ destroy: async () => void ended.push(name) }) as unknown as Pool);
  const first = use("first");
  nowMs += 59_000;
  use("second");
  assert.equal(use("first"), first);
  nowMs += 60_000;
  assert.equal(use("first"), first);
  nowMs += 10_001;
  use("third");
  assert.deepEqual(ended, ["second"]);
  kept.close();
  assert.deepEqual(ended, ["second", "first", "third"]);
});

test("a kept connection whose peer sends 100 before each answer is used again", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => {
    response.writeContinue();
    response.end("ok");
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  for (let each = 0; each < 3; each += 1) {
    const result = await outbound.send(get(receiver.url, { keepAlive: true }));
    assert.ok(result.kind === "answered");
    assert.equal(Buffer.from(result.body).toString(), "ok");
    await nextTurn();
  }
  assert.equal(receiver.sockets.length, 1);
  assert.equal(receiver.requests.length, 3);
});

test("a kept connection that the peer closed meanwhile is replaced, once", async (t) => {
  let answers = 0;
  const receiver = await openReceiver(t, (request, response) => {
    answers += 1;
    if (answers === 2) request.socket.destroy();
    else response.end("ok");
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  const send = async () => outbound.send(get(receiver.url, { keepAlive: true }));
  assert.equal((await send()).kind, "answered");
  await nextTurn();
  assert.equal((await send()).kind, "answered");
  assert.equal(answers, 3);
});

test("what broke off after it had begun to answer, or on a new connection, is not sent twice", async (t) => {
  const receiver = await openReceiver(t, (request, response) => {
    if (request.url === "/in?whole") response.end("ok");
    else if (request.url === "/in?none") request.socket.destroy();
    else if (request.url === "/in?headers")
      request.socket.write(`HTTP/1.1 200 OK\r\nlong: ${"a".repeat(20_000)}`);
    else {
      response.writeHead(200, { "content-length": "9" });
      response.write("abc", () => request.socket.destroy());
    }
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  const send = async (query: string) =>
    outbound.send(get(`${receiver.url}?${query}`, { keepAlive: true }));
  assert.equal((await send("whole")).kind, "answered");
  await nextTurn();
  assert.deepEqual(withoutHead(await send("part")), failed("unreachable"));
  assert.deepEqual(await send("none"), failed("unreachable"));
  assert.equal((await send("whole")).kind, "answered");
  await nextTurn();
  assert.deepEqual(await send("headers"), failed("too_large"));
  assert.deepEqual(
    receiver.requests.map(({ url }) => url),
    ["/in?whole", "/in?part", "/in?none", "/in?whole", "/in?headers"],
  );
});

test("a peer that closes every connection without an answer has failed", async (t) => {
  const receiver = await openReceiver(t, (request) => void request.socket.destroy());
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  assert.deepEqual(
    await outbound.send(get(receiver.url, { keepAlive: true })),
    failed("unreachable"),
  );
  assert.equal(receiver.requests.length, 1);
});

test("requests that keep their connection have the limits of the others, and hold up no other", async (t) => {
  const receiver = await openReceiver(t, (request, response) => {
    if (request.url === "/in?hang") return;
    response.end(Buffer.alloc(request.url === "/in?large" ? 2000 : 10));
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  const send = async (query: string, timeoutMs: number) =>
    outbound.send(get(`${receiver.url}?${query}`, { keepAlive: true, timeoutMs }));
  const hanging = send("hang", 300);
  assert.deepEqual(withoutHead(await send("large", 60_000)), failed("too_large"));
  assert.equal((await send("small", 60_000)).kind, "answered");
  assert.deepEqual(withoutHead(await hanging), failed("timeout"));
  assert.equal((await send("small", 60_000)).kind, "answered");
});

test("a kept connection gives no request more of an answer than it asked for", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => {
    response.end(Buffer.alloc(2000));
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  const send = async (responseBytesMax: number) =>
    outbound.send(get(receiver.url, { keepAlive: true, responseBytesMax }));
  assert.equal((await send(2000)).kind, "answered");
  await nextTurn();
  assert.deepEqual(withoutHead(await send(1999)), failed("too_large"));
  assert.equal((await send(2000)).kind, "answered");
});

test("a kept connection is as good after many answers as after one", async (t) => {
  const receiver = await openReceiver(t, (_request, response) => {
    // A chunk for each byte, as long as it may be.
    for (let each = 0; each < 1000; each += 1) response.write("x");
    response.end();
  });
  const outbound = open(t, "production", {
    resolve: answering([publicAddress]),
    connect: fakeInternet(),
  });
  for (let each = 0; each < 12; each += 1) {
    const result = await outbound.send(
      get(receiver.url, { keepAlive: true, responseBytesMax: 1000 }),
    );
    assert.equal(result.kind === "answered" && result.body.length, 1000);
    await nextTurn();
  }
  assert.equal(receiver.sockets.length, 1);
});
