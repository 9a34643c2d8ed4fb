// What the outside may ask of the chain, and what it may not.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { request } from "node:http";
import { text } from "node:stream/consumers";
import { after, before, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { credentialRegistry } from "@svc/contracts";
import { createPublicClient, http, type PublicClient } from "viem";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import type { Address, Hex } from "@svc/protocol";
import { type ChainContext, fundAccount, fundFromOutside } from "../../service/src/chain/index.ts";
import { type ChainNode, RpcError } from "../../service/src/chain/node.ts";
import { callerAddressOf, limitNetworkOf } from "../../service/src/platform/http/client-address.ts";
import { chainRoutes } from "../../service/src/chain/relay-routes.ts";
import { answerCall, answerCalls } from "../../service/src/chain/relay.ts";
import { createHttp } from "../../service/src/platform/http/http.ts";
import { nodePid } from "../embedded-chain.ts";
import { until } from "../patience.ts";
import { post } from "../raw-wallet.ts";
import { openWorld, type World } from "../world.ts";

let world: World;
let client: PublicClient;
before(async () => {
  world = await openWorld({ CHAIN: "on", LIMIT_LOOPBACK: "true" });
  client = createPublicClient({ transport: http(`${world.baseUrl}/w/chain`), pollingInterval: 50 });
});
after(async () => world[Symbol.asyncDispose]());

interface Said {
  readonly status: number;
  readonly body: {
    readonly result?: unknown;
    readonly error?: { readonly code: number; readonly message: string };
  };
}

/** Posts a body to the relay. */
async function ask(
  body: unknown,
  headers: Record<string, string> = {},
  baseUrl = world.baseUrl,
): Promise<Said> {
  const sent = request(`${baseUrl}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
  });
  sent.end(typeof body === "string" ? body : JSON.stringify(body));
  const { promise, resolve, reject } = Promise.withResolvers<Said>();
  sent.on("error", reject);
  sent.on("response", (answer) => {
    text(answer).then(
      (said) => resolve({ status: answer.statusCode ?? 0, body: JSON.parse(said) as Said["body"] }),
      reject,
    );
  });
  return promise;
}

const call = (method: string, params: unknown = []): object => ({
  jsonrpc: "2.0",
  id: 1,
  method,
  params,
});

test("methods that change the chain or its node are refused, whatever their spelling", async () => {
  const refused = [
    [
      "anvil_setBalance",
      "anvil_dumpState",
      "anvil_reset",
      "anvil_impersonateAccount",
      "anvil_mine",
    ],
    ["evm_mine", "evm_setNextBlockTimestamp", "evm_snapshot", "evm_revert", "evm_increaseTime"],
    ["hardhat_setCode", "hardhat_setStorageAt", "hardhat_impersonateAccount", "hardhat_reset"],
    ["debug_traceTransaction", "trace_block", "txpool_content", "admin_peers", "personal_sign"],
    ["eth_sendTransaction", "eth_sendUnsignedTransaction", "eth_sign", "eth_signTypedData_v4"],
    ["eth_accounts", "eth_newFilter", "eth_subscribe", "wallet_getCapabilities", "ots_getApiLevel"],
    ["EVM_MINE", " evm_mine", "evm_mine ", "constructor", "__proto__", "toString", ""],
  ].flat();
  const head = await client.getBlockNumber();
  for (const method of refused) {
    const { status, body } = await ask(call(method, [1, "0x1"]));
    assert.equal(status, 200, method);
    assert.equal(body.error?.code, -32_601, method);
  }
  // The service's own transactions may have made blocks; a block mined for a caller would be empty.
  const last = await client.getBlockNumber({ cacheTime: 0 });
  for (let blockNumber = head + 1n; blockNumber <= last; blockNumber += 1n) {
    const { transactions } = await client.getBlock({ blockNumber });
    assert.notEqual(transactions.length, 0, `block ${blockNumber}`);
  }
});

test("no other path and no other port of the service speaks for the chain", async () => {
  const body = JSON.stringify(call("anvil_setBalance", [`0x${"de".repeat(20)}`, "0x1"]));
  const headers = { "content-type": "application/json" };
  const metrics = new URL(world.service.metricsUrl);
  for (const url of [
    ...["/", "/w", "/rpc", "/w/chain/", "/w/chain/anvil"].map((path) => `${world.baseUrl}${path}`),
    ...["/", "/metrics", "/w/chain"].map((path) => `${metrics.origin}${path}`),
  ]) {
    const answer = await fetch(url, { method: "POST", headers, body });
    assert.doesNotMatch(await answer.text(), /"jsonrpc"|"result"/, url);
  }
  const balance = await client.getBalance({ address: `0x${"de".repeat(20)}` });
  assert.equal(balance, 0n);
});

test(
  "the node's own port is at no address that a page would try",
  { skip: process.platform !== "linux" },
  async () => {
    const pid = await nodePid(world);
    const [, address] =
      /--host\0(127[\d.]+)\0/.exec(readFileSync(`/proc/${pid}/cmdline`, "utf8")) ?? [];
    assert.ok(address !== undefined && !address.startsWith("127.0.0."), address);
  },
);

test("outside dev whoever computes on the embedded chain pays for it", async () => {
  const ctx = {
    ...world.ctx,
    config: { ...world.ctx.config, profile: "production" },
  } as ChainContext;
  const answer = async (method: string, params: unknown[] = []) =>
    (await answerCall(ctx, call(method, params), "stranger")) as Said["body"];
  for (const method of ["eth_gasPrice", "eth_maxPriorityFeePerGas"])
    assert.equal((await answer(method)).result, "0x3b9aca00");
  const { result: history } = await answer("eth_feeHistory", ["0x1", "latest", [50]]);
  assert.deepEqual((history as { reward?: unknown }).reward, [["0x3b9aca00"]]);
  const account = privateKeyToAccount(generatePrivateKey());
  const address = account.address.toLowerCase() as Address;
  await fundFromOutside(ctx, { address, amountWei: 10n ** 18n }, "test");
  await until("the coin", async () => ((await client.getBalance({ address })) > 0n ? true : null));
  const gwei = 1_000_000_000n;
  const common = {
    chainId: await client.getChainId(),
    gas: 21_000n,
    nonce: 0,
    to: account.address,
  };
  const fees = [
    { maxFeePerGas: 0n, maxPriorityFeePerGas: 0n },
    // The base fee is zero, so the priority fee is the whole price: one wei short of the minimum.
    { maxFeePerGas: gwei, maxPriorityFeePerGas: gwei - 1n },
  ];
  for (const fee of fees) {
    const raw = await account.signTransaction({ ...common, type: "eip1559", ...fee });
    assert.match(
      (await answer("eth_sendRawTransaction", [raw])).error?.message ?? "",
      /underpriced/,
    );
  }
  const free = await account.signTransaction({ ...common, type: "legacy", gasPrice: gwei - 1n });
  assert.match(
    (await answer("eth_sendRawTransaction", [free])).error?.message ?? "",
    /underpriced/,
  );
  const paid = {
    ...common,
    type: "eip1559",
    maxFeePerGas: gwei,
    maxPriorityFeePerGas: gwei,
  } as const;
  const { result } = await answer("eth_sendRawTransaction", [await account.signTransaction(paid)]);
  const receipt = await client.waitForTransactionReceipt({ hash: result as Hex });
  assert.equal(receipt.effectiveGasPrice, gwei);
});

test("a page of another site, or under another name for this host, is refused", async () => {
  const block = call("eth_blockNumber");
  const { host } = new URL(world.baseUrl);
  for (const headers of [
    { origin: "https://evil.example" },
    { origin: "null" },
    { origin: `${world.baseUrl}.evil.example` },
    { origin: "http://localhost:1" },
    { host: "evil.example" },
    { host: "localhost.evil.example" },
    { host: `evil.example:${host.split(":")[1]}` },
    { host: "127.0.0.1.nip.io" },
  ]) {
    const { status, body } = await ask(block, headers);
    assert.equal(status, 403, JSON.stringify(headers));
    assert.equal(body.result, undefined);
    // The refusal must not speak of keys: nobody shows one to call the chain.
    assert.match(JSON.stringify(body), /"this may not be called from here"/);
  }
  for (const headers of [
    {},
    { origin: world.baseUrl },
    { origin: world.ctx.config.walletOrigin },
  ]) {
    const { status, body } = await ask(block, headers);
    assert.equal(status, 200, JSON.stringify(headers));
    assert.match(String(body.result), /^0x/);
  }
  // A form of another site needs no preflight, so its content types are refused.
  assert.equal((await ask("a=b", { "content-type": "text/plain" })).status, 415);
});

test("a malformed or too large call is refused with a plain message", async () => {
  const refusedParams: [string, unknown][] = [
    ["eth_call", [{ to: `0x${"01".repeat(20)}` }, "latest", { "0x00": { balance: "0x1" } }]],
    ["eth_call", ["0x00"]],
    ["eth_call", [{ gas: "lots" }]],
    ["eth_call", { to: "0x00" }],
    ["eth_getLogs", [{ fromBlock: "earliest", toBlock: "0x2710" }]],
    ["eth_getLogs", [{ fromBlock: "0x5", toBlock: "0x1" }]],
    ["eth_getLogs", [{ fromBlock: "0xg" }]],
    ["eth_getLogs", [{ fromBlock: "0x0", toBlock: "0x2710", blockHash: null }]],
    ["eth_getLogs", [{ fromBlock: "0x0", toBlock: "0x0", ToBlock: "0x2710" }]],
    ["eth_call", [{ to: `0x${"01".repeat(20)}`, Gas: "0x989681" }]],
    ["eth_getLogs", []],
    ["eth_getLogs", ["0x0"]],
    ["eth_feeHistory", [1.5, "latest", []]],
    ["eth_feeHistory", [101, "latest", []]],
    ["eth_feeHistory", ["0x65", "latest", []]],
    ["eth_feeHistory", ["0x1", "latest", Array.from({ length: 11 }, () => 1)]],
    ["eth_sendRawTransaction", []],
    ["eth_sendRawTransaction", ["0xzz"]],
  ];
  for (const [method, params] of refusedParams) {
    const { status, body } = await ask(call(method, params));
    assert.deepEqual([status, body.error?.code], [200, -32_602], JSON.stringify([method, params]));
  }
  assert.equal((await ask([1])).status, 200);
  assert.equal((await ask([])).status, 400);
  assert.equal((await ask(Array.from({ length: 51 }, () => call("eth_chainId")))).status, 400);
  assert.equal((await ask(`"${"a".repeat(600_000)}"`)).status, 413);
  assert.equal((await ask("{")).status, 400);
});

test("in a list of calls, one that names no address is refused and the others are answered", async () => {
  const counted = (address: unknown): object =>
    call("eth_getTransactionCount", [address, "pending"]);
  const address = `0x${"de".repeat(20)}`;
  const calls = [
    call("eth_chainId"),
    counted({ toString: 1 }),
    counted([address]),
    counted(address),
  ];
  const { status, body } = await ask(calls);
  assert.equal(status, 200);
  const [id, ...counts] = body as Said["body"][];
  assert.equal(id?.result, `0x${world.ctx.chain.chainId.toString(16)}`);
  assert.deepEqual(
    counts.map(({ result, error }) => result ?? error?.code),
    [-32_602, -32_602, "0x0"],
  );
});

test("a call that would burn the node's time ends at 10 million gas", async () => {
  // JUMPDEST PUSH0 JUMP: for ever. As code to create, it needs no contract.
  for (const gas of [undefined, "0xe8d4a51000"]) {
    const { body } = await ask(call("eth_call", [{ data: "0x5b5f56", gas }, "latest"]));
    assert.ok(body.error !== undefined);
    // GAS PUSH0 MSTORE PUSH1 32 PUSH0 RETURN: what the call has left of its gas.
    const left = await ask(call("eth_call", [{ data: "0x5a5f5260205ff3", gas }, "latest"]));
    const gasLeft = Number(left.body.result);
    assert.ok(gasLeft > 9_000_000 && gasLeft < 10_000_000, `${gasLeft}`);
  }
});

test("the answers to one request have 4 MiB at most: what is more is refused, call by call", async () => {
  // PUSH3 a million, PUSH0 REVERT: the error comes with two million hex digits.
  const long = { ...call("eth_call", [{ data: "0x620f42405ffd" }, "latest"]), id: "long" };
  const { status, body } = await ask([long, long, long, call("eth_chainId")]);
  assert.equal(status, 200);
  const answers = body as unknown as (Said["body"] & { id: unknown })[];
  assert.deepEqual(
    answers.map(({ id }) => id),
    ["long", "long", "long", 1],
  );
  assert.deepEqual(
    answers.map(({ error }) => error?.code ?? 0).toSorted((a, b) => a - b),
    [-32_005, 0, 3, 3],
  );
});

/** The context of a relay with a fake node. */
function contextWith(answer: ChainNode["request"], config: object = {}): ChainContext {
  const ctx = world.ctx as ChainContext;
  const relayNode: ChainNode = { ...ctx.chain.relayNode, request: answer };
  return {
    ...ctx,
    config: { ...ctx.config, ...config },
    chain: { ...ctx.chain, relayNode },
  };
}

/** @returns the answers to `count` calls of one caller, and how many of them were under way at once */
async function askAtOnce(asked: object, count: number) {
  let [underWay, most] = [0, 0];
  const stalled = contextWith(async (method) => {
    if (method === "eth_blockNumber") return "0x1";
    underWay += 1;
    most = Math.max(most, underWay);
    await nextTurn();
    underWay -= 1;
    return null;
  });
  const calls = Array.from({ length: count }, async () => answerCall(stalled, asked, "somebody"));
  const others = answerCall(stalled, asked, "another");
  return { answers: (await Promise.all(calls)) as Said["body"][], most, others: await others };
}

test("of calls with long answers eight are under way at once, and hundreds of one caller are all answered", async () => {
  for (const method of [
    "eth_getBlockByHash",
    "eth_getBlockByNumber",
    "eth_getLogs",
    "eth_getTransactionReceipt",
  ]) {
    const { answers, most } = await askAtOnce(call(method, [{}]), 500);
    assert.ok(answers.every((answer) => "result" in answer));
    assert.equal(most, 8, method);
  }
});

test("of calls that compute two are under way at once, and a hundred of one caller wait, beside which another's has its turn", async () => {
  for (const method of ["eth_call", "eth_estimateGas"]) {
    const { answers, most, others } = await askAtOnce(call(method, [{}]), 103);
    const refused = answers.flatMap(({ error }) => (error === undefined ? [] : [error.code]));
    assert.deepEqual([most, refused], [2, [-32_005]], method);
    assert.ok("result" in others);
  }
});

test("on an outside chain the gas price is the node's own, and a transaction that the node already has counts as sent", async () => {
  const { chain, ...ctx } = contextWith(
    async (method) => {
      if (method === "eth_sendRawTransaction") throw new RpcError(-32_000, "already known");
      return method === "eth_gasPrice" ? "0x7" : null;
    },
    { profile: "production" },
  );
  const outside: ChainContext = { ...ctx, chain: { ...chain, isEmbedded: false } };
  const answer = async (method: string, params: unknown[] = []) =>
    (await answerCall(outside, call(method, params), "one")) as Said["body"];
  assert.equal((await answer("eth_gasPrice")).result, "0x7");
  const account = privateKeyToAccount(generatePrivateKey());
  const cheap = { type: "legacy", chainId: 1, nonce: 0, gas: 21_000n, gasPrice: 7n } as const;
  const raw = await account.signTransaction({ ...cheap, to: account.address });
  assert.match(String((await answer("eth_sendRawTransaction", [raw])).result), /^0x[0-9a-f]{64}$/);
});

test("a fee history raises prices below this chain's minimum, and leaves higher ones as they are", async () => {
  const history = { reward: [["0x1", "0x3b9aca01"]] };
  const ctx = contextWith(async () => history, { profile: "production" });
  const params = ["0x1", "latest", [10, 90]];
  const { result } = (await answerCall(ctx, call("eth_feeHistory", params), "one")) as Said["body"];
  assert.deepEqual(result, { reward: [["0x3b9aca00", "0x3b9aca01"]] });
});

test("outside dev a request names the service's own host in any spelling, and the addresses of one subscriber share a limit", async () => {
  const ctx = contextWith(async () => "0x1", {
    profile: "production",
    baseUrl: "https://id.example.com",
    trustedProxies: ["127.0.0.1"],
  });
  await using served = createHttp(ctx);
  chainRoutes(ctx, served);
  const baseUrl = await served.listen({ port: 0, host: "127.0.0.1" });
  assert.equal((await post(`${baseUrl}/w/chain`, call("eth_chainId"))).status, 403);
  const hosts = ["id.example.com", "ID.example.com", "id.example.com:443"];
  const list = Array.from({ length: 50 }, () => call("eth_chainId"));
  const asked = Array.from({ length: 30 }, async (_, at) => {
    const headers = { host: hosts[at % 3] ?? "", "x-forwarded-for": `2001:db8::${at}` };
    return ask(list, headers, baseUrl);
  });
  const said = await Promise.all(asked);
  assert.deepEqual(new Set(said.map(({ status }) => status)), new Set([200, 429]));
});

test("where the node names no newest block, a search for logs is not answered, and the calls beside it are", async () => {
  const ctx = world.ctx as ChainContext;
  const relayNode: ChainNode = { ...ctx.chain.relayNode, request: async () => null };
  const calls = [call("eth_getLogs", [{}]), call("eth_chainId")];
  const answers = await answerCalls({ ...ctx, chain: { ...ctx.chain, relayNode } }, calls, "one");
  const [logs, chainId] = answers.map((answer) => JSON.parse(answer) as Said["body"]);
  assert.deepEqual([logs?.error?.code, chainId?.result], [-32_603, null]);
});

test("viem reads, estimates, verifies and sends through it", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  const address = account.address.toLowerCase() as `0x${string}`;
  await fundAccount(world.ctx, { address, amountWei: 5n });
  await until("the coin", async () =>
    (await client.getBalance({ address })) === 5n ? true : null,
  );
  const { registry } = world.ctx.chain.contracts;
  const live = await client.readContract({
    address: registry,
    abi: credentialRegistry.abi,
    functionName: "isLive",
    args: [address, `0x${"00".repeat(32)}`],
  });
  assert.equal(live, false);
  const message = "hello";
  const signature = await account.signMessage({ message });
  assert.equal(await client.verifyMessage({ address, message, signature }), true);
  assert.equal(await client.verifyMessage({ address, message: "other", signature }), false);
  const to = `0x${"0c".repeat(20)}` as const;
  assert.equal(await client.estimateGas({ account: address, to, value: 2n }), 21_000n);
  assert.equal(await client.getChainId(), world.ctx.chain.chainId);
  assert.equal(await client.getGasPrice(), 0n);
  assert.equal(
    (await client.getFeeHistory({ blockCount: 1, rewardPercentiles: [50] })).baseFeePerGas[0],
    0n,
  );
  assert.ok((await client.getCode({ address: registry }))?.startsWith("0x"));
  const nonce = await client.getTransactionCount({ address, blockTag: "pending" });
  const serializedTransaction = await account.signTransaction({
    type: "eip1559",
    chainId: world.ctx.chain.chainId,
    nonce,
    to,
    value: 2n,
    gas: 21_000n,
    maxFeePerGas: 0n,
    maxPriorityFeePerGas: 0n,
  });
  const hash = await client.sendRawTransaction({ serializedTransaction });
  const receipt = await client.waitForTransactionReceipt({ hash });
  assert.equal(receipt.status, "success");
  assert.equal((await client.getTransaction({ hash })).from.toLowerCase(), address);
  assert.equal(
    (await client.getBlock({ blockNumber: receipt.blockNumber })).hash,
    receipt.blockHash,
  );
  assert.deepEqual(await client.getLogs({ address: to, fromBlock: 0n, toBlock: "latest" }), []);
  assert.deepEqual(await client.getLogs({ address: to, blockHash: receipt.blockHash }), []);
  const { gasUsedRatio } = await client.getFeeHistory({ blockCount: 100, rewardPercentiles: [] });
  assert.ok(gasUsedRatio.length > 0);
  assert.equal(await client.getBalance({ address }), 3n);
  // Sending the same bytes again is the same transaction.
  assert.equal(await client.sendRawTransaction({ serializedTransaction }), hash);
});

test("a contract sees the present on an idle chain", async () => {
  await world.advance(3_600);
  // TIMESTAMP PUSH0 MSTORE PUSH1 32 PUSH0 RETURN
  const from = world.ctx.clock.now();
  const { body } = await ask(call("eth_call", [{ data: "0x425f5260205ff3" }, "latest"]));
  const told = Number(BigInt(String(body.result)));
  assert.ok(told >= from && told <= world.ctx.clock.now(), `${told}`);
});

test("a list counts as its calls: an address cannot ask more by asking in lists", async () => {
  const list = Array.from({ length: 50 }, () => call("eth_chainId"));
  const statuses: number[] = [];
  for (let round = 0; round < 30; round++) statuses.push((await ask(list)).status);
  assert.ok(statuses.includes(429), statuses.join());
});

test("of one network four requests are answered at once: more wait, and what is beyond its limit does not", async () => {
  await world.advance(60);
  const ctx = world.ctx as ChainContext;
  const gate = Promise.withResolvers<string>();
  let underWay = 0;
  const relayNode: ChainNode = {
    ...ctx.chain.relayNode,
    async request() {
      underWay += 1;
      return gate.promise;
    },
  };
  await using served = createHttp(ctx);
  chainRoutes({ ...ctx, chain: { ...ctx.chain, relayNode } }, served);
  const config = {
    largeAnswerOf: (asked: Parameters<typeof callerAddressOf>[1]) =>
      limitNetworkOf(callerAddressOf(ctx, asked)),
  };
  served.get("/w/other", { config }, async () => ({}));
  const baseUrl = await served.listen({ port: 0, host: "127.0.0.1" });
  const one = call("eth_chainId");
  const ones = Array.from({ length: 5 }, async () => post(`${baseUrl}/w/chain`, one));
  await until("four are under way", async () => (underWay === 4 ? true : null));
  assert.equal((await fetch(`${baseUrl}/w/other`)).status, 200, "other answers are not held up");
  const list = Array.from({ length: 50 }, () => one);
  const lists = Array.from({ length: 12 }, async () => post(`${baseUrl}/w/chain`, list));
  const { status, headers } = await Promise.race(lists);
  const askedMeanwhile = underWay;
  gate.resolve("0x1");
  const policy = headers.get("ratelimit-policy");
  assert.deepEqual([status, policy, askedMeanwhile], [429, '"default";q=500;w=10', 4]);
  for (const answer of await Promise.all(ones)) assert.equal(answer.status, 200);
  await Promise.all(lists);
});
