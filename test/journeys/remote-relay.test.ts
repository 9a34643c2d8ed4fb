// Transactions of others that the service hands to a chain of others.
import assert from "node:assert/strict";
import { test } from "node:test";
import { generatePrivateKey, privateKeyToAccount } from "viem/accounts";
import { openGate, startAnvil } from "../anvil.ts";
import { fundedKey } from "../chain-processes.ts";
import { openWalletAt } from "../wallet-at.ts";
import { openWorld } from "../world.ts";

await using anvil = await startAnvil();
await using gate = await openGate(anvil);
await using world = await openWorld({
  CHAIN: "on",
  CHAIN_RPC_URL: gate.url,
  SIGNER_KEY: fundedKey,
});

interface Said {
  readonly result?: unknown;
  readonly error?: { readonly message: string };
}

async function send(raw: string): Promise<Said> {
  const call = { jsonrpc: "2.0", id: 1, method: "eth_sendRawTransaction", params: [raw] };
  const answer = await fetch(`${world.baseUrl}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(call),
  });
  return (await answer.json()) as Said;
}

await test("the sender hears what the node refuses, and may send again what the node has, mined or not", async () => {
  const account = privateKeyToAccount(generatePrivateKey());
  await anvil.rpc("anvil_setBalance", [account.address, "0xde0b6b3a7640000"]);
  const sign = async (to: `0x${string}`): Promise<string> =>
    account.signTransaction({
      type: "eip1559",
      chainId: Number(await anvil.rpc("eth_chainId")),
      nonce: 0,
      to,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: 10n ** 11n,
      maxPriorityFeePerGas: 10n ** 9n,
    });
  const first = await sign(`0x${"01".repeat(20)}`);
  const { result } = await send(first);
  assert.match(String(result), /^0x[0-9a-f]{64}$/);
  assert.equal((await send(first)).result, result, "in the pool");
  await anvil.mine();
  assert.equal((await send(first)).result, result, "in a block");
  const second = await send(await sign(`0x${"02".repeat(20)}`));
  assert.match(second.error?.message ?? "", /nonce too low/);
});

await test("a wallet pays also where the node has neither suggestions of fees nor tags of finality", async () => {
  gate.decide((method, params) => {
    if (method === "eth_maxPriorityFeePerGas" || params.includes("finalized"))
      return { error: { code: -32_601, message: "the method does not exist" } };
    return "pass";
  });
  const { wallet, address } = await openWalletAt(world);
  await anvil.rpc("anvil_setBalance", [address, "0xde0b6b3a7640000"]);
  const receiver = `0x${"0b".repeat(20)}`;
  const outcome = await wallet.approve(`svc:tx/${address}?val=7&to=${receiver}`);
  assert.equal(outcome.kind, "shown");
  assert.equal(await anvil.rpc("eth_getBalance", [receiver, "latest"]), "0x7");
  gate.decide(() => "pass");
});
