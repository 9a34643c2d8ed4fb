import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../../../../test/anvil.ts";
import { openFakeBroker, problem } from "../../test/fake-broker.ts";
import { now, serveFields } from "../../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import { memoryStorage, type WalletParts, type WalletStorage } from "../index.ts";

await using broker = await openFakeBroker();
await using anvil = await startAnvil();
const hashesAt = "/hashes";
serveFields(broker);
broker.more = ({ path }) => {
  if (path === hashesAt) return { status: 200, body: { taken: true } };
  return path === `${hashesAt}/open` ? problem(404, "route_not_found") : null;
};
const alice = addressOf("alice");
const bob = addressOf("bob");
const ether = 10n ** 18n;

/** More than lie between the newest block and the final one. */
const blocksToFinal = 80;
/** Answers in place of the chain's own, by method. */
const lies = new Map<string, string | null>();
let isDown = false;
/** What is sent over a broken relay does not reach the chain either. */
let swallows = false;
let sendsSeen = 0;
interface RpcCall {
  readonly id: number;
  readonly method: string;
  readonly params: readonly unknown[];
}
async function answerWithLies({ id, method, params }: RpcCall): Promise<object> {
  const result = lies.has(method) ? lies.get(method) : await anvil.rpc(method, params);
  return { jsonrpc: "2.0", id, result };
}
/** The broker's relay leads to the chain of this test; a broken one swallows what is sent after passing it on. */
const chainFetch: typeof fetch = async (url, init) => {
  if (url !== `${broker.url}/w/chain`) return fetch(url, init);
  const body = typeof init?.body === "string" ? init.body : "{}";
  const asked = JSON.parse(body) as RpcCall | readonly RpcCall[];
  const calls = "method" in asked ? [asked] : asked;
  if (calls.some(({ method }) => lies.has(method))) {
    const answers = await Promise.all(calls.map(answerWithLies));
    return Response.json("method" in asked ? answers[0] : answers);
  }
  const isSend = body.includes("eth_sendRawTransaction");
  if (swallows && isSend) throw new TypeError("the connection broke");
  const answer = await fetch(anvil.url, init);
  if (isSend) sendsSeen += 1;
  if (isDown && isSend) throw new TypeError("the connection broke");
  return answer;
};

const fund = async (account: string, wei: bigint): Promise<void> =>
  void (await anvil.rpc("anvil_setBalance", [account, `0x${wei.toString(16)}`]));
const balanceOf = async (account: string): Promise<bigint> =>
  BigInt(await anvil.rpc<string>("eth_getBalance", [account, "latest"]));

const aliceWallet = async (changed: Partial<WalletParts> = {}) =>
  walletOf("alice", [broker.url], { fetch: chainFetch, ...changed });

const conn = encodeURIComponent(`${broker.url}${hashesAt}`);
const link = (more = ""): string => `svc:tx/${alice}?val=1500000000000000000&to=${bob}${more}`;

await fund(alice, 100n * ether);
await fund(bob, 0n);

await test("a transaction is described by amount, receiver and the most it costs", async () => {
  const { words, data, concerns } = await (await aliceWallet()).describe(link());
  assert.match(words[0] ?? "", /asks you to send 1\.5 coins to 0x[0-9a-fA-F]{40} as/);
  assert.equal(words[0]?.toLowerCase().includes(bob), true);
  assert.match(words[1] ?? "", /^On chain 31999; the fee is at most 0\.\d+ coins\.$/);
  assert.deepEqual([data["nonce"], data["energyLimit"], concerns], [0, "21000", []]);
});

