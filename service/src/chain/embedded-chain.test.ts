import assert from "node:assert/strict";
import { Socket } from "node:net";
import { Duplex } from "node:stream";
import { test } from "node:test";
import type { Hex } from "@svc/protocol";
import { parseTransaction, serializeTransaction, type TransactionSerializable } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { openContextOf } from "../../../test/embedded-chain.ts";
import { until } from "../../../test/patience.ts";
import type { OpenContext } from "../compose.ts";
import { advanceClock } from "../platform/clock.ts";
import { openDb, sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { findFaucet, openEmbeddedChain } from "./embedded-chain.ts";
import { openLockSession } from "./embedded-lock-store.ts";
import { type ChainNode, RpcError } from "./node.ts";

const receiver = "0x00000000000000000000000000000000deadbeef";

/** Signs ordinary transfers, by default from the faucet. */
async function openPurse(
  ctx: OpenContext,
  ownKey?: Hex,
): Promise<(nonce: number, more?: object) => Promise<Hex>> {
  const faucet = await findFaucet(ctx);
  assert.ok(faucet !== null);
  const faucetKey: Hex = `0x${Buffer.from(faucet.privateKey).toString("hex")}`;
  const account = privateKeyToAccount(ownKey ?? faucetKey);
  return async (nonce, more = {}) =>
    account.signTransaction({
      type: "eip1559",
      chainId: faucet.chainId,
      nonce,
      to: receiver,
      value: 1n,
      gas: 21_000n,
      maxFeePerGas: 0n,
      maxPriorityFeePerGas: 0n,
      ...more,
    });
}

async function settled(node: ChainNode, value: bigint): Promise<void> {
  await until(`the receiver has ${value}`, async () => {
    const balance = await node.request("eth_getBalance", [receiver, "latest"]).catch(() => "0x0");
    return BigInt(String(balance)) === value ? true : null;
  });
}

async function headOf(
  node: ChainNode,
): Promise<{ number: string; hash: string; timestamp: string }> {
  return (await node.request("eth_getBlockByNumber", ["latest", false])) as never;
}

test("a lost chain comes back with the same block hashes, whoever signed what is in a block, and goes on", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  let head = "";
  {
    await using node = await openEmbeddedChain(ctx);
    const sign = await openPurse(ctx);
    const signOwn = await openPurse(ctx, `0x${"11".repeat(32)}`);
    await node.submit([await sign(0), await signOwn(0, { value: 0n }), await sign(1)]);
    await settled(node, 2n);
    await node.submit([await sign(2)]);
    await settled(node, 3n);
    head = (await headOf(node)).hash;
  }
  await using node = await openEmbeddedChain(ctx);
  assert.equal((await headOf(node)).hash, head);
  const sign = await openPurse(ctx);
  await node.submit([await sign(3)]);
  await settled(node, 4n);
});

test("the newest block of the embedded chain is final", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await using node = await openEmbeddedChain(ctx);
  const sign = await openPurse(ctx);
  await node.submit([await sign(0), await sign(1)]);
  await settled(node, 2n);
  for (const block of ["finalized", "safe"])
    assert.equal(await node.request("eth_getBalance", [receiver, block]), "0x2");
  const final = await node.request("eth_getBlockByNumber", ["finalized", false]);
  assert.deepEqual(final, await headOf(node));
});

test("one process owns the chain, the others use it, and one of them takes over when it ends", async () => {
  await using database = await openTestDatabase();
  await using first = await openContextOf(database.url);
  await using second = await openContextOf(database.url);
  const owner = await openEmbeddedChain(first);
  await using other = await openEmbeddedChain(second);
  assert.equal(await other.readChainId(), await owner.readChainId());
  const sign = await openPurse(first);
  await Promise.all([other.submit([await sign(0)]), other.submit([await sign(0)])]);
  await settled(other, 1n);
  await settled(owner, 1n);
  const { hash } = await headOf(owner);
  await owner[Symbol.asyncDispose]();
  await other.submit([await sign(1)]).catch(() => undefined);
  await settled(other, 1n);
  await other.submit([await sign(1)]);
  await settled(other, 2n);
  const block = (await other.request("eth_getBlockByNumber", ["0x1", false])) as { hash: string };
  assert.equal(block.hash, hash);
});

