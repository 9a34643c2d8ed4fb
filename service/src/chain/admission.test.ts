import assert from "node:assert/strict";
import { test } from "node:test";
import { privateKeyToAccount } from "viem/accounts";
import type { Hex } from "@svc/protocol";
import { parseTransaction, serializeTransaction, type Signature } from "viem";
import { checkPrice, checkTurn, readTransaction } from "./admission.ts";

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

test("a transaction is the next one of its account: none is skipped, none taken twice", async () => {
  const sent = { ...given, nonce: 5, to: account.address, gas: 21_000n } as const;
  const transaction = readTransaction(await account.signTransaction(sent), chainId);
  const turn = (nextNonce: number): void =>
    checkTurn(transaction, { nextNonce, openWei: 0n, balanceWei: 42_000n });
  turn(5);
  assert.throws(() => turn(6), /nonce too low/);
  assert.throws(() => turn(4), /nonce too high: the next one is 4/);
});

const readCreation = async (bytes: number): Promise<unknown> => {
  const data = `0x${"00".repeat(bytes)}` as const;
  const raw = await account.signTransaction({ ...given, data, gas: 30_000_000n });
  return readTransaction(raw, chainId);
};

test("a contract has 49152 bytes of creation code at most, and a transaction 131072", async () => {
  await readCreation(49_152);
  await assert.rejects(readCreation(49_153), /the contract is too large/);
  const raw = `0x${"00".repeat(131_073)}` as const;
  assert.throws(() => readTransaction(raw, chainId), /the transaction is too large/);
  assert.throws(() => readTransaction(raw.slice(0, -2), chainId), /cannot be read/);
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

const hex = (number: bigint): Hex => `0x${number.toString(16).padStart(64, "0")}`;

test("a signature that others could have altered, or that nobody made, is refused", async () => {
  const sent = { ...given, to: account.address, gas: 21_000n } as const;
  const { r, s, yParity } = parseTransaction(await account.signTransaction(sent));
  const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;
  const mirrored = { r: r ?? "0x", s: hex(order - BigInt(s ?? 0)), yParity: 1 - (yParity ?? 0) };
  const read = (signature: Signature): unknown =>
    readTransaction(serializeTransaction(sent, signature), chainId);
  assert.throws(() => read(mirrored), /the signature is malleable/);
  assert.throws(() => read({ ...mirrored, r: hex(5n), s: hex(1n) }), /the signature is none/);
  assert.throws(() => readTransaction(serializeTransaction(sent), chainId), /is encoded wrongly/);
});

test("what no node takes is refused: a tip above the price, another chain, another type", async () => {
  const sent = { ...given, to: account.address, gas: 21_000n } as const;
  const raw = await account.signTransaction(sent);
  assert.throws(() => readTransaction(raw, chainId + 1), /for another chain/);
  // Its tip is 1 and its price 2; the library signs none with a higher tip.
  const tipped = raw.replace("0102825208", "0302825208") as Hex;
  assert.notEqual(tipped, raw);
  assert.throws(() => readTransaction(tipped, chainId), /cannot be read/);
  const free = await account.signTransaction({ ...sent, maxFeePerGas: 0n });
  assert.throws(() => readTransaction(free, chainId), /its tip is above its price/);
  const delegating = await account.signTransaction({
    ...sent,
    type: "eip7702",
    authorizationList: [],
  });
  assert.throws(() => readTransaction(delegating, chainId), /of this type are not taken/);
});

test("what is too large or of another type is refused before it is read, whatever it offers", () => {
  const blank = `0x02${"00".repeat(131_072)}` as const;
  assert.throws(() => checkPrice(blank, 1n), /the transaction is too large/);
  assert.throws(() => checkPrice("0x04c0", 1n), /of this type are not taken/);
});

test("what is offered for a unit of gas is the tip", async () => {
  const fees = { maxFeePerGas: 9n, maxPriorityFeePerGas: 5n };
  const sent = { ...given, ...fees, to: account.address, gas: 21_000n };
  const raw = await account.signTransaction(sent);
  checkPrice(raw, 5n);
  assert.throws(() => checkPrice(raw, 6n), /underpriced: gas costs 6 wei here/);
  const free = await account.signTransaction({ ...sent, maxFeePerGas: 0n });
  assert.throws(() => checkPrice(free, 1n), /underpriced/, "a tip without a price is none");
});
