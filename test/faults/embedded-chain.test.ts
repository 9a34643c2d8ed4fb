// The embedded chain keeps nothing but its journal: whatever dies, the same chain comes back, and never half of it.
import assert from "node:assert/strict";
import fs from "node:fs";
import { syncBuiltinESMExports } from "node:module";
import { test } from "node:test";
import { addressOfPrivateKey, type Hex } from "@svc/protocol";
import { sql } from "../../service/src/platform/database/db.ts";
import type { OpenContext } from "../../service/src/compose.ts";
import { openTestDatabase } from "../../service/src/platform/database/test-database.ts";
import { describeStartFault } from "../../service/src/platform/process/start-fault.ts";
import {
  balanceOf,
  blockOf,
  cpuMsOf,
  nodePid,
  openContextOf,
  openProcess,
  openPurse,
  signerOf,
  untilAnswered,
  untilReceived,
  writeJournal,
} from "../embedded-chain.ts";
import { openEmbeddedChain } from "../../service/src/chain/embedded-chain.ts";

test("a killed node comes back whole: nobody ever sees the beginning of its replay", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await (await openEmbeddedChain(ctx))[Symbol.asyncDispose]();
  const sign = await openPurse(ctx);
  await writeJournal(ctx, { sign, blocks: 400, total: 400, each: 1 });
  await using node = await openEmbeddedChain(ctx);
  await node.submit([sign(400), sign(401)]);
  await untilReceived(node, 402n);
  const before = await blockOf(node);
  process.kill(await nodePid({ ctx }), "SIGKILL");
  const seen = new Set<bigint>();
  // While nobody mines, the submission may be refused and is repeated; it is never half stored.
  const submitted = untilAnswered("the submission", async () =>
    node.submit([sign(402)]).then(() => true),
  );
  await untilAnswered("the whole chain", async () => {
    const balance = await balanceOf(node);
    seen.add(balance);
    return balance === 403n ? balance : null;
  });
  await submitted;
  assert.deepEqual(
    [...seen].filter((balance) => balance < 402n),
    [],
  );
  assert.equal((await blockOf(node, before.number)).hash, before.hash);
});

test("transactions that come while the chain is replayed are mined after it", async () => {
  await using database = await openTestDatabase();
  await using first = await openContextOf(database.url);
  await (await openEmbeddedChain(first))[Symbol.asyncDispose]();
  const sign = await openPurse(first);
  await writeJournal(first, { sign, blocks: 400, total: 400, each: 1 });
  const opening = openEmbeddedChain(first);
  // As left by another process, whose transaction was admitted while the old owner still lived.
  await first.db
    .query(sql`insert into embedded_transaction (hash, raw, signer, nonce, cost_wei, created_at)
    select '0x00', decode(${sign(400).slice(2)}, 'hex'), faucet_address, 400, 1, 0 from embedded_chain`);
  const state = { isOpen: false };
  const opened = opening.finally(() => {
    state.isOpen = true;
  });
  opened.catch(() => undefined);
  while (!state.isOpen) await first.db.query(sql`select pg_notify('embedded_chain', '')`);
  let head: string;
  {
    await using node = await opened;
    await untilReceived(node, 401n);
    const block = await blockOf(node);
    assert.equal(Number(block.number), 401);
    head = block.hash;
  }
  await using again = await openEmbeddedChain(first);
  assert.equal((await blockOf(again)).hash, head);
});

test("a process that lost the lock decides no more blocks", async () => {
  await using database = await openTestDatabase();
  await using first = await openProcess(database.url);
  const sign = await openPurse(first.ctx);
  await first.node.submit([sign(0)]);
  await untilReceived(first.node, 1n);
  await using second = await openProcess(database.url);
  for (let round = 1; round <= 5; round++) {
    // The owner's connection breaks while work is on its way; both processes reach for the chain.
    const submitted = untilAnswered("the submission", async () =>
      second.node.submit([sign(round)]).then(() => true),
    );
    await first.ctx.db.query(
      sql`select pg_terminate_backend(pid) from pg_locks
      where locktype = 'advisory' and mode = 'ExclusiveLock' and granted
        and database = (select oid from pg_database where datname = current_database())`,
    );
    await submitted;
    await untilReceived(first.node, BigInt(round + 1));
    await untilReceived(second.node, BigInt(round + 1));
    // The chain may change hands once more, and its node be away meanwhile.
    const [ofFirst, ofSecond] = await untilAnswered("both heads", async () =>
      Promise.all([blockOf(first.node), blockOf(second.node)]),
    );
    assert.equal(ofFirst.hash, ofSecond.hash);
  }
});

test("a node that cannot start leaves the chain to the next try", async (t) => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  const broken = t.mock.method(fs, "mkdtempSync", () => {
    throw new Error("no room");
  });
  syncBuiltinESMExports();
  const fault = await openEmbeddedChain(ctx).catch((error: unknown) => error);
  broken.mock.restore();
  syncBuiltinESMExports();
  assert.match(describeStartFault(fault) ?? "", /chain cannot be started: .*TMPDIR.*: no room$/);
  await using node = await openEmbeddedChain(ctx);
  assert.equal(Number((await blockOf(node)).number), 0);
});

