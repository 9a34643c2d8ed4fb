import assert from "node:assert/strict";
import { test } from "node:test";
import { type Chain, NodeAway, RpcError } from "../../chain/index.ts";
import { readLogs } from "./event-logs.ts";

type Node = Pick<Chain, "node" | "isEmbedded" | "confirmations">;

const tooMany = new RpcError(-32_005, "too many blocks");

const range = { first: 7, last: 4_500 };

/** A chain with one event in each block, whose node serves this many blocks at once. */
function openNode(
  blocksMax: number,
  {
    fault = tooMany,
    head = range.last + 1,
    confirmations = 1,
  }: { fault?: Error; head?: number; confirmations?: number } = {},
): { chain: Node; asked: () => number } {
  let calls = 0;
  const request = async (method: string, params?: readonly unknown[]): Promise<unknown> => {
    if (method === "eth_blockNumber") return `0x${head.toString(16)}`;
    calls += 1;
    const [{ fromBlock, toBlock }] = params as [{ fromBlock: string; toBlock: string }];
    const count = Number(toBlock) - Number(fromBlock) + 1;
    if (count > blocksMax) throw fault;
    const blocks = Array.from({ length: count }, (_, at) => ({ block: Number(fromBlock) + at }));
    return blocks.filter(({ block }) => block <= head);
  };
  const chain = { node: { request }, isEmbedded: false, confirmations } as unknown as Node;
  return { chain, asked: () => calls };
}

async function blocksOf(chain: Node): Promise<unknown[]> {
  const parts = await Array.fromAsync(readLogs(chain, { topics: [] }, range));
  assert.equal(parts.at(-1)?.until, range.last);
  return parts.flatMap(({ logs }) => logs.map(({ block }) => block));
}

const everyBlock = Array.from({ length: 4_494 }, (_, at) => at + range.first);

for (const [blocksMax, calls] of [
  [10_000, 3],
  [1_000, 6],
  [100, 77],
  [1, 4_505],
] as const) {
  test(`every event is read once from a node that serves ${blocksMax} blocks at once, in ${calls} calls`, async () => {
    const { chain, asked } = openNode(blocksMax);
    assert.deepEqual(await blocksOf(chain), everyBlock);
    assert.equal(asked(), calls);
  });
}

test("a node that refuses a single block is not asked for ever", async () => {
  const { chain, asked } = openNode(0);
  await assert.rejects(blocksOf(chain), RpcError);
  assert.equal(asked(), 12);
});

for (const [blocksMax, calls] of [
  [10_000, 3],
  [1_000, 37],
  [1, 4_497],
] as const) {
  test(`every event is read once from a node that breaks over ${blocksMax} blocks, in ${calls} calls`, async () => {
    const { chain, asked } = openNode(blocksMax, {
      fault: new NodeAway("the node did not answer"),
    });
    assert.deepEqual(await blocksOf(chain), everyBlock);
    assert.equal(asked(), calls);
  });
}

test("a node that is away is asked four times at most, one that answers no list once", async () => {
  const away = openNode(0, { fault: new NodeAway("the node did not answer") });
  await assert.rejects(blocksOf(away.chain), NodeAway);
  assert.equal(away.asked(), 4);
  let asked = 0;
  const request = async (method: string): Promise<unknown> => {
    if (method === "eth_blockNumber") return "0x2000";
    asked += 1;
    return null;
  };
  const odd = { node: { request }, isEmbedded: false, confirmations: 1 } as unknown as Node;
  await assert.rejects(blocksOf(odd), /no list of events/);
  assert.equal(asked, 1);
});

for (const head of [6, 7, 2_006, 2_007, 4_499]) {
  test(`with a node that has blocks up to ${head}, no later one counts as read`, async () => {
    const { chain } = openNode(10_000, { head });
    const parts = await Array.fromAsync(readLogs(chain, { topics: [] }, range));
    const expected = everyBlock.filter((block) => block <= head);
    const blocks = parts.flatMap(({ logs }) => logs.map(({ block }) => block));
    assert.deepEqual([blocks, parts.at(-1)?.until], [expected, expected.at(-1)]);
  });
}

test("with a lagging node, no block counts as read that is not final there", async () => {
  const { chain } = openNode(10_000, { head: 2_006, confirmations: 12 });
  const parts = await Array.fromAsync(readLogs(chain, { topics: [] }, range));
  assert.deepEqual(
    parts.map(({ until }) => until),
    [1_995],
  );
});
