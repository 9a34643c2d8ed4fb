// What nodes do to transactions: break, answer for another chain, or lack the contracts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { NodeAway } from "../../service/src/chain/node.ts";
import { openRemoteNode } from "../../service/src/chain/remote-node.ts";
import { openGate, startAnvil } from "../anvil.ts";
import { alarmsOf, contractsTotal, rowsOf, settle, settledOn } from "../outbox-looks.ts";
import { openInstallation } from "../settling.ts";

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
  // It takes the bytes and does not say so.
  gate.decide((method) => (method === "eth_sendRawTransaction" ? "broken" : "pass"));
  await process.work();
  assert.equal((await rowsOf(process))[0]?.status, "sent");
  gate.decide(() => "pass");
  await settle(anvil, installation, [process]);
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
  // The same account has sent more there.
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