test("a process that cannot mine lets go of the chain, and another goes on with it", async (t) => {
  await using database = await openTestDatabase();
  await using first = await openProcess(database.url);
  const sign = await openPurse(first.ctx);
  await first.node.submit([sign(0)]);
  await untilReceived(first.node, 1n);
  await using second = await openProcess(database.url);
  t.mock.method(first.ctx.clock, "nowMs", () => assert.fail("this clock stands still"));
  await untilAnswered("the submission", async () => second.node.submit([sign(1)]).then(() => true));
  await untilReceived(second.node, 2n);
});

test("a journal that was changed is not replayed into another chain", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  {
    await using node = await openEmbeddedChain(ctx);
    const sign = await openPurse(ctx);
    await node.submit([sign(0)]);
    await untilReceived(node, 1n);
    await untilAnswered("the hash", async () => {
      const [row] = await ctx.db.query<{ hash: string | null }>(
        sql`select hash from embedded_block`,
      );
      return row?.hash ?? null;
    });
  }
  await ctx.db.query(sql`update embedded_block set time = time + 1`);
  await assert.rejects(openEmbeddedChain(ctx), /came back with another block 1/);
  await ctx.db.query(sql`update embedded_block set time = time - 1`);
  {
    await using node = await openEmbeddedChain(ctx);
    assert.equal(await balanceOf(node), 1n);
    const dump = String(await node.request("anvil_dumpState", [false]));
    const state = Buffer.from(dump.slice(2), "hex");
    await ctx.db.query(sql`update embedded_chain set folded_block = 1, folded_state = ${state}`);
  }
  const other = `0x${"ab".repeat(32)}`;
  const [block] = await ctx.db.query<{ hash: string }>(sql`select hash from embedded_block`);
  await ctx.db.query(sql`update embedded_block set hash = ${other}`);
  await assert.rejects(openEmbeddedChain(ctx), /came back with another block 1/, "from a fold");
  await ctx.db.query(sql`update embedded_block set hash = ${block?.hash ?? ""}`);
  await using node = await openEmbeddedChain(ctx);
  assert.equal(await balanceOf(node), 1n);
});

test("after 10,000 transactions the chain starts within 5 seconds, past the 8,191st block too", async () => {
  await using database = await openTestDatabase();
  await using ctx = await openContextOf(database.url);
  await (await openEmbeddedChain(ctx))[Symbol.asyncDispose]();
  const sign = await openPurse(ctx);
  await writeJournal(ctx, { sign, blocks: 8_500, total: 10_000, each: 2 });
  let head: string;
  {
    await using node = await openEmbeddedChain(ctx);
    head = (await blockOf(node)).hash;
    assert.equal(await balanceOf(node), 10_000n);
  }
  const before = process.cpuUsage();
  await using node = await openEmbeddedChain(ctx);
  const { user, system } = process.cpuUsage(before);
  // Computing time, which other programs and a machine that stalls do not lengthen.
  const tookMs = (user + system) / 1000 + cpuMsOf(await nodePid({ ctx }));
  assert.ok(tookMs < 5_000, `it took ${tookMs} ms`);
  assert.equal((await blockOf(node)).hash, head);
  assert.ok((await blockOf(node, "0x5")).hash, "old blocks are still there");
  await node.submit([sign(10_000)]);
  await untilReceived(node, 10_001n);
});

/** Deploys what keeps the hash of the block two before its own: PUSH1 2 NUMBER SUB BLOCKHASH PUSH0 SSTORE STOP. */
const keepsHash = { to: null, value: 0n, data: "0x60024303405f5500", gas: 30_000_000n } as const;

test("what a contract learns of old blocks is the same after a fold, for whoever replays and whoever mined", async () => {
  await using database = await openTestDatabase();
  await using first = await openProcess(database.url);
  await using second = await openProcess(database.url);
  const sign = await openPurse(first.ctx);
  const foldOf = async (): Promise<number | null> => {
    const [row] = await first.ctx.db.query<{ folded: number | null }>(
      sql`select folded_block as folded from embedded_chain`,
    );
    return row?.folded ?? null;
  };
  // The journal is folded by gas limit, and these limits are high enough to cause a fold on the way.
  const reading = new AbortController();
  const away: unknown[] = [];
  const read = (async () => {
    while (!reading.signal.aborted) await balanceOf(second.node).catch((error) => away.push(error));
  })();
  for (let nonce = 0; nonce < 26; nonce++)
    await first.node.submit([sign(nonce, { gas: 30_000_000n })]);
  await untilReceived(first.node, 26n);
  const folded = await untilAnswered("a fold", foldOf);
  for (const nonce of [26, 27]) await first.node.submit([sign(nonce, keepsHash)]);
  await first.node.submit([sign(28)]);
  await untilReceived(second.node, 27n);
  reading.abort();
  await read;
  assert.deepEqual(away, []);
  const before = await blockOf(first.node);
  process.kill(await nodePid(first), "SIGKILL");
  await untilReceived(first.node, 27n);
  assert.deepEqual([await blockOf(first.node), await foldOf()], [before, folded]);
  await first.node.submit([sign(29)]);
  await untilReceived(second.node, 28n);
});

