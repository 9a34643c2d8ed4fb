import assert from "node:assert/strict";
import { test } from "node:test";
import { businessWallet } from "@svc/contracts";
import { type Abi, decodeFunctionData, encodeFunctionResult, type Hex } from "viem";
import { type ChainContext, NodeAway, RpcError } from "../../chain/index.ts";
import { loadWalletCalls } from "./wallet-calls.ts";

const wallet = `0x${"ab".repeat(20)}` as const;
const hash = `0x${"cd".repeat(32)}` as const;

/** The time of a block, on a chain with four blocks a second. */
const timeOf = (block: number): number => Math.floor(block / 4);

/**
 * A chain of 100 blocks, where a block is final with the eleventh after it, that recorded the hash in this one.
 *
 * @param heads the head in each answer, in turn; the last one is repeated
 */
function chainOf(recordedIn: number, heads: readonly number[] = [100]): ChainContext {
  let told = 0;
  const request = async (method: string, [, block]: readonly unknown[] = []) => {
    if (method === "eth_blockNumber") {
      const head = heads[Math.min(told, heads.length - 1)] ?? 0;
      told += 1;
      return Promise.resolve(`0x${head.toString(16)}`);
    }
    const isRecorded = (block === "latest" ? 100 : Number(block)) >= recordedIn;
    return Promise.resolve(`0x${(isRecorded ? 1_700_000_000 : 0).toString(16).padStart(64, "0")}`);
  };
  const node = { request };
  return { chain: { node, confirmations: 12, isEmbedded: false } } as unknown as ChainContext;
}

await test("a signature of the business is valid once its block is final", async () => {
  const calls = await loadWalletCalls();
  assert.equal(await calls.isRecorded(chainOf(89), wallet, hash), true);
  assert.equal(await calls.isRecorded(chainOf(90), wallet, hash), false);
  const asked = { hash, since: 89 };
  await assert.rejects(calls.findRecording(chainOf(90), wallet, asked), /not final yet/);
  assert.equal(await calls.findRecording(chainOf(101), wallet, asked), null);
});

await test("a node without the block, or with too few after it, does not prove that nothing was signed", async () => {
  const calls = await loadWalletCalls();
  for (const since of [90, 101]) {
    const asked = { hash, since };
    assert.equal(await calls.findRecording(chainOf(101), wallet, asked), "behind");
  }
});

await test("a node that does not have the wallet yet counts as away", async () => {
  const calls = await loadWalletCalls();
  const { chain } = chainOf(101);
  const request = async (method: string): Promise<unknown> =>
    method === "eth_call" ? "0x" : chain.node.request(method);
  const empty = { chain: { ...chain, node: { request } } } as unknown as ChainContext;
  await assert.rejects(calls.read(empty, wallet), NodeAway);
});

await test("a recording at a lagging node does not count before it is final there", async () => {
  const calls = await loadWalletCalls();
  assert.equal(await calls.isRecorded(chainOf(89, [100, 100]), wallet, hash), true);
  assert.equal(await calls.isRecorded(chainOf(89, [100, 99]), wallet, hash), false);
});

await test("a recording is found in few calls, even if the node has pruned its oldest blocks", async () => {
  const calls = await loadWalletCalls();
  const [recordedIn, head, oldest] = [24_000_000 - 7_000, 24_000_000, 24_000_000 - 10_000];
  const recorded = `0x${"ef".repeat(32)}` as const;
  let asked = 0;
  const request = async (method: string, [given]: readonly unknown[] = []): Promise<unknown> => {
    if (method === "eth_blockNumber") return `0x${head.toString(16)}`;
    if (method === "eth_call") return `0x${timeOf(recordedIn).toString(16).padStart(64, "0")}`;
    if (method === "eth_getBlockByNumber") {
      asked += 1;
      if (Number(given) < oldest) throw new RpcError(4444, "pruned history unavailable");
      const timestamp = `0x${timeOf(Number(given)).toString(16)}`;
      return { number: given, hash: `0x${"00".repeat(32)}`, timestamp };
    }
    const { fromBlock, toBlock } = given as Record<string, string>;
    assert.deepEqual([Number(fromBlock), Number(toBlock)], [recordedIn, recordedIn + 3]);
    return [{ transactionHash: recorded }];
  };
  const chain = { node: { request }, confirmations: 12, isEmbedded: false };
  const found = await calls.findRecording({ chain } as unknown as ChainContext, wallet, {
    hash,
    since: head,
  });
  assert.deepEqual(found, { transactionHash: recorded, at: timeOf(recordedIn) });
  assert.ok(asked < 60, `${asked} blocks were asked for`);
});

await test("a wallet is read as of one block from a chain that is final at once, however fast its blocks come", async () => {
  const calls = await loadWalletCalls();
  let head = 100;
  const blocks = new Set<unknown>();
  const request = async (method: string, [call, block]: readonly unknown[] = []) => {
    if (method === "eth_blockNumber") return `0x${(head += 1).toString(16)}`;
    blocks.add(block);
    const abi: Abi = businessWallet.abi;
    const { functionName } = decodeFunctionData({ abi, data: (call as { data: Hex }).data });
    const [zero, charter] = [`0x${"00".repeat(20)}`, "0x0102"] as const;
    const results: Record<string, unknown> = {
      charter,
      epoch: 1n,
      nonce: 2n,
      removal: [zero, 0, 0],
      successor: zero,
    };
    return encodeFunctionResult({ abi, functionName, result: results[functionName] });
  };
  const chain = { node: { request }, confirmations: 1, isEmbedded: false };
  const state = await calls.read({ chain } as unknown as ChainContext, wallet);
  assert.deepEqual([state.block, state.epoch, state.nonce], [101, 1, 2]);
  assert.deepEqual(blocks, new Set(["0x65"]));
});
