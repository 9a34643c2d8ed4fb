import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import { checkTurn, readTransaction } from "./admission.ts";

const account = privateKeyToAccount(`0x${"11".repeat(32)}`);
const chainId = 31_337;
const given = {
  type: "eip1559",
  chainId,
  nonce: 0,
  maxFeePerGas: 2n,
  maxPriorityFeePerGas: 1n,
} as const;

test("a call pays at least for its bytes, by the floor of EIP-7623, and takes at most 30 million gas", async () => {
  const data = `0x${"01".repeat(100)}` as const;
  const read = async (gas: bigint): Promise<bigint> => {
    const raw = await account.signTransaction({ ...given, to: account.address, data, gas });
    return readTransaction(raw, chainId).gas;
  };
  await assert.rejects(read(24_999n), /intrinsic gas too low/);
  assert.equal(await read(25_000n), 25_000n);
  assert.equal(await read(30_000_000n), 30_000_000n);
  await assert.rejects(read(30_000_001n), /gas limit is above/);
});

test("an account may spend all that it has, and no more", async () => {
  const raw = await account.signTransaction({
    ...given,
    to: account.address,
    gas: 21_000n,
    value: 8n,
  });
  const transaction = readTransaction(raw, chainId);
  const state = { nextNonce: 0, openWei: 10n, balanceWei: 42_018n };
  checkTurn(transaction, state);
  assert.throws(() => checkTurn(transaction, { ...state, openWei: 11n }), /insufficient funds/);
});

test("what a transaction may cost is its gas at its highest price, and what it sends", async () => {
  const { type: _, maxFeePerGas: __, maxPriorityFeePerGas: ___, ...plain } = given;
  const sent = { to: account.address, gas: 21_000n, value: 8n };
  for (const raw of [
    await account.signTransaction({ ...given, ...sent }),
    await account.signTransaction({ ...plain, ...sent, type: "legacy", gasPrice: 2n }),
    await account.signTransaction({ ...plain, ...sent, type: "eip2930", gasPrice: 2n }),
  ])
    assert.equal(readTransaction(raw, chainId).costWei, 42_008n);
});
