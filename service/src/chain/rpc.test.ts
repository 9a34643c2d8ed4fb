import assert from "node:assert/strict";
import { once } from "node:events";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type ServerResponse,
} from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { patienceMs } from "../../../test/patience.ts";
import { AnswerTooLong, NodeAway, RpcError } from "./node.ts";
import { openRemoteNode } from "./remote-node.ts";
import { openRpc } from "./rpc.ts";

async function serve(listener: RequestListener): Promise<AsyncDisposable & { url: string }> {
  const server = createServer(listener).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://user:secret@127.0.0.1:${port}/v1?key=canary`,
    async [Symbol.asyncDispose]() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  };
}

const options = { timeoutMs: patienceMs, batchMax: 10, name: "the node" };

test("calls of one turn travel together and each gets its own answer", async () => {
  const bodies: unknown[] = [];
  await using server = await serve((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    assert.equal(request.headers.authorization, `Basic ${btoa("user:secret")}`);
    assert.equal(request.url, "/v1?key=canary");
    const calls = JSON.parse(body) as { id: number; method: string }[];
    bodies.push(calls);
    const answers = calls.map(({ id, method }) =>
      method === "fail"
        ? { jsonrpc: "2.0", id, error: { code: 3, message: "reverted", data: "0x01" } }
        : { jsonrpc: "2.0", id, result: method },
    );
    response.end(JSON.stringify(answers.toReversed()));
  }
  const rpc = openRpc(server.url, options);
  const [one, two, three] = await Promise.allSettled([
    rpc.request("one", []),
    rpc.request("fail", []),
    rpc.request("three", []),
  ]);
  assert.deepEqual(
    [one, three].map((each) => each.status === "fulfilled" && each.value),
    ["one", "three"],
  );
  assert.ok(two.status === "rejected" && two.reason instanceof RpcError);
  assert.deepEqual([two.reason.code, two.reason.message, two.reason.data], [3, "reverted", "0x01"]);
  assert.equal(bodies.length, 1);
  await rpc.close();
});

const silences: [what: string, listener: RequestListener][] = [
  ["hangs", () => undefined],
  ["hangs after its headers", (_request, response) => void response.write("[")],
  ["sends a page", (_request, response) => void response.writeHead(502).end("<html>")],
  ["sends another shape", (_request, response) => void response.end('{"a":1}')],
  ["sends null", (_request, response) => void response.end("null")],
  ["closes", (request) => void request.socket.destroy()],
  [
    "limits calls by its status",
    (_request, response) =>
      void response.writeHead(429).end('{"jsonrpc":"2.0","id":0,"error":{"code":-32005}}'),
  ],
  ["limits calls by its code", refusing({ id: 0, code: 429, message: "slow down" })],
  ["limits calls in words", refusing({ id: 0, code: -32_007, message: "50/second request limit" })],
  ["limits calls without an id", refusing({ code: -32_005, message: "Too many requests" })],
];

function refusing({
  id,
  ...error
}: {
  id?: number;
  code: number;
  message: string;
}): RequestListener {
  return (_request, response) => void response.end(JSON.stringify({ jsonrpc: "2.0", id, error }));
}

for (const [what, listener] of silences) {
  test(`a node that ${what} is away, and its address is not told`, async () => {
    await using server = await serve(listener);
    const rpc = openRpc(server.url, { ...options, timeoutMs: 100 });
    await assert.rejects(rpc.request("one", []), (error: unknown) => {
      assert.ok(error instanceof NodeAway, String(error));
      assert.match(error.message, /^the node did not answer/);
      assert.doesNotMatch(JSON.stringify([error.message, String(error.cause)]), /canary|secret/);
      return true;
    });
    await rpc.close();
  });
}

test("a call that cannot be serialized is a fault of the service, not an unreachable node", async () => {
  const rpc = openRpc("http://127.0.0.1:1", options);
  await assert.rejects(rpc.request("one", [1n]), TypeError);
  await rpc.close();
});

test("a server that quotes the key or the password it is called with is repeated without them", async () => {
  const said: string[] = [];
  await using server = await serve(
    (_request, response) => void response.end(said.shift() ?? assert.fail()),
  );
  const place = new URL(server.url);
  place.password = "a%2Fcanary-password";
  place.pathname = "/v3/canary-in-path";
  place.search = "?chain=1&key=canary-in-query";
  const rpc = openRpc(place.href, options);
  const ask = async (answer: unknown): Promise<unknown> => {
    said.push(typeof answer === "string" ? answer : JSON.stringify(answer));
    return rpc.request("one", []).catch((error: unknown) => error);
  };
  const words = "no key canary-in-path or canary-in-query for a/canary-password on v3 chain 1";
  const hidden = "no key [hidden] or [hidden] for [hidden] on v3 chain 1";
  const error = { code: -32_600, message: words, data: { see: [words], rate: 1 } };
  const refused = await ask({ jsonrpc: "2.0", id: 0, error });
  assert.deepEqual(refused, new RpcError(-32_600, hidden, { see: [hidden], rate: 1 }));
  const limited = await ask({ error: { code: 429, message: words } });
  assert.ok(limited instanceof NodeAway && limited.message.endsWith(hidden), String(limited));
  const unread = await ask("canary-in-path is no key");
  assert.ok(unread instanceof NodeAway);
  assert.equal(unread.message, "the node did not answer: its answer (status 200) is no JSON");
  await rpc.close();
});

const refusals: [status: number, body: string, said: string][] = [
  [401, "<html>no key</html>", "the node did not answer: its answer (status 401) is no JSON"],
  [403, '{"error":"no key"}', "the node did not answer as JSON-RPC (status 403)"],
  [400, "no batches", "the node did not answer: its answer (status 400) is no JSON"],
];

for (const [status, body, said] of refusals) {
  test(`the error of a node that refuses everything contains its status ${status}`, async () => {
    await using server = await serve(
      (_request, response) => void response.writeHead(status).end(body),
    );
    const rpc = openRpc(server.url, options);
    const asked = await Promise.allSettled([rpc.request("one", []), rpc.request("two", [])]);
    for (const each of asked) {
      assert.ok(each.status === "rejected" && each.reason instanceof NodeAway);
      assert.equal(each.reason.message, said);
    }
    await rpc.close();
  });
}

const answers: [what: string, answer: object, expected: unknown][] = [
  ["its id as text", { jsonrpc: "2.0", id: "0", result: "0x7" }, "0x7"],
  ["no error beside the result", { jsonrpc: "2.0", id: 0, error: null, result: "0x7" }, "0x7"],
  [
    "an error without an id",
    { error: { code: -32_600, message: "batches are not supported" } },
    new RpcError(-32_600, "batches are not supported"),
  ],
  [
    "an error for a batch as a whole",
    { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batch too large" } },
    new RpcError(-32_600, "batch too large"),
  ],
  [
    "a code as text",
    { jsonrpc: "2.0", id: 0, error: { code: "-32000", message: "busy" } },
    new RpcError(-32_000, "busy"),
  ],
  [
    "a word for a code",
    { jsonrpc: "2.0", id: 0, error: { code: "BUSY", message: "busy" } },
    new RpcError(-32_603, "busy"),
  ],
  [
    "an error without a code",
    { jsonrpc: "2.0", id: 0, error: { message: "busy" } },
    new RpcError(-32_603, "busy"),
  ],
];

for (const [what, answer, expected] of answers) {
  test(`a node that answers with ${what} is understood`, async () => {
    await using server = await serve(
      (_request, response) => void response.end(JSON.stringify(answer)),
    );
    const rpc = openRpc(server.url, options);
    const given = await rpc.request("one", []).catch((error: unknown) => error);
    assert.deepEqual(given, expected);
    await rpc.close();
  });
}

test("a node whose answer is too long is distinguished from one that does not answer", async () => {
  const page = "0".repeat(1024 * 1024);
  await using server = await serve((_request, response) => {
    const write = (): void => void response.write(page, (error) => (error ? undefined : write()));
    response.write('{"result":"');
    write();
  });
  const rpc = openRpc(server.url, options);
  await assert.rejects(rpc.request("one", []), AnswerTooLong);
  await rpc.close();
});

test("bytes that the node has already are handed over without complaint, others are not", async () => {
  let message = "";
  await using server = await serve((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const body = await text(request);
    const { id, method } = JSON.parse(body) as { id: number; method: string };
    response.end(
      JSON.stringify(
        method === "eth_chainId"
          ? { jsonrpc: "2.0", id, result: "0x7" }
          : { jsonrpc: "2.0", id, error: { code: -32_000, message } },
      ),
    );
  }
  await using node = openRemoteNode(server.url);
  assert.equal(await node.readChainId(), 7);
  for (const known of ["already known", "ALREADY_EXISTS: already known", "nonce too low"]) {
    message = known;
    await node.submit(["0x01"]);
  }
  message = "insufficient funds for gas * price + value";
  await assert.rejects(node.submit(["0x01"]), RpcError);
});

test("a node that tells no chain id, or none that a chain may have, is away", async () => {
  let result: unknown = null;
  await using server = await serve((request, response) => {
    void answer(request, response);
  });
  async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { id } = JSON.parse(await text(request)) as { id: number };
    response.end(JSON.stringify({ jsonrpc: "2.0", id, result }));
  }
  await using node = openRemoteNode(server.url);
  for (const told of [null, "", "0x", "0x0", -1, "seven", {}, "1.5", "0x20000000000000"]) {
    result = told;
    await assert.rejects(node.readChainId(), NodeAway, JSON.stringify(told));
  }
  result = "0x1";
  assert.equal(await node.readChainId(), 1);
});
