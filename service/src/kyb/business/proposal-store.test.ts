// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Hex } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { addressOf, openTestKyb } from "../test-kyb-store.ts";
import * as store from "./proposal-store.ts";
import type { Proposal } from "./proposal.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [alice, bob] = [addressOf("a"), addressOf("b")];
let count = 0;

async function propose(changed: Partial<Proposal> = {}): Promise<Proposal> {
  count += 1;
  const proposal: Proposal = {
    id: `proposal-${String(count).padStart(3, "0")}`,
    business: changed.business ?? (await kyb.addBusiness()),
    operation: "withdraw",
    arguments: "0x01",
    namesSealed: null,
    member: null,
    proposer: alice,
    nonce: 0,
    status: "open",
    createdAt: 0,
    ...changed,
  };
  await store.insertProposal(db, proposal);
  if (proposal.status !== "open") await set(proposal, proposal.status);
  return proposal;
}

const set = async ({ id }: Proposal, status: Exclude<Proposal["status"], "open">) =>
  store.setProposalStatus(db, [id], { status, now: 1 });

async function statusOf({ id }: Proposal): Promise<string | undefined> {
  const [found] = await store.listProposals(db, [id]);
  return found?.status;
}

await test("proposals that wait for votes or for the chain count, for their business and their proposer", async () => {
  const { business } = await propose();
  for (const status of ["open", "relaying", "refused", "executed"] as const)
    await propose({ business, status, proposer: bob });
  await propose();
  const counted = await db.transaction(async (tx) =>
    store.countPending(tx, { business, proposer: bob }),
  );
  assert.deepEqual(counted, { all: 3, own: 2 });
});

await test("proposals of one business are counted one after the other, and moves of all", async () => {
  const [business, elsewhere] = [await kyb.addBusiness(), await kyb.addBusiness()];
  await db.transaction(async (tx) => {
    await store.countPending(tx, { business, proposer: alice });
    const counting = async (of: typeof business) =>
      kyb.isFree(async (second) => store.countPending(second, { business: of, proposer: bob }));
    assert.deepEqual([await counting(business), await counting(elsewhere)], [false, true]);
    await store.lockMoves(tx);
    assert.equal(await kyb.isFree(store.lockMoves), false);
  });
});

await test("a proposal ends once, and is on its way until then", async () => {
  const proposal = await propose();
  await set(proposal, "relaying");
  await set(proposal, "executed");
  await set(proposal, "failed");
  await set(proposal, "relaying");
  assert.equal(await statusOf(proposal), "executed");
});

await test("a reverted proposal is settled while it is relaying, by a read of that block or a later one", async () => {
  const { business, ...proposal } = await propose({ status: "relaying" });
  const [open, elsewhere] = [await propose({ business }), await propose({ status: "relaying" })];
  for (const { id } of [proposal, open, elsewhere]) await store.noteRefusedProposal(db, id, 5);
  const refusedAt = async (block: number): Promise<string[]> =>
    (await store.listRefusedProposals(db, { business, block })).map(({ id }) => id);
  assert.deepEqual([await refusedAt(4), await refusedAt(5)], [[], [proposal.id]]);
  await set(open, "relaying");
  assert.deepEqual(await refusedAt(9), [proposal.id], "nothing was noted before it was sent");
  await store.restartProposal(db, proposal.id, 1);
  await set({ business, ...proposal }, "relaying");
  assert.deepEqual(await refusedAt(9), [], "that was its earlier transaction");
});

await test("a signature counts as withdrawn only if that was executed, for this wallet and this signature", async () => {
  const { business } = await propose({ status: "executed" });
  const isWithdrawn = async (of: { business?: typeof business; arguments?: Hex } = {}) =>
    store.isWithdrawn(db, { business, arguments: "0x01", ...of });
  assert.equal(await isWithdrawn(), true);
  assert.equal(await isWithdrawn({ arguments: "0x02" }), false);
  assert.equal(await isWithdrawn({ business: await kyb.addBusiness() }), false);
  const { business: asked } = await propose({ status: "relaying" });
  assert.equal(await isWithdrawn({ business: asked }), false);
});

await test("withdrawals are doubtful that were reverted, or that are open with another nonce", async () => {
  const { business, ...refused } = await propose({ status: "relaying" });
  await store.noteRefusedProposal(db, refused.id, 5);
  const waiting = await propose({ business, nonce: 1 });
  await propose({ business, nonce: 2 });
  await propose({ business, nonce: 1, operation: "moveTo" });
  await propose({ nonce: 1 });
  const doubtfulAt = async (block: number): Promise<string[]> =>
    (await store.listDoubtfulWithdrawals(db, { business, block, nonce: 2 }))
      .map(({ id }) => id)
      .toSorted();
  assert.deepEqual(
    [await doubtfulAt(4), await doubtfulAt(5)],
    [[waiting.id], [refused.id, waiting.id]],
  );
});

await test("the names of a charter are those of its last approved change, in this business", async () => {
  const change = { operation: "changeCharter", arguments: "0x05" } as const;
  const approved = await propose(change);
  const { business } = approved;
  const refused = await propose({ ...change, business, nonce: 9 });
  const elsewhere = await propose({ ...change, nonce: 9 });
  for (const [{ id, ...of }, status] of [
    [approved, "approved"],
    [refused, "refused"],
    [elsewhere, "approved"],
  ] as const)
    await db.query(
      sql`insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status,
          created_at, ended_at)
        values (${id}, 'governance', ${of.business}, 3, 0, ${[alice]}, 1, 0, 0, ${status}, 0, 0)`,
    );
  const find = async (args: Hex) => store.findCharterChange(db, { business, arguments: args });
  assert.equal((await find("0x05"))?.id, approved.id);
  assert.equal(await find("0x06"), null);
});

await test("moves that are open, on their way or done are followed, over several businesses", async () => {
  const [first, second, third] = [
    await kyb.addBusiness(),
    await kyb.addBusiness(),
    await kyb.addBusiness(),
  ];
  const move = async (business: typeof first, to: typeof first, status: Proposal["status"]) =>
    propose({
      business,
      operation: "moveTo",
      arguments: `0x${"00".repeat(12)}${to.slice(2)}`,
      status,
    });
  await move(first, second, "refused");
  assert.equal(await store.mayMoveOnTo(db, first, second), false);
  for (const status of ["open", "relaying", "executed"] as const) {
    const from = await kyb.addBusiness();
    await move(from, second, status);
    assert.equal(await store.mayMoveOnTo(db, from, second), true, status);
  }
  await move(first, second, "open");
  await move(second, third, "relaying");
  assert.equal(await store.mayMoveOnTo(db, first, third), true);
  assert.equal(await store.mayMoveOnTo(db, third, first), false);
});