test("a process that is not told of the node after a fold takes no coin twice", async () => {
  await using database = await openTestDatabase();
  await using first = await openProcess(database.url);
  await using ctx = await openContextOf(database.url);
  const { notifications } = ctx;
  const deaf: typeof notifications = {
    ...notifications,
    subscribe: async (channel, handler) =>
      notifications.subscribe(
        channel,
        channel === "embedded_chain_owner" ? () => undefined : handler,
      ),
  };
  await using second = await openEmbeddedChain({ ...ctx, notifications: deaf });
  const sign = await openPurse(first.ctx);
  const key = Buffer.alloc(32, 7);
  const poor = addressOfPrivateKey(key);
  const spend = signerOf(key, await first.node.readChainId());
  await first.node.submit([sign(0, { to: poor, value: 10n })]);
  await untilAnswered("the coin", async () =>
    (await balanceOf(second, poor)) === 10n ? true : null,
  );
  for (let nonce = 1; nonce < 27; nonce++)
    await first.node.submit([sign(nonce, { gas: 30_000_000n })]);
  await untilReceived(first.node, 26n);
  await first.node.submit([spend(0, { value: 10n })]);
  await untilReceived(first.node, 36n);
  await untilWaiting(first.ctx, 0);
  await assert.rejects(second.submit([spend(1, { value: 10n })]), /insufficient funds/);
  await second.submit([spend(1, { value: 0n })]);
});

test("a block holds what is computed in about a second", async () => {
  await using database = await openTestDatabase();
  await using chain = await openProcess(database.url);
  const sign = await openPurse(chain.ctx);
  const gases = [30_000_000n, 30_000_000n, 21_000n, 30_000_000n, 29_000_000n, 21_000n];
  await chain.node.submit(gases.map((gas, nonce) => sign(nonce, { gas })));
  await untilReceived(chain.node, 6n);
  const rows = await chain.ctx.db.query<{ gas: number }>(
    sql`select sum(gas)::bigint as gas from embedded_transaction group by block_number order by block_number`,
  );
  const used = rows.map(({ gas }) => gas);
  assert.ok(Math.max(...used) <= 60_000_000, used.join(" "));
  assert.equal(
    used.reduce((sum, gas) => sum + gas, 0),
    119_042_000,
  );
});

test("a journaled transaction is mined: nobody spends coin twice while a block is on its way", async () => {
  await using database = await openTestDatabase();
  await using chain = await openProcess(database.url);
  const { ctx, node } = chain;
  const sign = await openPurse(ctx);
  const key = Buffer.alloc(32, 7);
  const poor = addressOfPrivateKey(key);
  await node.submit([sign(0, { to: poor, value: 10n })]);
  await untilAnswered("the coin", async () =>
    (await balanceOf(node, poor)) === 10n ? true : null,
  );
  const spend = signerOf(key, await node.readChainId());
  await node.submit([spend(0, { value: 8n })]);
  await assert.rejects(node.submit([spend(1, { value: 3n })]), /insufficient funds/);
  await untilReceived(node, 8n);
  await untilWaiting(ctx, 0);
  // The node has mined block 2, and nobody has noted that yet.
  await ctx.db.query(sql`update embedded_block set hash = null where number = 2`);
  await assert.rejects(node.submit([spend(1, { value: 3n })]), /insufficient funds/);
  await node.submit([spend(1, { value: 2n })]);
  await untilReceived(node, 10n);
});

test("a transaction in a non-canonical encoding is refused, and uses up no nonce", async () => {
  await using database = await openTestDatabase();
  await using chain = await openProcess(database.url);
  const { ctx, node } = chain;
  const own = (await openPurse(ctx))(0);
  // The nonce 0 as a byte instead of an empty string: the signature recovers to the same account.
  const at = own.indexOf((await node.readChainId()).toString(16)) + 8;
  assert.equal(own.slice(at, at + 2), "80");
  const rewritten: Hex = `0x${own.slice(2, at)}00${own.slice(at + 2)}`;
  await assert.rejects(node.submit([rewritten]), /encoded wrongly/);
  await node.submit([own]);
  await untilReceived(node, 1n);
});

/** Waits until this many transactions of the journal are in no block, or in one that is not known to be mined. */
async function untilWaiting(ctx: OpenContext, count: number): Promise<void> {
  await untilAnswered(`${count} transactions wait`, async () => {
    const [row] = await ctx.db.query<{
      n: number;
    }>(sql`select count(*) as n from embedded_transaction
      left join embedded_block on number = block_number where embedded_block.hash is null`);
    return row?.n === count ? true : null;
  });
}
