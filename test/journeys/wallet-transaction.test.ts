// A wallet pays over the service's relay to its embedded chain.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { fundAccount } from "../../service/src/chain/index.ts";
import { until } from "../patience.ts";
import { openWalletAt } from "../wallet-at.ts";
import { openWorld } from "../world.ts";

const directory = await mkdtemp(join(tmpdir(), "svc-wallet-tx-"));
await using cleanup = new AsyncDisposableStack();
cleanup.defer(async () => rm(directory, { recursive: true, force: true }));
await using world = await openWorld({ CHAIN: "on", DATA_DIR: directory });
const { ctx } = world.service;
const receiver = `0x${"0b".repeat(20)}` as const;
let isCut = false;
const { wallet, address } = await openWalletAt(world, {
  async fetch(url, init) {
    const answer = await fetch(url, init);
    const isSending = typeof init?.body === "string" && init.body.includes("eth_sendRaw");
    if (isCut && isSending) throw new TypeError("the connection broke");
    return answer;
  },
});

const balanceOf = async (account: string): Promise<bigint> =>
  BigInt(String(await ctx.chain.node.request("eth_getBalance", [account, "latest"])));

/** Waits for coin that was handed out; it arrives with the next block. */
async function funded(): Promise<void> {
  await until("the account is funded", async () => ((await balanceOf(address)) > 0n ? true : null));
}

await test("an account without coin cannot pay, and nothing is signed", async () => {
  await assert.rejects(wallet.approve(`svc:tx?val=1&to=${receiver}`), /holds 0 coins/);
});

await test("a payment is mined before its hash is shown", async () => {
  await fundAccount(ctx, { address, amountWei: 10n ** 18n });
  await funded();
  const outcome = await wallet.approve(`svc:tx/${address}?val=250000000000000000&to=${receiver}`);
  assert.ok(outcome.kind === "shown");
  const { txHash } = JSON.parse(outcome.payload) as { txHash: string };
  assert.equal(await balanceOf(receiver), 25n * 10n ** 16n);
  assert.equal(await balanceOf(address), 75n * 10n ** 16n);
  assert.equal((await wallet.history())[0]?.txHash, txHash);
});

await test("a payment whose connection broke is finished by the same link, and is paid once", async () => {
  const link = `svc:tx/${address}?val=100000000000000000&to=${receiver}`;
  const before = await balanceOf(receiver);
  const outcomes = async () => (await wallet.history()).map(({ outcome }) => outcome);
  isCut = true;
  await assert.rejects(wallet.approve(link), /cannot be reached/);
  isCut = false;
  assert.deepEqual((await outcomes()).toSorted(), ["approved", "sent"]);
  await wallet.approve(link);
  assert.equal((await balanceOf(receiver)) - before, 10n ** 17n);
  assert.deepEqual(await outcomes(), ["approved", "approved"]);
});
