// How many may be open at once holds for calls at the same instant too, on two processes.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { after, before, test } from "node:test";
import { openDb, sql } from "../../service/src/platform/database/db.ts";
import { type Answer, type KybWorld, openKybWorld } from "../kyb-world.ts";
import type { ServerProcess } from "../world.ts";

let world: KybWorld;
let other: ServerProcess;
before(async () => {
  world = await openKybWorld();
  other = await world.startProcess();
});
after(async () => {
  await other[Symbol.asyncDispose]();
  await world[Symbol.asyncDispose]();
});

/**
 * How many of the first calls, one after the other, and of forty at the same instant were answered by 201; the others
 * were told that there are too many.
 *
 * @param table what is written there waits until many calls have come as far
 */
async function countMade(
  table: string,
  { first, call }: { first: number; call: (baseUrl: string) => Promise<Answer> },
): Promise<number> {
  // A pool of its own: the calls take all connections of the world's.
  await using db = openDb({ ...world.ctx.db.connectionString, connections: 2 });
  const waiting = sql`
    select from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`;
  const answers: Answer[] = [];
  for (let made = 0; made < first; made += 1) answers.push(await call(world.baseUrl));
  const { rest } = await db.transaction(async (tx) => {
    await tx.query({ name: "", text: `lock table ${table} in share mode`, values: [] });
    const calls = Array.from({ length: 40 }, async (_, at) =>
      call(at % 2 === 0 ? world.baseUrl : other.url),
    );
    while ((await db.query(waiting)).length < 15);
    return { rest: Promise.all(calls) };
  });
  answers.push(...(await rest));
  for (const { status, body } of answers)
    assert.ok(status === 201 || body.error?.reason === "too_many", JSON.stringify(body));
  return answers.filter(({ status }) => status === 201).length;
}

test("a member has five proposals open, however many come at once", async () => {
  const path = `/w/businesses/${world.business.address}/proposals`;
  const members = ["alice", "bob", "dave"].map((name) => {
    const { address } = world.person(name);
    return { address, name, votingRights: true };
  });
  const body = { operation: "changeCharter", members };
  const propose = async (baseUrl: string): Promise<Answer> =>
    world.walletCall("alice", "POST", path, { body, baseUrl });
  assert.equal(await countMade("business_proposal", { first: 1, call: propose }), 5);
});

const found = async (baseUrl: string): Promise<Answer> =>
  world.askFounding({ members: ["alice", "eva"], baseUrl });

test("an identity has twenty foundings open, however many come at once", async () => {
  assert.equal(await countMade("business", { first: 15, call: found }), 20);
});

test("a wallet leaves twenty boxes, however many come at once", async () => {
  const expiresAt = world.ctx.clock.now() + 600;
  const leave = async (baseUrl: string): Promise<Answer> => {
    const box = randomBytes(40).toString("base64url");
    return world.walletCall("alice", "POST", "/w/mailbox", { body: { box, expiresAt }, baseUrl });
  };
  assert.equal(await countMade("mailbox", { first: 15, call: leave }), 20);
});
