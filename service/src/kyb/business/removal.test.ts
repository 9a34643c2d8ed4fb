import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { openTestContext } from "../../../../test/test-context.ts";
import type { ChainContext, FinalTransaction } from "../../chain/index.ts";
import { advanceClock } from "../../platform/clock.ts";
import { sql } from "../../platform/database/db.ts";
import { kybJobs } from "../jobs.ts";
import type { KybContext } from "../kyb-context.ts";
import { saveRemoval } from "./removal-store.ts";
import { finishRemovals, isRenewable, removalFinalHandlers } from "./removal.ts";

await using opened = await openTestContext();
// Removals use nothing else of the chain; the transactions stay in their queue.
const ctx = Object.assign(opened, { chain: { isEmbedded: true } }) as unknown as ChainContext;
const business: Address = `0x${"ab".repeat(20)}`;
const member: Address = `0x${"cd".repeat(20)}`;

async function run(seconds = 0): Promise<string[]> {
  await advanceClock(ctx.db, seconds);
  await opened.clock.refresh();
  await finishRemovals(ctx);
  return listSent();
}

async function listSent(): Promise<string[]> {
  const rows = await ctx.db.query<{ subject_id: string }>(
    sql`select subject_id from chain_transaction where kind = 'business.remove' order by id`,
  );
  return rows.map((row) => row.subject_id);
}

async function announce(subjectId: string, status: FinalTransaction["status"]): Promise<void> {
  const done: FinalTransaction = {
    id: "1",
    kind: "business.remove",
    subjectId,
    hash: `0x${"77".repeat(32)}`,
    signer: `0x${"66".repeat(20)}`,
    status,
    blockNumber: 2,
    blockTime: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) =>
    removalFinalHandlers(ctx)["business.remove"]?.(tx, [done]),
  );
}

await test("a reverted removal is sent again after a growing pause, each time as another transaction", async () => {
  await ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${business}, 'live', 'Test Ltd', 'active', ${member}, 'invitation', 0, ${Buffer.alloc(32)},
        ${Buffer.alloc(1)}, 0)`,
  );
  await ctx.db.query(
    sql`insert into business_removal (business, member, ends_at, keep_nonce)
      values (${business}, ${member}, ${ctx.clock.now()}, 7)`,
  );
  const first = `${business}:7:0`;
  assert.deepEqual(await run(), [first]);
  assert.deepEqual(await run(86_400), [first], "one under way is enough");
  await announce(first, "reverted");
  await announce(first, "reverted");
  assert.deepEqual(await run(), [first]);
  assert.deepEqual(await run(590), [first]);
  assert.deepEqual(await run(10), [first, `${first}:2`]);
  await announce(`${first}:2`, "reverted");
  assert.deepEqual(await run(1190), [first, `${first}:2`]);
  assert.deepEqual(await run(10), [first, `${first}:2`, `${first}:3`]);
  await announce(`${first}:3`, "succeeded");
  assert.equal((await run(86_400)).length, 3);
  await ctx.db.query(sql`update business set epoch = 1 where address = ${business}`);
  await announce(`${first}:3`, "reverted");
  assert.equal((await run()).at(-1), `${business}:7:1`, "another epoch begins anew");
});

await test("a removal that the chain reverts twelve times is left until the members or rules change", async () => {
  await ctx.db.query(sql`update business set epoch = 2 where address = ${business}`);
  const sent = await run();
  for (let number = 1; number <= 12; number += 1) {
    const last = (await run(86_400)).at(-1) ?? "";
    assert.equal(last, number === 1 ? `${business}:7:2` : `${business}:7:2:${number}`);
    await announce(last, "reverted");
  }
  assert.equal((await run(30 * 86_400)).length, sent.length + 11);
  await ctx.db.query(sql`update business set epoch = 3 where address = ${business}`);
  assert.equal((await run()).at(-1), `${business}:7:3`);
});

await test("a failure of other work does not delay removals", async () => {
  await ctx.db.query(
    sql`update business set epoch = 5, status = 'active' where address = ${business}`,
  );
  await ctx.db.query(
    sql`insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
      values ('ballot', 'governance', ${business}, 3, 5, ${[member]}, 1, 0, 0, 'open', 0)`,
  );
  // The rules of this test do not handle expired ballots.
  const config = { ...opened.config, chain: "on" };
  const jobs = kybJobs({ ...ctx, config } as unknown as KybContext);
  const due = jobs.find(({ name }) => name === "kyb-due");
  const failing = due?.run(new AbortController().signal);
  await assert.rejects(async () => failing, /work on businesses failed/);
  assert.equal((await listSent()).at(-1), `${business}:7:5`);
});

await test("on an external chain a removal is sent two minutes late, since block times may lag", async () => {
  Object.assign(ctx.chain, { isEmbedded: false });
  const endsAt = ctx.clock.now() - 60;
  await saveRemoval(ctx.db, { business, member, endsAt, keepNonce: 9 });
  const sent = await listSent();
  assert.deepEqual(await run(), sent);
  assert.equal((await run(60)).at(-1), `${business}:9:5`);
});

await test("a removal may be renewed from the 90th day after its member's answer on", () => {
  const removal = { business, member, endsAt: 0, keepNonce: 0, answeredAt: 1000 };
  const until = 1000 + 90 * 86_400;
  assert.equal(isRenewable(removal, until - 1), false);
  assert.equal(isRenewable(removal, until), true);
  assert.equal(isRenewable({ ...removal, answeredAt: null }, until), false);
});
