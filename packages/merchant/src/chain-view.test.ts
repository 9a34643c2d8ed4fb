import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";

import type { Address, Hex32 } from "@svc/protocol";
import { pad, toEventSelector } from "viem";

import { openChainView } from "./chain-view.ts";

const hash: Hex32 = `0x${"aa".repeat(32)}`;
const blockHash: Hex32 = `0x${"bb".repeat(32)}`;
const other: Hex32 = `0x${"cc".repeat(32)}`;
const root: Hex32 = `0x${"dd".repeat(32)}`;
const contract: Address = `0x${"1".repeat(40)}`;
const operator: Address = `0x${"2".repeat(40)}`;
const topics = [toEventSelector("Initiated(address,bytes32)"), pad(operator, { size: 32 }), root];

type Members = Record<string, unknown>;
const placed = { blockNumber: "0x5", blockHash, transactionHash: hash, transactionIndex: "0x0" };
const log = { ...placed, address: contract, topics, data: "0x", logIndex: "0x0", removed: false };
const receipt = { ...placed, status: "0x1", logs: [log] };
const block = { number: "0x5", hash: blockHash, timestamp: "0x64", transactions: [] };

/** A node that reports this receipt and block of one transaction; the newest block is the ninth. */
function viewOf(told: { receipt?: Members; block?: Members }, confirmations?: number) {
  const answers: Members = {
    eth_getTransactionReceipt: { ...receipt, ...told.receipt },
    eth_getBlockByNumber: { ...block, ...told.block },
    eth_blockNumber: "0x9",
  };
  const request = async ({ method }: { method: string }) => answers[method];
  return openChainView({
    client: { request },
    ...(confirmations === undefined ? {} : { confirmations }),
  });
}

const event = { name: "Initiated", contract, by: operator, root } as const;
const find = async (...told: Parameters<typeof viewOf>) => viewOf(...told).findEvent(hash, event);

test("an event stands where a successful transaction of the chain left it", async () => {
  assert.deepEqual(await find({}), { blockNumber: 5, blockTime: 100 });
  const among = [{ ...log, address: operator }, log];
  assert.ok((await find({ receipt: { logs: among } })) !== null);
});

test("the event of another transaction, or of one that failed, stands nowhere", async () => {
  assert.equal(await find({ receipt: { status: "0x0" } }), null);
  assert.equal(await find({ receipt: { transactionHash: other } }), null);
  assert.equal(await find({ receipt: { logs: [] } }), null);
});

test("an event that the chain took back, or whose block it left behind, stands nowhere", async () => {
  assert.equal(await find({ receipt: { logs: [{ ...log, removed: true }] } }), null);
  assert.equal(await find({ block: { hash: other } }), null);
});

test("another contract, operator, root or kind of event is not the one that is looked for", async () => {
  const [kind, by] = topics;
  const confirmed = toEventSelector("Confirmed(address,bytes32)");
  for (const changed of [
    { address: operator },
    { topics: [kind, by, other] },
    { topics: [kind, pad(contract, { size: 32 }), root] },
    { topics: [confirmed, by, root] },
    { topics: [kind, by] },
    { topics: [...topics, other] },
    { topics: [] },
  ])
    assert.equal(await find({ receipt: { logs: [{ ...log, ...changed }] } }), null);
});

test("its own block is the first that makes a transaction count", async () => {
  assert.ok((await find({}, 5)) !== null);
  assert.equal(await find({}, 6), null);
});

/** A node that answers every call of a contract with this, and keeps what was asked. */
function viewAnswering(answer: string) {
  const asked: Members[] = [];
  const request = async ({ params }: { params?: unknown }) => {
    asked.push((params as Members[])[0] ?? {});
    return answer;
  };
  return { asked, view: openChainView({ client: { request } }) };
}

const words = (count: number): string => `0x${"0".repeat(63)}7`.padEnd(2 + count * 64, "0");
const status = async (answer: string) =>
  viewAnswering(answer).view.findStatus(contract, { issuer: operator, root });

test("a registry answers with three words: anything else is another contract", async () => {
  assert.deepEqual(await status(words(3)), { attestedAt: 7, revokedAt: 0, distrustedFrom: 0 });
  for (const answer of ["0x", words(1), words(2), words(4)])
    assert.equal(await status(answer), null, String(answer.length));
});

test("a contract that is asked whether it signed may burn a million gas, deployed or not", async () => {
  const digest = new Uint8Array(32);
  for (const signature of ["0x1234", `0x${"6492".repeat(16)}`] as const) {
    const { asked, view } = viewAnswering("0x");
    assert.equal(await view.isContractSignature({ address: contract, digest, signature }), false);
    assert.deepEqual(
      asked.map(({ gas }) => Number(gas)),
      [1_000_000],
    );
  }
});

test("a node that redirects is followed nowhere, and no answer", async (t) => {
  const paths: string[] = [];
  const server = createServer((request, response) => {
    paths.push(request.url ?? "");
    if (request.url === "/key") response.writeHead(307, { location: "/elsewhere" }).end();
    else response.end(JSON.stringify({ jsonrpc: "2.0", id: 0, result: "0x1" }));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const view = openChainView({ rpcUrl: `http://127.0.0.1:${port}/key` });
  await assert.rejects(view.chainId(), { code: "chain_unreachable" });
  assert.deepEqual(new Set(paths), new Set(["/key"]));
});

test("a node whose answer never ends is left when its time is over", async (t) => {
  const left = Promise.withResolvers<void>();
  const late = AbortSignal.timeout(60_000);
  // Aborted as soon as the node has begun to answer; a real time-out might end before the call has begun.
  const limit = new AbortController();
  const { mock } = t.mock.method(AbortSignal, "timeout", () => limit.signal);
  const server = createServer((_, response) => {
    response.on("close", left.resolve).write("{", () => limit.abort());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => {
    server.closeAllConnections();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  const view = openChainView({ rpcUrl: `http://127.0.0.1:${port}`, timeoutMs: 50 });
  await assert.rejects(view.chainId(), { code: "chain_unreachable" });
  assert.deepEqual(
    mock.calls.map((call) => call.arguments),
    [[50]],
  );
  await Promise.race([left.promise, once(late, "abort")]);
  assert.ok(!late.aborted, "the connection is still open");
});

test("an address of no node is a mistake of the caller, not a node that does not answer", () => {
  for (const rpcUrl of [undefined as never, "", "localhost:8545", "wss://node.example", "node"])
    assert.throws(() => openChainView({ rpcUrl }), {
      code: "configuration_invalid",
      reason: "rpcUrl",
    });
});
