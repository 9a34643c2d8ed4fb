import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, encodeCharter } from "@svc/protocol";
import { openTestContext } from "../../../../test/test-context.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { sql } from "../../platform/database/db.ts";
import type { KybContext } from "../kyb-context.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import { findBusiness, holdBusiness } from "./business-store.ts";
import { listRemovals, saveRemoval } from "./removal-store.ts";
import { finishMoves, stopBusinesses } from "./standing.ts";
import { insertMove, requestStop } from "./standing-store.ts";

await using opened = await openTestContext();

const rules = {
  signature_requests: "MAJORITY",
  data_requests: "MAJORITY",
  governance: "UNANIMOUS",
} as const;
const business: Address = `0x${"ab".repeat(20)}`;
const other: Address = `0x${"cd".repeat(20)}`;
let stopped: Address[] = [];
const ctx = Object.assign(opened, {
  endBusinessLogins: async (_tx: unknown, address: Address) => void stopped.push(address),
}) as unknown as KybContext;
for (const address of [business, other]) await insertSuspended(address);

async function insertSuspended(address: Address): Promise<void> {
  const charter = encodeCharter({ rules, members: [{ address, isVoting: true }] });
  await ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${address}, 'live', 'Test Ltd', 'suspended', ${address}, ${address}, 0, ${Buffer.alloc(32)},
        ${bufferOfHex(charter)}, 0)`,
  );
}

await test("a business is stopped as soon as a request that has it locked is done", async () => {
  stopped = [];
  await requestStop(ctx.db, business);
  const { stopping } = await ctx.db.transaction(async (tx) => {
    await holdBusiness(tx, business);
    const waiting = stopBusinesses(ctx);
    await Promise.race([waiting, untilBlocked(ctx.db, tx)]);
    return { stopping: waiting };
  });
  await stopping;
  assert.deepEqual(stopped, [business]);
});

await test("a business that is locked for long delays no other's stop, fails no job, and is stopped later", async () => {
  stopped = [];
  await requestStop(ctx.db, business);
  await requestStop(ctx.db, other);
  await ctx.db.transaction(async (tx) => {
    await holdBusiness(tx, business);
    await stopBusinesses(ctx);
  });
  assert.deepEqual(stopped, [other]);
  await stopBusinesses(ctx);
  assert.deepEqual(stopped, [other, business]);
});

await test("a move that is carried out leaves no removal in the old wallet", async () => {
  const [old, next] = [`0x${"12".repeat(20)}`, `0x${"34".repeat(20)}`] as const;
  for (const address of [old, next]) await insertSuspended(address);
  await ctx.db.query(sql`update business set status = 'active' where address = ${next}`);
  const removal = { member: old, endsAt: ctx.clock.now() + 60, keepNonce: 0 };
  for (const address of [old, next]) await saveRemoval(ctx.db, { business: address, ...removal });
  const move = { business: old, successor: next, endsAt: ctx.clock.now(), keepNonce: 0 };
  await insertMove(ctx.db, move, 0);
  await finishMoves(ctx);
  assert.equal((await findBusiness(ctx.db, old))?.status, "moved");
  const left = await listRemovals(ctx.db, [old, next]);
  assert.deepEqual(
    left.map((each) => each.business),
    [next],
  );
});
