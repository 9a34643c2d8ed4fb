import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { startAnvil } from "../../../../test/anvil.ts";
import { openFakeBroker, privateKeys } from "../../test/fake-broker.ts";
import { blocksToFinal, openFakeChain, slotsPerEpoch } from "../../test/fake-chain.ts";
import { now, serveFields } from "../../test/fake-fields.ts";
import { addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import { memoryStorage, openIdentity, type Wallet, type WalletParts } from "../index.ts";
import type { StorageKey } from "../storage.ts";
import { putRecord, readRecords } from "../records.ts";

await using broker = await openFakeBroker();
await using anvil = await startAnvil({ slotsPerEpoch });
const chain = openFakeChain(broker.url, anvil);
const { lies, fund, balanceOf } = chain;
serveFields(broker);
const alice = addressOf("alice");
const bob = addressOf("bob");
const ether = 10n ** 18n;

const aliceWallet = async (changed: Partial<WalletParts> = {}) =>
  walletOf("alice", [broker.url], { fetch: chain.fetch, ...changed });

const link = (more = ""): string => `svc:tx/${alice}?val=1500000000000000000&to=${bob}${more}`;

await fund(alice, 1000n * ether);

await test("a link pays once whatever a node that lags behind says of its transaction", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  for (const declines of [false, true]) {
    const storage = memoryStorage();
    const before = await balanceOf(bob);
    const wallet = await aliceWallet({ storage });
    chain.isDown = true;
    await refuses(wallet.approve(link()), "unreachable");
    chain.isDown = false;
    lies.set("eth_getTransactionByHash", null);
    if (declines) await wallet.decline(link());
    await refuses(wallet.approve(link()), "chain_refused", /approve the same link again later/);
    lies.clear();
    await wallet.approve(link());
    assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
  }
});

await test("a link pays once where a node lags behind the one that tells what is final", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  chain.isDown = true;
  await refuses((await aliceWallet({ storage })).approve(link()), "unreachable");
  chain.isDown = false;
  await anvil.mine(blocksToFinal);
  const isSignedAt = async (at: number, changed: Partial<WalletParts> = {}): Promise<boolean> => {
    const wallet = await aliceWallet({ storage, now: async () => at, ...changed });
    return /signed before/.test((await wallet.describe(link())).words.join("\n"));
  };
  // One of two nodes behind the address lags, and it answers everything that is not asked in a batch.
  const apart: typeof fetch = async (url, init) => {
    if (typeof init?.body === "string" && init.body.startsWith("[")) lies.clear();
    else lies.set("eth_getTransactionReceipt", null).set("eth_getTransactionByHash", null);
    return chain.fetch(url, init);
  };
  assert.deepEqual(
    [await isSignedAt(now, { fetch: apart }), await isSignedAt(now + 31, { fetch: apart })],
    [true, true],
  );
  lies.set("eth_getTransactionReceipt", null).set("eth_getTransactionByHash", null);
  assert.equal(await isSignedAt(now + 100), true);
  lies.clear();
  assert.equal(await isSignedAt(now + 110), true);
  lies.set("eth_getTransactionReceipt", null).set("eth_getTransactionByHash", null);
  assert.equal(await isSignedAt(now + 140), true);
  lies.clear();
  await (await aliceWallet({ storage })).approve(link());
  assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
});

await test("two approvals at once over one storage pay once", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  const wallets = await Promise.all([1, 2].map(async () => aliceWallet({ storage })));
  await Promise.all(wallets.map(async (wallet) => wallet.approve(link())));
  assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
});

await test("an approval that is killed at any step pays once when it is approved again", async () => {
  const shown = link("&type=qr");
  let isDone = false;
  for (let operations = 1; !isDone; operations += 1) {
    const inner = memoryStorage();
    const before = await balanceOf(bob);
    const first = await aliceWallet(chain.killedAfter(operations, inner));
    isDone = await first.approve(shown).then(
      () => true,
      () => false,
    );
    if (!isDone) await (await aliceWallet({ storage: inner })).approve(shown);
    assert.equal(await balanceOf(bob), before + (3n * ether) / 2n, `after ${operations}`);
    assert.equal((await (await aliceWallet({ storage: inner })).history()).length, 1);
  }
});

const carol = `0x${"cc".repeat(20)}`;
const transferOf = (valueWei: number, more = ""): string =>
  `svc:tx?val=${valueWei}&to=${carol}${more}`;

