// Processes that die while they settle: every transaction ends, once, without a gap.
import assert from "node:assert/strict";
import { randomInt } from "node:crypto";
import { test } from "node:test";
import { enqueueTransaction } from "../../service/src/chain/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { startAnvil } from "../anvil.ts";
import { fundedKey } from "../chain-processes.ts";
import { openWorld } from "../world.ts";
import { patienceMs } from "../patience.ts";

const killsTotal = 6;
const perRound = 25;

test(`${killsTotal} kills under load, of two processes with one signer, lose and double nothing`, async () => {
  await using anvil = await startAnvil();
  await using world = await openWorld({
    CHAIN: "on",
    CHAIN_RPC_URL: anvil.url,
    SIGNER_KEY: fundedKey,
    CONFIRMATIONS: "1",
  });
  const { ctx } = world;
  let queued = 0;
  const queue = async (): Promise<void> => {
    queued += 1;
    const root = queued.toString(16).padStart(64, "0");
    await ctx.db.transaction(async (tx) =>
      enqueueTransaction(ctx, tx, {
        kind: "test.settle",
        subjectId: String(queued),
        to: ctx.chain.contracts.settlement,
        data: `0x5ede7516${root}`,
      }),
    );
  };
  for (let kill = 0; kill < killsTotal; kill += 1) {
    await using process = await world.startProcess();
    const dies = randomInt(perRound);
    for (let each = 0; each < perRound; each += 1) {
      await queue();
      if (each === dies) await process.kill();
    }
  }
  const open = sql`select count(*) as open from chain_transaction where finished_at is null`;
  const deadline = performance.now() + patienceMs;
  for (;;) {
    const [row] = await ctx.db.query<{ open: number }>(open);
    if (row?.open === 0) break;
    assert.ok(performance.now() < deadline, `${row?.open} are not final`);
    await new Promise((resolve) => {
      setTimeout(resolve, 100);
    });
    // Time runs eleven times as fast, because a dead process's bytes are sent again only after 15 s. Anvil never mines
    // a transaction that arrives while it mines the one before, and refuses a repetition: it is outbid after 60 s.
    await world.advance(1);
  }
  // The world's own transactions (contracts, issuers' roles) are among them.
  const rows = await ctx.db.query<{ nonce: number; status: string }>(sql`
    select nonce, status from chain_transaction order by nonce`);
  assert.deepEqual(
    rows.map((row) => row.nonce),
    rows.map((_, at) => at),
  );
  assert.ok(rows.every((row) => row.status === "succeeded"));
  const filter = { fromBlock: "0x0", address: ctx.chain.contracts.settlement };
  const logs = await anvil.rpc<{ topics: string[] }[]>("eth_getLogs", [filter]);
  assert.equal(logs.length, killsTotal * perRound);
  assert.equal(new Set(logs.map((log) => log.topics[2])).size, logs.length);
});