await test("an approved transaction is on the chain before its hash goes to conn", async () => {
  broker.reset();
  const wallet = await aliceWallet();
  const outcome = await wallet.approve(link(`&conn=${conn}`), accepting("unknown-requester"));
  assert.ok(outcome.kind === "delivered" && outcome.status === 200);
  const { txHash, svcID } = outcome.result as { txHash: string; svcID: string };
  const receipt = await anvil.rpc<{ status: string; from: string; type: string }>(
    "eth_getTransactionReceipt",
    [txHash],
  );
  assert.deepEqual(
    [receipt.status, receipt.from, receipt.type, svcID],
    ["0x1", alice, "0x2", alice],
  );
  assert.equal(await balanceOf(bob), (3n * ether) / 2n);
  assert.deepEqual(broker.bodies().at(-1), { txHash, svcID: alice });
  assert.equal((await wallet.history())[0]?.txHash, txHash);
});

await test("price, limit and number of the link are what is signed", async () => {
  const { payload } = (await (
    await aliceWallet()
  ).approve(link("&ep=3000000000&el=50000&nc=1&type=qr"))) as { payload: string };
  const { txHash } = JSON.parse(payload) as { txHash: string };
  const sent = await anvil.rpc<Record<string, string>>("eth_getTransactionByHash", [txHash]);
  assert.deepEqual(
    [sent["maxFeePerGas"], sent["maxPriorityFeePerGas"], sent["gas"], sent["nonce"]].map(Number),
    [3e9, 3e9, 50_000, 1],
  );
});

await test("an approval that broke off after sending goes on with the same transaction, and pays once", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  isDown = true;
  sendsSeen = 0;
  await refuses((await aliceWallet({ storage })).approve(link()), "unreachable");
  isDown = false;
  assert.equal(sendsSeen, 1);
  const wallet = await aliceWallet({ storage });
  assert.match((await wallet.describe(link())).words.join("\n"), /signed before.*pays once/);
  const outcome = await wallet.approve(link());
  assert.equal(outcome.kind, "shown");
  assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
});

await test("a transaction is in the history from before it is sent, once, whatever became of it", async () => {
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  const entries = async () =>
    (await wallet.history()).map(({ at, outcome, txHash }) => ({ at, outcome, txHash }));
  isDown = true;
  await refuses(wallet.approve(link()), "unreachable");
  isDown = false;
  const [sent] = await entries();
  assert.deepEqual([sent?.at, sent?.outcome], [now, "sent"]);
  const later = await aliceWallet({ storage, now: async () => now + 60 });
  const outcome = await later.approve(link());
  assert.ok(outcome.kind === "shown");
  const { txHash } = JSON.parse(outcome.payload) as { txHash: string };
  assert.deepEqual(await entries(), [{ at: now, outcome: "approved", txHash }]);
  const invalid = `0x${"be".repeat(20)}`;
  await anvil.rpc("anvil_setCode", [invalid, "0xfe"]);
  const failing = `svc:tx?val=0&to=${invalid}&el=100000&type=qr`;
  await refuses(later.approve(failing), "chain_refused", /failed there/);
  assert.equal((await entries())[0]?.outcome, "sent");
});

await test("what was signed before the deadline is carried out after it, and nothing else is", async () => {
  broker.reset();
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  const late = link(`&conn=${conn}&dl=${now + 60}`);
  const unknown = accepting("unknown-requester");
  isDown = true;
  await refuses((await aliceWallet({ storage })).approve(late, unknown), "unreachable");
  isDown = false;
  const wallet = await aliceWallet({ storage, now: async () => now + 61 });
  assert.match((await wallet.describe(late)).words.join("\n"), /signed before/);
  await wallet.approve(late, unknown);
  const [entry] = await wallet.history();
  assert.deepEqual(broker.bodies().at(-1), { txHash: entry?.txHash, svcID: alice });
  assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
  await refuses(wallet.approve(late, unknown), "expired");
});

