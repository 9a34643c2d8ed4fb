// A deployment or a crash while the node of the chain is away: what needs no chain goes on in the process that starts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { isDeepStrictEqual } from "node:util";
import { NodeAway } from "../../service/src/chain/node.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { type Anvil, openGate, startAnvil } from "../anvil.ts";
import { logIn } from "../login-flow.ts";
import { alarmsOf } from "../outbox-looks.ts";
import { until } from "../patience.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";
import {
  fundedKey,
  type Installation,
  openInstallation,
  type SettlingProcess,
} from "../chain-processes.ts";
import { freePort, openWorld } from "../world.ts";

async function askChain(baseUrl: string, method: string): Promise<unknown> {
  const answer = await fetch(`${baseUrl}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [] }),
  });
  return answer.json();
}

/** Mines and works for as many blocks as a transaction needs to become final. */
async function settle(
  anvil: Anvil,
  installation: Installation,
  process: SettlingProcess,
): Promise<void> {
  for (let block = 0; block < 32; block += 1) {
    await anvil.mine();
    installation.advance(4);
    await process.work();
  }
}

const statusAt = async (url: string): Promise<number> => (await fetch(url)).status;

test("a process starts while the node is away, logs people in, and has the chain once the node answers as that chain", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using world = await openWorld({
    CHAIN: "on",
    CHAIN_RPC_URL: gate.url,
    SIGNER_KEY: fundedKey,
  });
  gate.decide(() => "broken");
  const port = await freePort();
  const lines: string[] = [];
  const { promise: refused, resolve } = Promise.withResolvers<string>();
  await using started = await world.startProcess(
    { LOG_LEVEL: "error", BASE_URL: `http://localhost:${port}` },
    {
      port,
      onLine: (line) => {
        lines.push(line);
        if (line.includes('"other_chain"')) resolve(line);
      },
    },
  );
  assert.ok(lines.some((line) => line.includes('"node_unreachable"')));
  assert.equal(await statusAt(`${started.url}/health/alive`), 200);
  assert.equal(await statusAt(`${started.url}/health/ready`), 200);
  const { tokens } = await logIn(started.url, world.client, newIdentity());
  assert.ok(tokens.id_token);
  const contract = { ...newIdentity(), address: `0x${"c0".repeat(20)}` as const };
  const away = await askChain(world.baseUrl, "eth_blockNumber");
  for (const url of [world.baseUrl, started.url]) {
    assert.deepEqual(await askChain(url, "eth_blockNumber"), away);
    await assert.rejects(openWalletSession(url, contract), /answered 503.*chain_unavailable/);
  }
  gate.decide((method) => (method === "eth_chainId" ? { result: "0x1092" } : "pass"));
  assert.match(await refused, /settles on chain 31999, but the node is of chain 4242/);
  assert.deepEqual(await askChain(started.url, "eth_blockNumber"), away);
  await assert.rejects(openWalletSession(started.url, contract), /answered 503.*chain_unavailable/);
  assert.equal(await statusAt(`${started.url}/health/ready`), 200);
  gate.decide(() => "pass");
  // A look at the node that began before may end after, and a block may come between the two answers.
  await until("both processes have the chain", async () => {
    const [here, there] = [
      await askChain(started.url, "eth_blockNumber"),
      await askChain(world.baseUrl, "eth_blockNumber"),
    ];
    return isDeepStrictEqual(here, there) && !isDeepStrictEqual(here, away) ? here : null;
  });
  await assert.rejects(openWalletSession(started.url, contract), /answered 422.*signature_wrong/);
});

test("the first start is refused while the node is away", async () => {
  await using installation = await openInstallation({ url: "http://127.0.0.1:9/?key=canary" });
  await assert.rejects(
    installation.openProcess(),
    (error: unknown) => error instanceof NodeAway && !error.message.includes("canary"),
  );
});

test("a start while the node is away, or says no more than its chain, sends what waits once the node answers", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  const { contracts, operator } = await installation.openProcess().then(async (process) => {
    await process[Symbol.asyncDispose]();
    return process.chain;
  });
  for (const subject of ["a", "b"]) {
    gate.decide((method) => (subject === "b" && method === "eth_chainId" ? "pass" : "broken"));
    await using process = await installation.openProcess();
    assert.deepEqual([process.chain.contracts, process.chain.operator], [contracts, operator]);
    await process.queue(subject);
    await process.work();
    assert.equal(await alarmsOf(process, "node_unreachable"), 2);
    gate.decide(() => "pass");
    await settle(anvil, installation, process);
    assert.deepEqual(
      process.done.map((each) => [each.subjectId, each.status]),
      [[subject, "succeeded"]],
    );
  }
});

test("a node that was away at the start and comes back as another chain, or without the contracts, gets nothing", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await installation.openProcess().then(async (process) => process[Symbol.asyncDispose]());
  gate.decide(() => "broken");
  await using process = await installation.openProcess();
  await process.queue("a");
  const wrongs = {
    eth_chainId: "0x1092",
    eth_getCode: "0x00",
  };
  for (const [at, [wrong, result]] of Object.entries(wrongs).entries()) {
    gate.decide((method) => (method === wrong ? { result } : "pass"));
    gate.calls.clear();
    await process.work();
    await assert.rejects(process.chain.node.request("eth_blockNumber"), NodeAway);
    await assert.rejects(process.chain.node.submit(["0x01"]), NodeAway);
    await assert.rejects(process.chain.relayNode.request("eth_blockNumber"), NodeAway);
    const allowed = new Set(["eth_chainId", "eth_getCode"]);
    assert.deepEqual(new Set(gate.calls.keys()).difference(allowed), new Set());
    assert.equal(await alarmsOf(process, "other_chain"), 4 * (at + 1));
    assert.deepEqual(
      await process.ctx.db.query(sql`
        select status, raw from chain_transaction t
        left join chain_transaction_hash h on h.transaction_id = t.id where kind = 'test.settle'`),
      [{ status: "queued", raw: null }],
    );
  }
  gate.decide(() => "pass");
  await settle(anvil, installation, process);
  assert.equal(process.done.length, 1);
  gate.calls.clear();
  await process.chain.relayNode.request("eth_blockNumber");
  assert.equal(gate.calls.get("eth_getCode"), undefined, "it was examined once for all");
});

test("a node that refuses every call is away: at the start, and until it has shown that it is that chain", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await installation.openProcess().then(async (process) => process[Symbol.asyncDispose]());
  gate.decide(() => ({ error: { code: -32_005, message: "too many requests" } }));
  await using process = await installation.openProcess();
  await process.queue("a");
  for (let run = 0; run < 5; run += 1) {
    await process.work();
    await assert.rejects(process.chain.node.request("eth_blockNumber"), NodeAway);
    installation.advance(60);
  }
  assert.equal(await alarmsOf(process, "would_revert"), 0);
  gate.decide(() => "pass");
  await settle(anvil, installation, process);
  assert.deepEqual(
    process.done.map((each) => [each.subjectId, each.status]),
    [["a", "succeeded"]],
  );
});
