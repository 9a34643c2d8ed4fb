// Which requests from outside reach the node. A fake one, since a real node would itself refuse some of them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ChainContext } from "./context.ts";
import { answerCall, answerCalls } from "./relay.ts";

const asked: unknown[] = [];
const relayNode = {
  request: async (...call: unknown[]): Promise<unknown> => {
    if (call[0] === "eth_blockNumber") return "0xffff";
    asked.push(call);
    return "0x1";
  },
};
const ctx = {
  chain: { relayNode, isEmbedded: false },
  config: { profile: "live" },
} as unknown as ChainContext;

/** The requests that reached the node, or the error by which the call was refused. */
async function reach(method: string, params: readonly unknown[]): Promise<unknown> {
  asked.length = 0;
  const answer = await answerCall(ctx, { jsonrpc: "2.0", id: 1, method, params }, "somebody");
  return "error" in answer ? answer.error : asked;
}

const refused = async (method: string, params: readonly unknown[]): Promise<void> => {
  const { code } = (await reach(method, params)) as { code?: number };
  assert.deepEqual([code, asked], [-32_602, []], JSON.stringify([method, params]));
};

test("a method gets as many parameters as it has, and no more", async () => {
  const rows: readonly [string, number][] = [
    ["eth_chainId", 0],
    ["eth_getBalance", 2],
    ["eth_getStorageAt", 3],
    ["eth_getTransactionByHash", 1],
    ["eth_getBlockByNumber", 2],
  ];
  const params = ["0x1", "0x2", "0x3", "0x4"];
  for (const [method, count] of rows)
    assert.deepEqual(await reach(method, params), [[method, params.slice(0, count)]]);
});

test("a library that asks whose node it is gets an answer, but not from the node", async () => {
  const call = { jsonrpc: "2.0", id: 1, method: "web3_clientVersion", params: [] };
  asked.length = 0;
  assert.deepEqual(await answerCall(ctx, call, "somebody"), {
    jsonrpc: "2.0",
    id: 1,
    result: "svc",
  });
  assert.deepEqual(asked, []);
});

test("a bound in another spelling is refused, and null as a block hash does not lift the bound on blocks", async () => {
  for (const other of ["FromBlock", "ToBlock", "toblock", "BlockHash"])
    await refused("eth_getLogs", [{ fromBlock: "0x0", toBlock: "0x0", [other]: "0x1" }]);
  for (const other of ["Gas", "GAS"]) await refused("eth_call", [{ [other]: "0x1" }]);
  await refused("eth_getLogs", [{ fromBlock: "0x0", toBlock: "0x2710", blockHash: null }]);
});

test("a call has 10 million gas, a search 10,000 blocks and a fee history 100, at most", async () => {
  const gasOf = async (gas?: string): Promise<unknown> => reach("eth_call", [{ gas }]);
  const most = [["eth_call", [{ gas: "0x989680" }, "latest"]]];
  assert.deepEqual(await gasOf("0x989681"), most);
  assert.deepEqual(await gasOf(), most);
  assert.deepEqual(await gasOf("0x98967f"), [["eth_call", [{ gas: "0x98967f" }, "latest"]]]);
  const logs = { fromBlock: "0x1", toBlock: "0x2710" };
  assert.deepEqual(await reach("eth_getLogs", [logs]), [["eth_getLogs", [logs]]]);
  await refused("eth_getLogs", [{ ...logs, fromBlock: "0x0" }]);
  await refused("eth_getLogs", [{ ...logs, fromBlock: "0x2711" }]);
  const history = ["0x64", "latest", [1]];
  assert.deepEqual(await reach("eth_feeHistory", history), [["eth_feeHistory", history]]);
  await refused("eth_feeHistory", ["0x65", "latest", []]);
});

test("transactions of one request are parsed one by one, in order, and other requests have their turn in between", async () => {
  const taken: [raw: unknown, turn: number][] = [];
  let [turn, isOver] = [0, false];
  const count = (): void => {
    turn += 1;
    if (!isOver) setImmediate(count);
  };
  count();
  const submit = async ([raw]: readonly unknown[]): Promise<void> => void taken.push([raw, turn]);
  const sending = {
    chain: { relayNode: { submit }, isEmbedded: true },
    config: { profile: "dev" },
  } as unknown as ChainContext;
  const raws = ["0x01", "0x02", "0x03"];
  const calls = raws.map((raw, id) => ({ id, method: "eth_sendRawTransaction", params: [raw] }));
  await answerCalls(sending, calls, "somebody");
  isOver = true;
  assert.deepEqual(
    taken.map(([raw]) => raw),
    raws,
  );
  assert.equal(new Set(taken.map(([, at]) => at)).size, raws.length);
});
