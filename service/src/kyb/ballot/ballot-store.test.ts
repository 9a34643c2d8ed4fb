// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hex } from "@svc/protocol";
import { type Queryable, sql } from "../../platform/database/db.ts";
import { addressOf, openTestKyb } from "../test-kyb-store.ts";
import type { Ballot } from "./ballot.ts";
import * as store from "./ballot-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [alice, bob, carol] = [addressOf("a"), addressOf("b"), addressOf("c")];
const end = 1000;
const business = await kyb.addBusiness([alice, bob]);
const elsewhere = await kyb.addBusiness([alice, bob]);
let count = 0;

async function open(changed: Partial<Ballot> = {}): Promise<string> {
  count += 1;
  const ballot = {
    id: `ballot-${count}`,
    kind: "governance",
    business,
    category: 3,
    hash: null,
    clientDomainId: null,
    epoch: 0,
    voters: [alice, bob],
    needed: 2,
    validUntil: end + 3600,
    expiresAt: end,
    ...changed,
  } as const;
  await store.insertBallot(db, ballot, 0);
  return ballot.id;
}

const signatureOf = (digit: string): Hex => `0x${digit.repeat(130)}`;
const vote = async (ballotId: string, member: Address, changed = {}) =>
  store.insertVote(db, {
    ballotId,
    epoch: 0,
    member,
    kind: "approve",
    signature: signatureOf(member.slice(-1)),
    now: 1,
    ...changed,
  });

async function readBallot(id: string): Promise<Ballot | null> {
  const locked = await db.transaction(async (tx) => store.lockBallot(tx, id));
  return locked?.ballot ?? null;
}

const isBallotHeld = async (id: string): Promise<boolean> =>
  kyb.isHeld(sql`select from ballot where id = ${id} for update skip locked`);
const isBusinessHeld = async (): Promise<boolean> =>
  kyb.isHeld(sql`select from business where address = ${business} for no key update skip locked`);

async function heldBy(id: string, lock: (tx: Queryable) => Promise<unknown>) {
  return db.transaction(async (tx) => {
    const found = await lock(tx);
    return [found !== null, await isBallotHeld(id), await isBusinessHeld()];
  });
}

await test("a vote or cancellation locks the ballot, and its business against changes; a stranger locks neither", async () => {
  const id = await open();
  assert.deepEqual(await heldBy(id, async (tx) => store.lockBallot(tx, id)), [true, true, true]);
  for (const [voter, held] of [
    [bob, true],
    [carol, false],
  ] as const)
    assert.deepEqual(
      await heldBy(id, async (tx) => store.lockBallot(tx, id, { voter })),
      [held, held, held],
      voter,
    );
});

await test("a ballot is due once its last second is over, while it is open", async () => {
  const [id, ended, named] = [await open(), await open(), await open()];
  await store.endBallot(db, { id: ended, status: "cancelled", now: 1 });
  const dueAt = async (now: number): Promise<string[][]> =>
    db.transaction(async (tx) =>
      [
        await store.lockDueBallots(tx, now, 1000),
        await store.lockDueAmong(tx, [id, ended], now),
      ].map((due) =>
        due.map((each) => each.id).filter((each) => [id, ended, named].includes(each)),
      ),
    );
  assert.deepEqual(await dueAt(end), [[], []]);
  assert.deepEqual(await dueAt(end + 1), [[id, named], [id]]);
});

await test("a ballot ends once, and only an approved one can be reopened", async () => {
  const [id, refused] = [await open(), await open()];
  await store.endBallot(db, { id, status: "approved", now: 1 });
  await store.endBallot(db, { id, status: "cancelled", now: 2 });
  assert.equal((await readBallot(id))?.status, "approved");
  await store.reopenBallot(db, id);
  assert.equal((await readBallot(id))?.status, "open");
  await store.endBallot(db, { id: refused, status: "refused", now: 1 });
  await store.reopenBallot(db, refused);
  assert.equal((await readBallot(refused))?.status, "refused");
});

await test("only the open ballots of a business are restarted", async () => {
  const [id, ended] = [await open({ business: elsewhere }), await open({ business: elsewhere })];
  await store.endBallot(db, { id: ended, status: "approved", now: 1 });
  const locked = await db.transaction(async (tx) => store.lockOpenBallots(tx, elsewhere));
  assert.deepEqual(
    locked.map((each) => each.id),
    [id],
  );
});