/** A contract of this many zero bytes, with its own intrinsic gas: 53,000, 4 a byte, 2 a word. */
const creation = (bytes: number) => ({ to: null, value: 0n, data: `0x${"00".repeat(bytes)}` });
/** One address and one slot: 4,300 gas. */
const accessList = [{ address: receiver, storageKeys: [`0x${"00".repeat(32)}`] }];
const delegation = {
  type: "eip7702",
  authorizationList: [
    {
      address: receiver,
      chainId: 1,
      nonce: 0,
      r: `0x${"01".repeat(32)}`,
      s: `0x${"01".repeat(32)}`,
      yParity: 0,
    },
  ],
};
const blobs = {
  type: "eip4844",
  blobVersionedHashes: [`0x01${"02".repeat(31)}`],
  maxFeePerBlobGas: 1n,
};
const order = 0xfffffffffffffffffffffffffffffffebaaedce6af48a03bbfd25e8cd0364141n;

/** The same transaction with the other, malleable signature of the same signer. */
async function otherHalf(raw: Hex): Promise<Hex> {
  const { r, s, yParity, ...unsigned } = parseTransaction(raw);
  assert.ok(r !== undefined && s !== undefined);
  const turned = `0x${(order - BigInt(s)).toString(16)}` as const;
  return serializeTransaction(unsigned as TransactionSerializable, {
    r,
    s: turned,
    yParity: yParity === 1 ? 0 : 1,
  });
}

test("a database drops the connection that holds the chain as soon as any other of a host that vanished", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await using session = await openLockSession(database.connection);
  const read = sql`
    select name, source from pg_settings
    where name like 'tcp\\_%' or name in ('lock_timeout', 'idle_in_transaction_session_timeout') order by name`;
  const ofPool = await db.query<{ name: string; source: string }>(read);
  assert.ok(ofPool.length === 6 && ofPool.every(({ source }) => source === "client"));
  assert.deepEqual(await session.query(read), ofPool);
});

test("transactions that a node would refuse never enter the journal, and one that is mined meanwhile does not count twice", async (t) => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await using node = await openEmbeddedChain(ctx);
  const sign = await openPurse(ctx);
  const good = await sign(0);
  const refused: [Hex, RegExp][] = [
    ["0x", /hex/],
    ["0x00", /cannot be read/],
    [`${good}00`, /cannot be read|signature/],
    [await sign(0, { chainId: 1 }), /another chain/],
    [await sign(1), /nonce too high: the next one is 0/],
    [await sign(0, { gas: 20_999n }), /intrinsic gas too low/],
    [await sign(0, { gas: 30_000_001n }), /gas limit/],
    [await sign(0, { value: 10n ** 28n }), /insufficient funds/],
    [await sign(0, { maxFeePerGas: 10n ** 24n }), /insufficient funds/],
    [await sign(0, { maxPriorityFeePerGas: 1n }), /its tip is above its price/],
    [`0x${"00".repeat(131_073)}`, /too large/],
    [await sign(0, delegation), /of this type/],
    [await sign(0, blobs), /of this type/],
    [await otherHalf(good), /malleable/],
    [await sign(0, { ...creation(49_153), gas: 5_000_000n }), /the contract is too large/],
    [await sign(0, { ...creation(1), gas: 53_005n }), /intrinsic gas too low/],
    [await sign(0, { accessList, gas: 25_299n }), /intrinsic gas too low/],
  ];
  for (const [raw, message] of refused)
    await assert.rejects(node.submit([raw]), (error) => {
      assert.ok(error instanceof RpcError);
      assert.match(error.message, message);
      return true;
    });
  // A refused transaction does not affect the others of the request.
  await assert.rejects(node.submit([await sign(1), good]), /nonce too high/);
  await settled(node, 1n);
  await node.submit([good, good]);
  await node.submit([good]);
  await assert.rejects(node.submit([await sign(0, { value: 2n })]), /nonce too low/);
  // With exactly its intrinsic gas each is accepted.
  await node.submit([await sign(1, { ...creation(1), gas: 53_006n })]);
  await node.submit([await sign(2, { accessList, gas: 25_300n })]);
  await settled(node, 2n);

  const key: Hex = `0x${"11".repeat(32)}`;
  const payer = privateKeyToAccount(key).address.toLowerCase();
  const pay = await openPurse(ctx, key);
  await node.submit([await sign(3, { to: payer, value: 10n })]);
  await node.submit([await sign(4)]);
  await settled(node, 3n);
  const [read, mined] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const second = await ctx.db.transaction(async (tx) => {
    // The lock prevents new blocks.
    await tx.query(sql`lock table embedded_block in share mode`);
    await node.submit([await pay(0, { value: 6n })]);
    type Given = Parameters<Duplex["write"]>;
    const asking = t.mock.method(
      Socket.prototype,
      "write",
      function (this: Socket, ...given: Given) {
        const text = String(given[0]);
        if (!text.includes("eth_getBalance") || !text.includes(payer))
          return Duplex.prototype.write.apply(this, given);
        asking.mock.restore();
        read.resolve();
        void mined.promise.then(() => this.write(...given));
        return true;
      },
    );
    const raw = await pay(1, { value: 4n });
    const submitted = node.submit([raw]);
    await read.promise;
    return { submitted };
  });
  await settled(node, 9n);
  mined.resolve();
  await second.submitted;
  await settled(node, 13n);
});