await test("links that were approved at once for one number are each paid once in the end", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  const values = [101, 102, 103];
  const first = await Promise.allSettled(
    values.map(async (each) => wallet.approve(transferOf(each))),
  );
  for (const [at, { status }] of first.entries())
    if (status === "rejected") {
      await anvil.mine(blocksToFinal);
      const rest = transferOf(values[at] ?? 0);
      await wallet.describe(rest);
      await (await aliceWallet({ storage, now: async () => now + 30 })).approve(rest);
    }
  assert.equal((await balanceOf(carol)) - before, 306n);
  assert.deepEqual(await storage.list("transaction"), []);
});

await test("what the chain refused stays signed, and the same is sent again", async () => {
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  const cheap = transferOf(7, "&ep=1&type=qr");
  await refuses(wallet.approve(cheap), "chain_refused", /approve the same link again later/);
  const [key] = await storage.list("transaction");
  assert.ok(key !== undefined);
  const kept = await storage.get(key);
  await refuses(wallet.approve(cheap), "chain_refused", /approve the same link again later/);
  assert.equal(await storage.get(key), kept);
});

await test("a link whose transaction lost its number to another is signed anew once that is final", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  chain.swallows = true;
  await refuses(wallet.approve(transferOf(8)), "unreachable");
  chain.swallows = false;
  await (await aliceWallet()).approve(transferOf(9));
  await refuses(wallet.approve(transferOf(8)), "chain_refused", /again later/);
  await anvil.mine(blocksToFinal);
  await refuses(wallet.approve(transferOf(8)), "chain_refused", /again later/);
  const soon = await aliceWallet({ storage, now: async () => now + 29 });
  await refuses(soon.approve(transferOf(8)), "chain_refused", /again later/);
  const later = await aliceWallet({ storage, now: async () => now + 30 });
  assert.doesNotMatch((await later.describe(transferOf(8))).words.join("\n"), /signed before/);
  await later.approve(transferOf(8));
  assert.equal((await balanceOf(carol)) - before, 17n);
});

await test("a transaction whose number is still free is sent again as it is, however long that takes", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  chain.swallows = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(8)), "unreachable");
  chain.swallows = false;
  await anvil.mine(blocksToFinal);
  for (const at of [now, now + 31, now + 62]) {
    const wallet = await aliceWallet({ storage, now: async () => at });
    assert.match((await wallet.describe(transferOf(8))).words.join("\n"), /signed before/);
  }
  await (await aliceWallet({ storage })).approve(transferOf(8));
  assert.equal((await balanceOf(carol)) - before, 8n);
});

await test("a record of the first look that cannot be read is written again, and blocks nothing", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  chain.swallows = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(18)), "unreachable");
  chain.swallows = false;
  await (await aliceWallet()).approve(transferOf(19));
  await anvil.mine(blocksToFinal);
  await (await aliceWallet({ storage })).describe(transferOf(18));
  const note = (await storage.list("transaction")).find((key) => key.endsWith("_doubt"));
  assert.ok(note !== undefined);
  await storage.put(note, "damaged");
  const second = await aliceWallet({ storage, now: async () => now + 30 });
  assert.match((await second.describe(transferOf(18))).words.join("\n"), /signed before/);
  await (await aliceWallet({ storage, now: async () => now + 60 })).approve(transferOf(18));
  assert.equal((await balanceOf(carol)) - before, 37n);
});

await test("two that find at once that a transaction is lost for good sign one other", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  chain.swallows = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(21)), "unreachable");
  chain.swallows = false;
  await (await aliceWallet()).approve(transferOf(22));
  await anvil.mine(blocksToFinal);
  await (await aliceWallet({ storage })).describe(transferOf(21));
  const { slow, looked, release } = chain.slowAt((body) => body.startsWith("["));
  const later = { storage, now: async () => now + 30 };
  const second = (await aliceWallet({ ...later, fetch: slow })).approve(transferOf(21));
  await looked;
  chain.isDown = true;
  await refuses((await aliceWallet(later)).approve(transferOf(21)), "unreachable");
  chain.isDown = false;
  release();
  assert.equal((await second).kind, "shown");
  assert.equal((await balanceOf(carol)) - before, 43n);
  assert.deepEqual(await storage.list("transaction"), []);
});

await test("an approval that another one has overtaken to the end pays nothing more", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const { slow, looked, release } = chain.slowAt((body) => body.includes("eth_chainId"));
  const second = (await aliceWallet({ storage, fetch: slow })).approve(transferOf(25));
  await looked;
  await (await aliceWallet({ storage })).approve(transferOf(25));
  release();
  await refuses(second, "invalid_request", /paid meanwhile by 0x.*look at the link again/);
  assert.equal((await balanceOf(carol)) - before, 25n);
  assert.deepEqual(await storage.list("transaction"), []);
});