await test("a member has one vote in an epoch of a ballot, and votes of another epoch or ballot do not count", async () => {
  const [id, other] = [await open(), await open()];
  await vote(other, bob);
  await vote(other, alice);
  assert.deepEqual(await vote(id, bob), {
    approvals: [{ member: bob, signature: signatureOf("b") }],
    refusals: 0,
  });
  assert.equal(await vote(id, bob), null);
  assert.equal(await vote(id, bob, { kind: "reject" }), null, "neither does it change");
  const hash = `0x${"77".repeat(32)}` as const;
  await store.restartBallot(db, { id, epoch: 1, voters: [bob, carol], needed: 1, hash });
  const restarted = await readBallot(id);
  assert.deepEqual(
    [restarted?.epoch, restarted?.voters, restarted?.needed, restarted?.hash],
    [1, [bob, carol], 1, hash],
  );
  const voteOf = async (epoch: number, member = bob) =>
    store.findVote(db, { ballotId: id, epoch, member });
  assert.deepEqual(
    [await voteOf(0), await voteOf(1), await voteOf(0, alice)],
    ["approve", null, null],
  );
  assert.deepEqual(await vote(id, carol, { epoch: 1, kind: "reject" }), {
    approvals: [],
    refusals: 1,
  });
  assert.deepEqual(await vote(id, bob, { epoch: 1 }), {
    approvals: [{ member: bob, signature: signatureOf("b") }],
    refusals: 1,
  });
  // If a ballot is restarted in the same epoch, earlier votes of that epoch were about something else.
  await vote(other, carol, { epoch: 1 });
  await store.restartBallot(db, { id, epoch: 1, voters: [bob, carol], needed: 2, hash: null });
  assert.deepEqual(
    [await voteOf(0), await voteOf(1), await voteOf(1, carol)],
    ["approve", null, null],
  );
  const ofOther = await store.findVote(db, { ballotId: other, epoch: 1, member: carol });
  assert.equal(ofOther, "approve");
});

await test("a vote counts as agreement to be a member of that business only", async () => {
  const id = await open({ business: elsewhere });
  await db.query(sql`update business_member set has_voted = false`);
  await vote(id, alice);
  const known = await db.query<{ business: Address }>(
    sql`select business from business_member where member = ${alice} and has_voted`,
  );
  assert.deepEqual(
    known.map((each) => each.business),
    [elsewhere],
  );
});

await test("an inbox holds open ballots with a vote of the member, until its last second and until it has voted", async () => {
  const [id, foreign] = [
    await open({ business: elsewhere, expiresAt: 2 * end }),
    await open({ business: elsewhere, expiresAt: 2 * end, voters: [alice], needed: 1 }),
  ];
  await vote(id, bob, { epoch: 7 });
  const inboxAt = async (now: number): Promise<string[]> => {
    const page = { hasAgreed: false, after: "", limit: 100, now };
    const rows = await store.listInbox(db, bob, page);
    return rows.map(({ ballot }) => ballot.id).filter((each) => [id, foreign].includes(each));
  };
  // The vote set `has_voted`; without it, and an invitation, the member has not agreed.
  await db.query(sql`update business_member set has_voted = false`);
  assert.deepEqual(await inboxAt(2 * end), [id]);
  assert.deepEqual(await inboxAt(2 * end + 1), []);
  await vote(id, bob);
  await db.query(sql`update business_member set has_voted = false`);
  assert.deepEqual(await inboxAt(2 * end), []);
});

await test("of a business that has moved only governance is in the inbox, and nothing of a suspended one", async () => {
  const left = await kyb.addBusiness([alice, bob]);
  const governance = await open({ business: left });
  const login = await open({ business: left, kind: "business_login", category: 4 });
  const listAs = async (status: string): Promise<string[]> => {
    await db.query(sql`update business set status = ${status} where address = ${left}`);
    const page = { hasAgreed: false, after: "", limit: 100, now: 0 };
    const rows = await store.listInbox(db, bob, page);
    return rows.map(({ ballot }) => ballot.id).filter((id) => [governance, login].includes(id));
  };
  assert.deepEqual(await listAs("active"), [governance, login].toSorted());
  assert.deepEqual(await listAs("moved"), [governance]);
  assert.deepEqual(await listAs("suspended"), []);
});

/** How many votes and index entries of votes were read, by earlier transactions of the connection too. */
async function countVotesRead(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ read: number }>(sql`
    select pg_stat_get_xact_tuples_returned('ballot_vote'::regclass)
      + pg_stat_get_xact_tuples_returned('ballot_vote_pkey'::regclass) as read`);
  return row?.read ?? NaN;
}

await test("a vote reads only those of its own ballot, also after a purge that left none", async () => {
  const many = async (): Promise<void> =>
    void (await db.query(sql`
      insert into ballot_vote (ballot_id, epoch, member, approval, created_at)
      select ${await open({ business: elsewhere })}, 0, n::text, decode(repeat('ab', 65), 'hex'), 0
      from generate_series(1, 2000) as n`));
  await many();
  await db.query(sql`delete from ballot_vote`);
  await db.query(sql`vacuum (analyze) ballot_vote`);
  await many();
  const id = await open();
  await vote(id, alice);
  await db.transaction(async (tx) => {
    const before = await countVotesRead(tx);
    const cast = await store.insertVote(tx, {
      ballotId: id,
      epoch: 0,
      member: bob,
      kind: "approve",
      signature: signatureOf("b"),
      now: 1,
    });
    assert.equal(cast?.approvals.length, 2);
    assert.ok((await countVotesRead(tx)) - before <= 2);
  });
});