await test("a link pays once whatever a node that lags behind says of its transaction", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  for (const declines of [false, true]) {
    const storage = memoryStorage();
    const before = await balanceOf(bob);
    const wallet = await aliceWallet({ storage });
    isDown = true;
    await refuses(wallet.approve(link()), "unreachable");
    isDown = false;
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
  isDown = true;
  await refuses((await aliceWallet({ storage })).approve(link()), "unreachable");
  isDown = false;
  await anvil.mine(blocksToFinal);
  const isSignedAt = async (at: number, changed: Partial<WalletParts> = {}): Promise<boolean> => {
    const wallet = await aliceWallet({ storage, now: async () => at, ...changed });
    return /signed before/.test((await wallet.describe(link())).words.join("\n"));
  };
  // Of two nodes behind one address one lags, and gets all that is asked call by call.
  const apart: typeof fetch = async (url, init) => {
    if (typeof init?.body === "string" && init.body.startsWith("[")) lies.clear();
    else lies.set("eth_getTransactionReceipt", null).set("eth_getTransactionByHash", null);
    return chainFetch(url, init);
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

await test("a link that was answered to the end may be approved again, pays again, and is shown so", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  const wallet = await aliceWallet({ storage });
  const words = async (): Promise<string> => (await wallet.describe(link())).words.join("\n");
  assert.doesNotMatch(await words(), /paid before/);
  await wallet.approve(link());
  const { txHash } = (await wallet.history())[0] ?? {};
  assert.ok((await words()).includes(`by ${txHash}; approving it pays again.`));
  assert.doesNotMatch((await wallet.describe(link("&type=qr"))).words.join("\n"), /paid/);
  await wallet.approve(link());
  assert.equal(await balanceOf(bob), before + 3n * ether);
});

/** A storage whose process is killed after so many of its operations, with a relay that it takes along. */
function killedAfter(operationsMax: number, inner: WalletStorage) {
  let operations = 0;
  const step = async <T>(work: () => Promise<T>): Promise<T> => {
    operations += 1;
    if (operations > operationsMax) throw new Error("killed");
    return work();
  };
  const storage: WalletStorage = {
    get: async (key) => step(async () => inner.get(key)),
    put: async (key, text) => step(async () => inner.put(key, text)),
    add: async (key, text) => step(async () => inner.add(key, text)),
    remove: async (key) => step(async () => inner.remove(key)),
    list: async (folder) => step(async () => inner.list(folder)),
  };
  const relay: typeof fetch = async (url, init) => {
    if (operations >= operationsMax) throw new Error("killed");
    return chainFetch(url, init);
  };
  return { storage, fetch: relay };
}

await test("an approval that is killed at any step pays once when it is approved again", async () => {
  await fund(alice, 1000n * ether);
  const shown = link("&type=qr");
  let isDone = false;
  for (let operations = 1; !isDone; operations += 1) {
    const inner = memoryStorage();
    const before = await balanceOf(bob);
    const first = await aliceWallet(killedAfter(operations, inner));
    isDone = await first.approve(shown).then(
      () => true,
      () => false,
    );
    if (!isDone) await (await aliceWallet({ storage: inner })).approve(shown);
    assert.equal(await balanceOf(bob), before + (3n * ether) / 2n, `after ${operations}`);
    assert.equal((await (await aliceWallet({ storage: inner })).history()).length, 1);
  }
});

await test("a call of a contract and an approval of tokens are warned about", async () => {
  const call = link("&data=0x12345678");
  const wallet = await aliceWallet();
  assert.deepEqual((await wallet.describe(call)).concerns, ["contract-call"]);
  await refuses(wallet.approve(call), "not_accepted", /contract/);
  for (const selector of ["095ea7b3", "a22cb465", "39509351"]) {
    const { concerns } = await wallet.describe(link(`&data=0x${selector}${"00".repeat(64)}`));
    assert.deepEqual(concerns, ["contract-call", "token-approval"]);
  }
});

await test("what the chain would not take is refused before it is signed", async () => {
  const wallet = await aliceWallet();
  const much = `svc:tx?val=${1000n * ether}&to=${bob}&el=21000`;
  await refuses(wallet.approve(much), "chain_refused", /holds .* and this takes up to 1000/);
  await refuses(wallet.approve(link("&nc=0")), "chain_refused", /nc:/);
  await refuses(wallet.approve(link("&nc=999")), "chain_refused", /nc:/);
  const late = await aliceWallet({ now: async () => now + 1 });
  await refuses(late.approve(link(`&dl=${now}`)), "expired");
  const poor = await walletOf("bob", [], { fetch: chainFetch });
  await refuses(poor.approve(`svc:tx?val=1&to=${alice}`), "unsupported", /no broker/);
});

await test("a transaction that fails on the chain is told as failed, and conn hears nothing", async () => {
  broker.reset();
  const reverting = `0x${"bb".repeat(20)}`;
  await anvil.rpc("anvil_setCode", [reverting, "0x5f5ffd"]);
  const failing = `svc:tx?val=0&to=${reverting}&el=100000&conn=${conn}`;
  const wallet = await aliceWallet();
  const approving = wallet.approve(failing, accepting("unknown-requester"));
  await refuses(approving, "chain_refused", /failed there/);
  assert.equal(broker.paths().includes(`POST ${hashesAt}`), false);
  await refuses(
    wallet.approve(`svc:tx?val=0&to=${reverting}`),
    "chain_refused",
    /refuses: .*revert/i,
  );
});

await test("a transaction is signed for the chain and within the fee that were shown", async () => {
  await fund(alice, 100n * ether);
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  const { data } = await wallet.describe(link());
  const shownWei = BigInt(String(data["energyLimit"])) * BigInt(String(data["energyPriceWei"]));
  lies.set("eth_chainId", "0x1");
  await refuses((await aliceWallet({ storage })).approve(link()), "chain_refused", /another chain/);
  lies.clear();
  lies.set("eth_gasPrice", `0x${(10n ** 14n).toString(16)}`);
  await refuses(wallet.approve(link()), "chain_refused", /more than was shown/);
  lies.set("eth_gasPrice", `0x${((shownWei * 3n) / 4n / 21_000n).toString(16)}`);
  const outcome = await wallet.approve(link());
  assert.ok(outcome.kind === "shown");
  const { txHash } = JSON.parse(outcome.payload) as { txHash: string };
  const sent = await anvil.rpc<Record<string, string>>("eth_getTransactionByHash", [txHash]);
  assert.ok(BigInt(sent["maxFeePerGas"] ?? "") * BigInt(sent["gas"] ?? "") <= shownWei);
});

await test("a chain that a broker names otherwise than before is signed for by no approval", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const wallet = await aliceWallet();
  await wallet.describe(link());
  lies.set("eth_chainId", "0x1");
  await refuses(wallet.describe(link()), "chain_refused", /another chain/);
});

const carol = `0x${"cc".repeat(20)}`;
const transferOf = (valueWei: number, more = ""): string =>
  `svc:tx?val=${valueWei}&to=${carol}${more}`;

await test("links that were approved at once for one number are each paid once in the end", async () => {
  await fund(alice, 100n * ether);
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
  swallows = true;
  await refuses(wallet.approve(transferOf(8)), "unreachable");
  swallows = false;
  await (await aliceWallet()).approve(transferOf(9));
  await refuses(wallet.approve(transferOf(8)), "chain_refused", /again later/);
  await anvil.mine(blocksToFinal);
  await refuses(wallet.approve(transferOf(8)), "chain_refused", /again later/);
  const later = await aliceWallet({ storage, now: async () => now + 30 });
  assert.doesNotMatch((await later.describe(transferOf(8))).words.join("\n"), /signed before/);
  await later.approve(transferOf(8));
  assert.equal((await balanceOf(carol)) - before, 17n);
});

await test("two that find at once that a transaction is lost for good sign one other", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  swallows = true;
  await refuses((await aliceWallet({ storage })).approve(transferOf(21)), "unreachable");
  swallows = false;
  await (await aliceWallet()).approve(transferOf(22));
  await anvil.mine(blocksToFinal);
  await (await aliceWallet({ storage })).describe(transferOf(21));
  const [looked, released] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const slow: typeof fetch = async (url, init) => {
    const answer = await chainFetch(url, init);
    if (typeof init?.body !== "string" || !init.body.startsWith("[")) return answer;
    looked.resolve();
    await released.promise;
    return answer;
  };
  const later = { storage, now: async () => now + 30 };
  const second = (await aliceWallet({ ...later, fetch: slow })).approve(transferOf(21));
  await looked.promise;
  isDown = true;
  await refuses((await aliceWallet(later)).approve(transferOf(21)), "unreachable");
  isDown = false;
  released.resolve();
  assert.equal((await second).kind, "shown");
  assert.equal((await balanceOf(carol)) - before, 43n);
  assert.deepEqual(await storage.list("transaction"), []);
});

