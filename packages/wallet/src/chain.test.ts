import assert from "node:assert/strict";
import { test } from "node:test";
import { refuses } from "../test/test-wallet.ts";
import { openChain } from "./chain.ts";

await test("nobody waits longer than two minutes for a transaction, however slowly the chain answers", async (t) => {
  let elapsedMs = 0;
  let asked = 0;
  t.mock.method(performance, "now", () => elapsedMs);
  const slow: typeof fetch = async () => {
    asked += 1;
    elapsedMs += 14_000;
    return Response.json({ jsonrpc: "2.0", id: 1, result: null });
  };
  const chain = openChain({ fetch: slow }, "http://localhost:1");
  await refuses(chain.waitFor(`0x${"1".repeat(64)}`), "chain_refused", /go on waiting/);
  assert.equal(asked, 9);
});

await test("a transaction is looked for at once, soon again, and then twice a second", async (t) => {
  const pausesMs: number[] = [];
  const hurry = (done: () => void, ms: number): void => {
    pausesMs.push(ms);
    queueMicrotask(done);
  };
  t.mock.method(globalThis, "setTimeout", hurry as typeof setTimeout);
  const transactionHash = `0x${"1".repeat(64)}` as const;
  const receipt = { transactionHash, blockNumber: "0x5", status: "0x1" };
  const late: typeof fetch = async () =>
    Response.json({ jsonrpc: "2.0", id: 1, result: pausesMs.length < 7 ? null : receipt });
  const chain = openChain({ fetch: late }, "http://localhost:1");
  const { hash, isReverted } = await chain.waitFor(transactionHash);
  assert.deepEqual([hash, isReverted], [transactionHash, false]);
  assert.deepEqual(pausesMs, [25, 50, 100, 200, 400, 500, 500]);
});

await test("no chain has the id zero, which a wallet would keep as the broker's own", async () => {
  const answer = { jsonrpc: "2.0", id: 1, result: "0x0" };
  const chain = openChain({ fetch: async () => Response.json(answer) }, "http://localhost:1");
  await refuses(chain.readChainId(), "chain_refused", /eth_chainId with zero/);
});

async function estimateOf(result: string): Promise<bigint> {
  const answer = { jsonrpc: "2.0", id: 1, result };
  const chain = openChain({ fetch: async () => Response.json(answer) }, "http://localhost:1");
  return chain.estimateGas({});
}

await test("an estimate below what every transaction takes is none", async () => {
  for (const small of ["0x0", "0x1", "0x5207"])
    await refuses(estimateOf(small), "chain_refused", /less gas than any call takes/);
  assert.equal(await estimateOf("0x5208"), 21_000n);
});
