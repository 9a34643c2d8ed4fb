// What nodes do to transactions: break, answer for another chain, or lack the contracts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { keccak256 } from "viem/utils";
import { readerOf } from "../chain-reader.ts";
import { readBalance } from "../../service/src/chain/chain-view.ts";
import { ensureContracts, planDeployment } from "../../service/src/chain/deployment.ts";
import { verifySignature } from "../../service/src/chain/index.ts";
import { NodeAway } from "../../service/src/chain/node.ts";
import { answerCall } from "../../service/src/chain/relay.ts";
import { openRemoteNode } from "../../service/src/chain/remote-node.ts";
import { forgetBytes } from "../../service/src/chain/transaction-store.ts";
import { type Anvil, openGate, startAnvil } from "../anvil.ts";
import { alarmsOf, contractsTotal, rowsOf, settle, settledOn } from "../outbox-looks.ts";
import { openInstallation } from "../chain-processes.ts";

const contractWallet = `0x${"c1".repeat(20)}` as const;
const lateCode = "0x00";
/** PUSH1 01 PUSH0 RETURN: deploys one zero byte. */
const lateInitCode = "0x60015ff3";
/** PUSH4 <ERC-1271 magic value> PUSH1 e0 SHL PUSH0 MSTORE PUSH1 20 PUSH0 RETURN. */
const agreeing = "0x631626ba7e60e01b5f5260205ff3";

test("a node that breaks, or answers for another chain, gets nothing and loses nothing", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  await process.queue("a");
  gate.decide(() => "broken");
  await process.work();
  assert.equal(await alarmsOf(process, "node_unreachable"), 1);
  gate.decide((method) => (method === "eth_chainId" ? { result: "0x1" } : "pass"));
  await process.work();
  assert.equal(await alarmsOf(process, "other_chain"), 1);
  assert.equal((await rowsOf(process))[0]?.status, "queued");
  // The call fails without an answer, so the node may have taken the bytes.
  gate.decide((method) => (method === "eth_sendRawTransaction" ? "broken" : "pass"));
  await process.work();
  assert.equal((await rowsOf(process))[0]?.status, "sent");
  gate.decide(() => "pass");
  await settle(anvil, installation, [process]);
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
  assert.equal(await settledOn(anvil, process), 1);
});

test("a node's malformed answer holds transactions up with an alarm, and loses nothing", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  await process.queue("a");
  let alarms = 0;
  for (const method of ["eth_getBlockByNumber", "eth_getTransactionCount", "eth_estimateGas"])
    for (const result of [null, "0x", {}]) {
      gate.decide((called) => (called === method ? { result } : "pass"));
      await process.work();
      alarms += 1;
      const told = `${method} ${JSON.stringify(result)}`;
      assert.equal(await alarmsOf(process, "node_unreachable"), alarms, told);
    }
  gate.decide(() => "pass");
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
  assert.equal(await settledOn(anvil, process), 1);
});

test("a transaction for which the node estimates too little gas is mined, and keeps nothing else waiting", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  gate.decide((method) => (method === "eth_estimateGas" ? { result: "0x5208" } : "pass"));
  await process.queue("a", { extraBytes: 1_000 });
  await process.work();
  gate.decide(() => "pass");
  await process.queue("b");
  await settle(anvil, installation, [process]);
  assert.deepEqual(
    process.done.map(({ subjectId }) => subjectId),
    ["a", "b"],
  );
  assert.equal(process.done[1]?.status, "succeeded");
});

test("a call from outside that the node cannot answer fails no call of the service's own", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  const { ctx, chain } = process;
  gate.decide((method) => (method === "eth_getLogs" ? "broken" : "pass"));
  const logs = { id: 1, method: "eth_getLogs", params: [{ blockHash: `0x${"00".repeat(32)}` }] };
  const [answer] = await Promise.all([
    answerCall(ctx, logs, "somebody"),
    readBalance(chain, chain.operator),
  ]);
  assert.match(JSON.stringify(answer), /the chain cannot answer now/);
});

