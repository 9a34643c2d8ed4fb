import assert from "node:assert/strict";
import { test } from "node:test";
import { isInFinalBlock } from "./chain-view.ts";
import { NodeAway, RpcError } from "./node.ts";

const given = {
  signer: `0x${"11".repeat(20)}`,
  nonce: 7,
  hashes: [`0x${"ab".repeat(32)}`],
} as const;

/** A chain of 20 blocks, in the ninth of which the nonce was used. */
function chainOf(answers: { count?: (used: string) => unknown; transactions?: unknown }) {
  const { count = (used: string) => used, transactions = given.hashes } = answers;
  const request = async (method: string, params: readonly unknown[] = []): Promise<unknown> => {
    if (method === "eth_blockNumber") return "0x14";
    if (method === "eth_getTransactionCount") return count(Number(params[1]) >= 9 ? "0x8" : "0x7");
    assert.deepEqual([method, params[0]], ["eth_getBlockByNumber", "0x9"]);
    return { transactions };
  };
  const node = {
    request,
    readChainId: async () => 1,
    submit: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
  return { node, isEmbedded: false, confirmations: 3 };
}

const pruned = (): never => {
  throw new RpcError(-32_000, "missing trie node");
};

const away = (): never => {
  throw new NodeAway("the chain's node did not answer");
};

test("a transaction is found in the block in which its nonce was used, in any spelling of its hash", async () => {
  assert.equal(await isInFinalBlock(chainOf({}), given), true);
  const capitals = [`0x${"AB".repeat(32)}`];
  assert.equal(await isInFinalBlock(chainOf({ transactions: capitals }), given), true);
  const others = [`0x${"cd".repeat(32)}`];
  assert.equal(await isInFinalBlock(chainOf({ transactions: others }), given), false);
});

test("a node that cannot return that block does not delay other transactions: the answer is no", async () => {
  assert.equal(await isInFinalBlock(chainOf({ transactions: [{ type: "0x7e" }] }), given), false);
  assert.equal(await isInFinalBlock(chainOf({ transactions: null }), given), false);
  assert.equal(await isInFinalBlock(chainOf({ count: () => null }), given), false);
  assert.equal(await isInFinalBlock(chainOf({ count: pruned }), given), false);
});

test("a node that is away is asked again", async () => {
  await assert.rejects(isInFinalBlock(chainOf({ count: away }), given), NodeAway);
});
