import assert from "node:assert/strict";
import { test } from "node:test";
import { startAnvil } from "../../../../test/anvil.ts";
import { openFakeBroker, problem } from "../../test/fake-broker.ts";
import { openFakeChain } from "../../test/fake-chain.ts";
import { now, serveFields } from "../../test/fake-fields.ts";
import { accepting, addressOf, refuses, walletOf } from "../../test/test-wallet.ts";
import { memoryStorage, type WalletParts } from "../index.ts";

await using broker = await openFakeBroker();
await using anvil = await startAnvil();
const chain = openFakeChain(broker.url, anvil);
const { lies, fund, balanceOf } = chain;
const hashesAt = "/hashes";
serveFields(broker);
broker.more = ({ path }) => {
  if (path === hashesAt) return { status: 200, body: { taken: true } };
  return path === `${hashesAt}/open` ? problem(404, "route_not_found") : null;
};
const alice = addressOf("alice");
const bob = addressOf("bob");
const ether = 10n ** 18n;

const aliceWallet = async (changed: Partial<WalletParts> = {}) =>
  walletOf("alice", [broker.url], { fetch: chain.fetch, ...changed });

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
  const asked = await (await aliceWallet()).describe(link(`&conn=${conn}`));
  assert.deepEqual(asked.concerns, ["unknown-requester"]);
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
  chain.isDown = true;
  chain.sendsSeen = 0;
  await refuses((await aliceWallet({ storage })).approve(link()), "unreachable");
  chain.isDown = false;
  assert.equal(chain.sendsSeen, 1);
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
  chain.isDown = true;
  await refuses(wallet.approve(link()), "unreachable");
  chain.isDown = false;
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
  await refuses(later.approve(failing), "chain_refused", /failed on chain/);
  assert.equal((await entries())[0]?.outcome, "sent");
});

await test("what was signed before the deadline is carried out after it, and nothing else is", async () => {
  broker.reset();
  const storage = memoryStorage();
  const before = await balanceOf(bob);
  const late = link(`&conn=${conn}&dl=${now + 60}`);
  const unknown = accepting("unknown-requester");
  chain.isDown = true;
  await refuses((await aliceWallet({ storage })).approve(late, unknown), "unreachable");
  chain.isDown = false;
  const wallet = await aliceWallet({ storage, now: async () => now + 61 });
  assert.match((await wallet.describe(late)).words.join("\n"), /signed before/);
  await wallet.approve(late, unknown);
  const [entry] = await wallet.history();
  assert.deepEqual(broker.bodies().at(-1), { txHash: entry?.txHash, svcID: alice });
  assert.equal(await balanceOf(bob), before + (3n * ether) / 2n);
  await refuses(wallet.approve(late, unknown), "expired");
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
  assert.deepEqual((await wallet.describe(link())).concerns, ["paid-before"]);
  await refuses(wallet.approve(link()), "not_accepted", /approving it pays again/);
  await wallet.approve(link(), { accept: new Set(["paid-before"]) });
  assert.equal(await balanceOf(bob), before + 3n * ether);
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
  await refuses(wallet.approve(much), "chain_refused", /holds .* but this needs up to 1000/);
  await refuses(wallet.approve(link("&el=20999")), "chain_refused", /el: .* at least 21000/);
  const call = link("&el=21049&data=0x0001");
  const accept = new Set(["contract-call"] as const);
  await refuses(wallet.approve(call, { accept }), "chain_refused", /el: .* at least 21050/);
  await refuses(wallet.approve(link("&nc=0")), "chain_refused", /nc:/);
  await refuses(wallet.approve(link("&nc=999")), "chain_refused", /nc:/);
  const late = await aliceWallet({ now: async () => now + 1 });
  await refuses(late.approve(link(`&dl=${now}`)), "expired");
  await fund(alice, (3n * ether) / 2n);
  await refuses(wallet.approve(link()), "chain_refused", /holds 1\.5 coins, .* up to 1\.50*[1-9]/);
  await fund(alice, 100n * ether);
  const poor = await walletOf("bob", [], { fetch: chain.fetch });
  await refuses(poor.approve(`svc:tx?val=1&to=${alice}`), "unsupported", /no broker/);
});

await test("a transaction that fails on the chain is told as failed, and conn hears nothing", async () => {
  broker.reset();
  const reverting = `0x${"bb".repeat(20)}`;
  await anvil.rpc("anvil_setCode", [reverting, "0x5f5ffd"]);
  const failing = `svc:tx?val=0&to=${reverting}&el=100000&conn=${conn}`;
  const wallet = await aliceWallet();
  const approving = wallet.approve(failing, accepting("unknown-requester"));
  await refuses(approving, "chain_refused", /failed on chain/);
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
  await refuses(
    (await aliceWallet({ storage })).approve(link()),
    "chain_refused",
    /different chain/,
  );
  lies.clear();
  lies.set("eth_gasPrice", `0x${(10n ** 14n).toString(16)}`);
  await refuses(wallet.approve(link()), "chain_refused", /more than was shown/);
  lies.set("eth_gasPrice", `0x${((shownWei * 3n) / 4n / 21_000n).toString(16)}`);
  // No more than the whole price, which is lowered to what was shown.
  lies.set("eth_maxPriorityFeePerGas", `0x${(10n ** 14n).toString(16)}`);
  const outcome = await wallet.approve(link());
  assert.ok(outcome.kind === "shown");
  const { txHash } = JSON.parse(outcome.payload) as { txHash: string };
  const sent = await anvil.rpc<Record<string, string>>("eth_getTransactionByHash", [txHash]);
  assert.ok(BigInt(sent["maxFeePerGas"] ?? "") * BigInt(sent["gas"] ?? "") <= shownWei);
  assert.equal(sent["maxPriorityFeePerGas"], sent["maxFeePerGas"]);
});

const priceOf = (feeWei: bigint): bigint => feeWei / 21_000n;

await test("a fee above 0.1 coins is paid only once it was shown, whether the link or the chain names it", async () => {
  await fund(alice, 100n * ether);
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const wallet = await aliceWallet();
  const dear = link(`&el=21000&ep=${priceOf(ether)}`);
  await refuses(wallet.approve(dear), "not_accepted", /0\.9\d+ coins, and a fee above 0\.1 coins/);
  lies.set("eth_gasPrice", `0x${priceOf(ether / 10n).toString(16)}`);
  await refuses(wallet.approve(link()), "not_accepted", /above 0\.1 coins must be seen/);
  lies.clear();
  assert.equal((await wallet.approve(link(`&ep=${priceOf(ether / 10n)}`))).kind, "shown");
  await wallet.describe(dear);
  assert.equal((await wallet.approve(dear)).kind, "shown");
});

await test("a chain that a broker names otherwise than before is signed for by no approval", async () => {
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const wallet = await aliceWallet();
  await wallet.describe(link());
  lies.set("eth_chainId", "0x1");
  await refuses(wallet.describe(link()), "chain_refused", /different chain/);
});

await test("a price that the link names is signed as it is, or not at all", async () => {
  await fund(alice, 100n * ether);
  using _ = { [Symbol.dispose]: () => lies.clear() };
  const priced = link("&ep=3000000000");
  const wallet = await aliceWallet();
  const { data } = await wallet.describe(priced);
  assert.equal(data["energyPriceWei"], "3000000000");
  lies.set("eth_estimateGas", "0x5300");
  await refuses(wallet.approve(priced), "chain_refused", /more than was shown/);
});