test("a contract that is asked for long keeps neither the questions to others nor the service's own calls waiting", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  const { ctx, chain } = process;
  const slowWallet = `0x${"c2".repeat(20)}` as const;
  for (const wallet of [contractWallet, slowWallet])
    await anvil.rpc("anvil_setCode", [wallet, agreeing]);
  const ask = async (address: typeof contractWallet): Promise<boolean> =>
    verifySignature(
      ctx,
      { address, digest: new Uint8Array(32), signature: "0x01" },
      async () => true,
    );
  // After a first call the limit is counted without the database, so the calls below all start in one turn.
  assert.equal(await ask(contractWallet), true);
  const isSlow = (params: readonly unknown[]): boolean =>
    JSON.stringify(params).includes(slowWallet.slice(2));
  gate.decide((_method, params) => (isSlow(params) ? "hang" : "pass"));
  const asked = [slowWallet, contractWallet, contractWallet].map(ask);
  const [slow, ...others] = await Promise.allSettled([
    ...asked,
    readBalance(chain, chain.operator).then((balance) => balance > 0n),
  ]);
  assert.equal(slow?.status, "rejected");
  assert.deepEqual(
    others,
    others.map(() => ({ status: "fulfilled", value: true })),
  );
});

test("a transaction is not final where only a node that stands still on a replaced block has it", async () => {
  await using anvil = await startAnvil();
  // Calls go to either of two nodes, as behind a load balancer.
  let asked: Anvil = anvil;
  await using gate = await openGate({
    ...anvil,
    get url() {
      return asked.url;
    },
  });
  await using installation = await openInstallation(gate, { CONFIRMATIONS: "3" });
  await using process = await installation.openProcess();
  await using other = await startAnvil({ behind: anvil });
  for (const node of [anvil, other]) await node.setAutomine(false);
  gate.decide((method) => {
    asked = method === "eth_sendRawTransaction" ? other : anvil;
    return "pass";
  });
  await process.queue("a");
  await process.work();
  // `other` has one block, with the transaction; `anvil` has three, none of them with it.
  await other.mine();
  await anvil.mine(3);
  gate.decide((_method, [name]) => {
    asked = name === "latest" ? anvil : other;
    return "pass";
  });
  installation.advance(4);
  await process.work();
  assert.equal(process.done.length, 0);
  gate.decide(() => "pass");
  asked = anvil;
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
  assert.equal(await settledOn(anvil, process), 1);
});

test("what another chain's node says of the account settles nothing", async () => {
  await using anvil = await startAnvil();
  await using other = await startAnvil({ chainId: 32_000 });
  await using node = openRemoteNode(other.url);
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  // On this node's chain the account has sent more transactions.
  await other.rpc("anvil_setNonce", [process.chain.operator, "0x64"]);
  await other.mine(16);
  for (let look = 0; look < 16; look += 1) {
    installation.advance(4);
    await process.workWith(node).catch((error: unknown) => assert.ok(error instanceof NodeAway));
  }
  assert.ok((await alarmsOf(process, "other_chain")) > 0);
  assert.equal((await rowsOf(process))[0]?.nonce, contractsTotal);
  await settle(anvil, installation, [process]);
  await settle(anvil, installation, [process]);
  assert.equal(process.done.length, 1);
  assert.equal(await settledOn(anvil, process), 1);
});

test("a node's answers count only while it serves the same chain, which is re-checked every few seconds", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  const { ctx, chain } = process;
  const claim = { address: contractWallet, digest: new Uint8Array(32), signature: "0x01" };
  const read = async () =>
    Promise.allSettled([
      verifySignature(ctx, claim, async () => true),
      readerOf(chain).getCode({ address: contractWallet }),
      readBalance(chain, chain.operator),
    ]);
  const statusesOf = async () => (await read()).map(({ status }) => status);
  const asked = (): number => gate.calls.get("eth_chainId") ?? 0;
  await anvil.rpc("anvil_setCode", [contractWallet, agreeing]);
  const atStart = asked();
  installation.advance(4);
  assert.deepEqual((await read())[0], { status: "fulfilled", value: true });
  const soFar = asked();
  assert.ok(soFar > atStart);
  for (let time = 0; time < 4; time += 1) await read();
  assert.equal(asked(), soFar, "within three seconds it is not asked again");
  for (const answer of [{ result: "0x1" }, { error: { code: -32_000, message: "reverted" } }]) {
    gate.decide((method) => (method === "eth_chainId" ? answer : "pass"));
    installation.advance(4);
    for (let time = 0; time < 2; time += 1)
      assert.deepEqual(await statusesOf(), ["rejected", "rejected", "rejected"]);
    gate.decide(() => "pass");
    assert.deepEqual(await statusesOf(), ["fulfilled", "fulfilled", "fulfilled"]);
  }
});