await test("two approvals that a third has overtaken to the end pay nothing more, also where one finds what the other signed", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const [kept, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const waiting = {
    ...storage,
    async add(key: StorageKey, text: string) {
      const stored = await storage.add(key, text);
      if (!key.startsWith("transaction/")) return stored;
      kept.resolve();
      await goOn.promise;
      return stored;
    },
  };
  const [one, two] = [1, 2].map(() => chain.slowAt((body) => body.includes("eth_chainId")));
  assert.ok(one !== undefined && two !== undefined);
  const first = (await aliceWallet({ storage: waiting, fetch: one.slow })).approve(transferOf(26));
  const second = (await aliceWallet({ storage, fetch: two.slow })).approve(transferOf(26));
  await Promise.all([one.looked, two.looked]);
  await (await aliceWallet({ storage })).approve(transferOf(26));
  one.release();
  await kept.promise;
  // At another price it signs another transaction.
  lies.set("eth_gasPrice", "0xb2d05e00");
  two.release();
  await refuses(second, "invalid_request", /paid meanwhile by 0x/);
  lies.clear();
  goOn.resolve();
  await refuses(first, "invalid_request", /paid meanwhile by 0x/);
  assert.equal((await balanceOf(carol)) - before, 26n);
  assert.deepEqual(await storage.list("transaction"), []);
});

const later = async (): Promise<number> => now + 30;

await test("a link that was signed anew is forgotten at once or not at all, whenever the wallet is killed", async () => {
  let isDone = false;
  for (let operations = 1; !isDone; operations += 1) {
    const inner = memoryStorage();
    const before = await balanceOf(carol);
    chain.swallows = true;
    await refuses((await aliceWallet({ storage: inner })).approve(transferOf(23)), "unreachable");
    chain.swallows = false;
    await (await aliceWallet()).approve(transferOf(24));
    await anvil.mine(blocksToFinal);
    await (await aliceWallet({ storage: inner })).describe(transferOf(23));
    const first = await aliceWallet({ ...chain.killedAfter(operations, inner), now: later });
    isDone = await first.approve(transferOf(23)).then(
      () => true,
      () => false,
    );
    if (!isDone) await (await aliceWallet({ storage: inner, now: later })).approve(transferOf(23));
    assert.equal((await balanceOf(carol)) - before, 47n, `after ${operations}`);
  }
});

await test("what was signed for one chain is held against no other chain", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  chain.isDown = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(31)), "unreachable");
  chain.isDown = false;
  lies.set("eth_chainId", "0x1").set("eth_getTransactionCount", "0xffff");
  lies.set("eth_getTransactionReceipt", null).set("eth_getTransactionByHash", null);
  const other = "https://other.example";
  const elsewhere: typeof fetch = async (url, init) =>
    chain.fetch(url === `${other}/w/chain` ? `${broker.url}/w/chain` : url, init);
  for (const at of [now, now + 30]) {
    const changed = { storage, fetch: elsewhere, now: async () => at };
    const wallet = await walletOf("alice", [other], changed);
    const another = /signed for chain 31999, but https:\/\/other.example has chain 1/;
    await refuses(wallet.describe(transferOf(31)), "chain_refused", another);
  }
  lies.clear();
  await (await aliceWallet({ storage })).approve(transferOf(31));
  assert.equal((await balanceOf(carol)) - before, 31n);
});

await test("a link that was signed on a device that is lost is shown so on the one that has its history", async () => {
  const storage = memoryStorage();
  const lost = await aliceWallet({ storage });
  const words = async (wallet: Wallet): Promise<string> =>
    (await wallet.describe(transferOf(33))).words.join("\n");
  chain.isDown = true;
  await refuses(lost.approve(transferOf(33)), "unreachable");
  chain.isDown = false;
  assert.doesNotMatch(await words(lost), /pays again/);
  const { txHash } = (await lost.history())[0] ?? {};
  for (const key of await storage.list("transaction")) await storage.remove(key);
  const shown = await words(lost);
  assert.match(shown, /Careful: this link was signed before, at .* unless that failed.*pays again/);
  assert.ok(txHash !== undefined && shown.includes(txHash));
});

