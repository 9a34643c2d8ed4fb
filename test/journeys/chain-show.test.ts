// What an operator publishes, and looks at before the first start: the chain by command line.
import assert from "node:assert/strict";
import { test } from "node:test";
import { addressOfPrivateKey } from "@svc/protocol";
import { callCommandLine } from "../../service/src/command-line/test-call.ts";
import { startAnvil } from "../anvil.ts";
import { fundedKey, handOverRegistry, openInstallation } from "../chain-processes.ts";

const show = async (environment: NodeJS.ProcessEnv) =>
  callCommandLine(["chain", "show", "--json"], environment);

test("the chain, its contracts and the operator's account are shown, the same before the first start as after", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  const operator = addressOfPrivateKey(Buffer.from(fundedKey, "hex"));
  await anvil.rpc("anvil_setBalance", [operator, "0x14d1120d7b160000"]);
  const before = await show(installation.environment);
  assert.deepEqual([before.status, before.err], [0, ""]);
  const { balanceCoins, newestBlock, newestBlockAt, ...anchors } = JSON.parse(before.out) as Record<
    string,
    unknown
  >;
  assert.equal(balanceCoins, "1.5");
  const { number, timestamp } = await anvil.rpc<{ number: string; timestamp: string }>(
    "eth_getBlockByNumber",
    ["latest", false],
  );
  assert.deepEqual([newestBlock, newestBlockAt], [Number(number), Number(timestamp)]);
  await using process = await installation.openProcess();
  const { registry, settlement, factories } = process.chain.contracts;
  assert.deepEqual(anchors, {
    chainId: anvil.chainId,
    registry,
    settlement,
    liveFactory: factories.live,
    sandboxFactory: factories.sandbox,
    operator,
  });
  const {
    balanceCoins: rest,
    newestBlock: newer,
    newestBlockAt: _,
    ...after
  } = JSON.parse((await show(installation.environment)).out) as Record<string, unknown>;
  assert.deepEqual(after, anchors);
  assert.ok(Number(newer) > Number(newestBlock));
  assert.ok(Number(rest) < 1.5);
});

test("a node of another chain than at the first start is refused", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  await using _ = await installation.openProcess();
  await using other = await startAnvil({ chainId: 4711 });
  const { status, err } = await show({ ...installation.environment, CHAIN_RPC_URL: other.url });
  assert.equal(status, 1);
  assert.match(err, /settles on chain 31999, but the node is of chain 4711\n$/);
});

test("a signer that the registry does not obey is refused at the start, on a chain of others and on the embedded one", async () => {
  const stranger = "22".repeat(32);
  const address = addressOfPrivateKey(Buffer.from(stranger, "hex"));
  const refusal = new RegExp(`registry 0x[0-9a-f]{40} is administered by .*${address} never sent`);
  await using anvil = await startAnvil();
  for (const node of [anvil, null]) {
    await using installation = await openInstallation(node, { SIGNER_KEY: fundedKey });
    await installation.openProcess().then(async (process) => process[Symbol.asyncDispose]());
    for (let start = 0; start < 2; start += 1)
      await assert.rejects(installation.openProcess({ SIGNER_KEY: stranger }), refusal);
    await using again = await installation.openProcess();
    assert.equal(again.chain.operator, addressOfPrivateKey(Buffer.from(fundedKey, "hex")));
  }
});

test("a signer that the registry was handed over to starts", async () => {
  await using anvil = await startAnvil();
  await using installation = await openInstallation(anvil);
  const heir = "22".repeat(32);
  const to = addressOfPrivateKey(Buffer.from(heir, "hex"));
  await anvil.rpc("anvil_setBalance", [to, "0x14d1120d7b160000"]);
  const { chain } = await installation.openProcess().then(async (process) => {
    await process[Symbol.asyncDispose]();
    return process;
  });
  await handOverRegistry(anvil, chain, to);
  await using process = await installation.openProcess({ SIGNER_KEY: heir });
  assert.equal(process.chain.operator, to);
});