test("a node of another chain, a foreign contract or a missing one refuses the start", async () => {
  await using anvil = await startAnvil();
  await using other = await startAnvil({ chainId: 4242 });
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(anvil);
  const { contracts } = await installation.openProcess().then(async (process) => {
    await settle(anvil, installation, [process]);
    await process[Symbol.asyncDispose]();
    return process.chain;
  });
  await assert.rejects(
    installation.openProcess({ CHAIN_RPC_URL: other.url }),
    /settles on chain 31999, but the node is of chain 4242/,
  );
  gate.decide((method) => (method === "eth_chainId" ? { result: "0x1092" } : "pass"));
  await assert.rejects(installation.openProcess({ CHAIN_RPC_URL: gate.url }), /of chain 4242/);
  await anvil.rpc("anvil_setCode", [contracts.settlement, "0x00"]);
  await assert.rejects(installation.openProcess(), /other code .* Settlement/);
  await anvil.rpc("anvil_setCode", [contracts.settlement, "0x"]);
  await assert.rejects(installation.openProcess(), /of Settlement succeeded, but nothing is at/);
});

test("a contract that another process sees mined while this one looks for it does not refuse the start", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await using other = await installation.openProcess();
  await anvil.setAutomine(false);
  const { node } = process.chain;
  const deployment = planDeployment({
    name: "Late",
    initCode: lateInitCode,
    salt: `0x${"5a".repeat(32)}`,
    codeHash: keccak256(lateCode),
  });
  const seen: unknown[] = [];
  const request: typeof node.request = async (method, params = []) => {
    const answer = await node.request(method, params);
    if (method !== "eth_getCode" || params[0] !== deployment.address) return answer;
    seen.push(answer);
    // While this answer is on its way, the other process brings the transaction to its end.
    if (seen.length === 2) await settle(anvil, installation, [other]);
    return answer;
  };
  const chain = { ...process.chain, node: { ...node, request } };
  await ensureContracts({ ...process.ctx, chain }, [deployment]);
  assert.deepEqual(seen, ["0x", "0x", lateCode]);
});

test("a node far behind makes nobody fill a nonce that an old transaction used", async () => {
  await using anvil = await startAnvil();
  await using gate = await openGate(anvil);
  await using installation = await openInstallation(gate);
  await using process = await installation.openProcess();
  const { ctx } = process;
  await settle(anvil, installation, [process]);
  await forgetBytes(ctx.db, ctx.clock.now() + 1, contractsTotal);
  await anvil.setAutomine(false);
  await process.queue("a");
  await process.work();
  let nonces = 0;
  gate.decide((method, [, block]) =>
    method === "eth_getTransactionCount" && block === "latest"
      ? { result: `0x${nonces.toString(16)}` }
      : "pass",
  );
  for (; nonces < contractsTotal; nonces += 1) {
    installation.advance(4);
    await process.work();
  }
  gate.decide(() => "pass");
  await settle(anvil, installation, [process]);
  await process.queue("b");
  await process.work();
  assert.deepEqual(
    (await rowsOf(process)).map(({ nonce }) => nonce),
    [contractsTotal, contractsTotal + 1],
  );
});

test("a foreign transaction's nonce is filled also where a reorganisation took it back with ours above it", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using process = await installation.openProcess();
  await settle(anvil, installation, [process]);
  const { operator: from } = process.chain;
  await anvil.rpc("anvil_impersonateAccount", [from]);
  await anvil.rpc("eth_sendTransaction", [{ from, to: from }]);
  await process.queue("a");
  await settle(anvil, installation, [process]);
  await anvil.setAutomine(false);
  await process.queue("b");
  await process.work();
  await anvil.reorganise(20);
  await settle(anvil, installation, [process]);
  await settle(anvil, installation, [process]);
  assert.deepEqual(
    process.done.map(({ subjectId }) => subjectId),
    ["a", "b"],
  );
  assert.equal(await settledOn(anvil, process), 2);
});