await test("a transaction that an earlier version kept is in the history once, however often it is sent", async () => {
  const storage = memoryStorage();
  chain.swallows = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(35)), "unreachable");
  const secret = { kind: "private-key", privateKey: privateKeys.alice } as const;
  const records = { identity: await openIdentity(secret), storage, random: randomBytes };
  const [{ key, value } = assert.fail()] = await readRecords(records, "transaction");
  await putRecord(records, key, { ...(value as object), signedAt: undefined });
  for (const entry of await storage.list("history")) await storage.remove(entry);
  const second = await aliceWallet({ storage, now: async () => now + 60 });
  await refuses(second.approve(transferOf(35)), "unreachable");
  chain.swallows = false;
  const third = await aliceWallet({ storage, now: async () => now + 120 });
  await third.approve(transferOf(35));
  const history = (await third.history()).map(({ at, outcome }) => [at, outcome]);
  assert.deepEqual(history, [[now + 60, "approved"]]);
});

await test("a chain that does not say what became of a transaction is sent it again", async () => {
  const refusal = { code: -32_000, message: "transaction indexing is in progress" };
  for (const answer of [
    { jsonrpc: "2.0", id: null, error: { code: -32_600, message: "batches are not served" } },
    [{ id: 0, result: null }],
    [
      { id: 0, result: "0xffff" },
      { id: 1, error: refusal },
      { id: 2, result: null },
    ],
    [
      { id: 0, result: "0xffff" },
      { id: 1, result: null },
      { id: 2, error: refusal },
    ],
  ]) {
    const storage = memoryStorage();
    const before = await balanceOf(carol);
    chain.swallows = true;
    await refuses((await aliceWallet({ storage })).approve(transferOf(37)), "unreachable");
    chain.swallows = false;
    const odd: typeof fetch = async (url, init) =>
      typeof init?.body === "string" && init.body.startsWith("[")
        ? Response.json(answer)
        : chain.fetch(url, init);
    for (const at of [now, now + 30]) {
      const wallet = await aliceWallet({ storage, fetch: odd, now: async () => at });
      assert.match((await wallet.describe(transferOf(37))).words.join("\n"), /signed before/);
    }
    await (await aliceWallet({ storage, fetch: odd })).approve(transferOf(37));
    assert.equal((await balanceOf(carol)) - before, 37n);
  }
});

await test("a second payment of a link that broke off is shown as a second one", async () => {
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  await wallet.approve(transferOf(39));
  const [{ txHash = "" } = assert.fail()] = await wallet.history();
  chain.swallows = true;
  const again = wallet.approve(transferOf(39), { accept: new Set(["paid-before"]) });
  await refuses(again, "unreachable");
  chain.swallows = false;
  const words = (await wallet.describe(transferOf(39))).words.join("\n");
  assert.match(words, /signed before: approving sends the same transaction/);
  assert.ok(words.includes(`by ${txHash}; approving it pays again.`), words);
});

await test("a link whose transaction failed is signed anew once that is final", async () => {
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  const reverting = `0x${"bb".repeat(20)}`;
  await anvil.rpc("anvil_setCode", [reverting, "0x5f5ffd"]);
  const failing = `svc:tx?val=0&to=${reverting}&el=100000`;
  const isSignedAt = async (at: number): Promise<boolean> => {
    const { words } = await (await aliceWallet({ storage, now: async () => at })).describe(failing);
    return /signed before/.test(words.join("\n"));
  };
  await refuses(wallet.approve(failing), "chain_refused", /failed on chain/);
  assert.deepEqual([await isSignedAt(now), await isSignedAt(now + 30)], [true, true]);
  await anvil.mine(blocksToFinal);
  assert.deepEqual([await isSignedAt(now + 31), await isSignedAt(now + 61)], [true, false]);
});

await test("a kept transaction that cannot be read pays nothing and is named, and the link is free once it is removed", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  chain.swallows = true;
  await refuses(wallet.approve(transferOf(13)), "unreachable");
  chain.swallows = false;
  const [key] = await storage.list("transaction");
  assert.ok(key);
  await storage.put(key, "");
  await refuses(wallet.approve(transferOf(13)), "damaged_state", new RegExp(`cannot read ${key}`));
  assert.equal(await balanceOf(carol), before);
  await storage.remove(key);
  await wallet.approve(transferOf(13), { accept: new Set(["paid-before"]) });
  assert.equal((await balanceOf(carol)) - before, 13n);
});

await test("declining a link forgets nothing that was signed for it", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  await anvil.setAutomine(false);
  chain.isDown = true;
  await refuses(wallet.approve(transferOf(11)), "unreachable");
  chain.isDown = false;
  await wallet.decline(transferOf(11));
  await anvil.setAutomine(true);
  await anvil.mine();
  assert.equal((await wallet.approve(transferOf(11))).kind, "shown");
  assert.equal((await balanceOf(carol)) - before, 11n);
});