test("a transaction that is mined before the journal says so does not count twice", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await using node = await openEmbeddedChain(ctx);
  const sign = await openPurse(ctx);
  const key: Hex = `0x${"11".repeat(32)}`;
  const pay = await openPurse(ctx, key);
  await node.submit([await sign(0, { to: privateKeyToAccount(key).address, value: 10n })]);
  await node.submit([await sign(1)]);
  await settled(node, 1n);
  // The hash of a mined block has to wait for whoever holds the lock.
  await ctx.db.query(sql`
    create function wait_for_lock() returns trigger language plpgsql as
      'begin perform pg_advisory_xact_lock_shared(7); return new; end'`);
  await ctx.db.query(sql`
    create trigger wait before update on embedded_block for each row execute function wait_for_lock()`);
  await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select pg_advisory_xact_lock(7)`);
    await node.submit([await pay(0, { value: 6n })]);
    await settled(node, 7n);
    await assert.rejects(node.submit([await pay(1, { value: 5n })]), /insufficient funds/);
    await node.submit([await pay(1, { value: 4n })]);
  });
  await settled(node, 11n);
});

test("everything that only the owner of the chain may write goes through the connection with the lock", async (t) => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  const query = t.mock.method(ctx.db, "query");
  await using node = await openEmbeddedChain(ctx);
  const sign = await openPurse(ctx);
  await node.submit([await sign(0)]);
  await settled(node, 1n);
  const texts = query.mock.calls.map(({ arguments: [statement] }) => statement.text);
  assert.ok(texts.some((text) => text.includes("insert into embedded_transaction")));
  const ofOwner = /insert into embedded_block|update embedded_/;
  assert.deepEqual(
    texts.filter((text) => ofOwner.test(text)),
    [],
  );
});

test("a chain that cannot go on is logged once a minute while it fails in the same way", async (t) => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  const setTimer = setTimeout;
  const short = ((work: () => void, ms: number) => setTimer(work, ms === 1000 ? 1 : ms)) as never;
  t.mock.method(globalThis, "setTimeout", short);
  await using node = await openEmbeddedChain(ctx);
  const told: { err: Error }[] = [];
  t.mock.method(ctx.log, "error", (line: { err: Error }) => void told.push(line));
  let tries = 0;
  const away = t.mock.property(ctx.db, "connectionString", {
    host: "127.0.0.1",
    get port() {
      tries += 1;
      return 1;
    },
  });
  // The first turn fails, and so drops its connection.
  t.mock.method(ctx.clock, "nowMs").mock.mockImplementationOnce(() => {
    throw new Error("the first fault");
  });
  await until("it was tried often", async () => (tries > 20 ? true : null));
  away.mock.restore();
  await until("it goes on", async () => headOf(node).catch(() => null));
  const [first, second, ...more] = told.map(({ err }) => err.message);
  assert.equal(first, "the first fault");
  assert.match(String(second), /ECONNREFUSED/);
  assert.deepEqual(more, []);
});

test("a moved clock moves the chain by one empty block", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await using node = await openEmbeddedChain(ctx);
  const before = Number((await headOf(node)).timestamp);
  await advanceClock(ctx.db, 86_400);
  await ctx.clock.refresh();
  await until("the chain is at the moved time", async () =>
    Number((await headOf(node)).timestamp) >= before + 86_400 ? true : null,
  );
  assert.equal((await headOf(node)).number, "0x1");
});

test("calls, estimates and the next block follow a clock that was moved while no process ran", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await (await openEmbeddedChain(ctx))[Symbol.asyncDispose]();
  await advanceClock(ctx.db, 86_400);
  await ctx.clock.refresh();
  await using node = await openEmbeddedChain(ctx);
  const now = ctx.clock.now();
  // PUSH4 now TIMESTAMP LT PUSH1 11 JUMPI STOP JUMPDEST PUSH0 PUSH0 REVERT: reverts before this time.
  const notBefore = { data: `0x63${now.toString(16).padStart(8, "0")}4210600b57005b5f5ffd` };
  for (const method of ["eth_call", "eth_estimateGas"])
    for (const block of [[], ["latest"], ["pending"]])
      await node.request(method, [notBefore, ...block]);
  const sign = await openPurse(ctx);
  await node.submit([await sign(0)]);
  await settled(node, 1n);
  assert.ok(Number((await headOf(node)).timestamp) >= now);
});