await test("a link that was signed anew is forgotten at once or not at all, whenever the wallet is killed", async () => {
  let isDone = false;
  for (let operations = 1; !isDone; operations += 1) {
    const inner = memoryStorage();
    const before = await balanceOf(carol);
    swallows = true;
    await refuses((await aliceWallet({ storage: inner })).approve(transferOf(23)), "unreachable");
    swallows = false;
    await (await aliceWallet()).approve(transferOf(24));
    await anvil.mine(blocksToFinal);
    await (await aliceWallet({ storage: inner })).describe(transferOf(23));
    const later = async () => now + 30;
    const first = await aliceWallet({ ...killedAfter(operations, inner), now: later });
    isDone = await first.approve(transferOf(23)).then(
      () => true,
      () => false,
    );
    if (!isDone) await (await aliceWallet({ storage: inner, now: later })).approve(transferOf(23));
    assert.equal((await balanceOf(carol)) - before, 47n, `after ${operations}`);
  }
});

await test("a link whose transaction failed is signed anew once that is final", async () => {
  const storage = memoryStorage();
  const wallet = await aliceWallet({ storage });
  const failing = `svc:tx?val=0&to=0x${"bb".repeat(20)}&el=100000`;
  const isSignedAt = async (at: number): Promise<boolean> => {
    const { words } = await (await aliceWallet({ storage, now: async () => at })).describe(failing);
    return /signed before/.test(words.join("\n"));
  };
  await refuses(wallet.approve(failing), "chain_refused", /failed there/);
  assert.deepEqual([await isSignedAt(now), await isSignedAt(now + 30)], [true, true]);
  await anvil.mine(blocksToFinal);
  assert.deepEqual([await isSignedAt(now + 31), await isSignedAt(now + 61)], [true, false]);
});

await test("a kept transaction that cannot be read pays nothing and is named, and the link is free once it is removed", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  swallows = true;
  await refuses(wallet.approve(transferOf(13)), "unreachable");
  swallows = false;
  const [key] = await storage.list("transaction");
  assert.ok(key);
  await storage.put(key, "");
  await refuses(wallet.approve(transferOf(13)), "damaged_state", new RegExp(`cannot read ${key}`));
  assert.equal(await balanceOf(carol), before);
  await storage.remove(key);
  await wallet.approve(transferOf(13));
  assert.equal((await balanceOf(carol)) - before, 13n);
});

await test("declining a link forgets nothing that was signed for it", async () => {
  const storage = memoryStorage();
  const before = await balanceOf(carol);
  const wallet = await aliceWallet({ storage });
  await anvil.setAutomine(false);
  isDown = true;
  await refuses(wallet.approve(transferOf(11)), "unreachable");
  isDown = false;
  await wallet.decline(transferOf(11));
  await anvil.setAutomine(true);
  await anvil.mine();
  assert.equal((await wallet.approve(transferOf(11))).kind, "shown");
  assert.equal((await balanceOf(carol)) - before, 11n);
});
