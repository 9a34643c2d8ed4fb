// A create that ends requests whose time is over, where it meets a vote, a cancellation or the job at the same rows: each
// is answered, one after the other, and every request has one end.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { createApiKey, createDomain } from "../../service/src/accounts/index.ts";
import { lockOpenBallots } from "../../service/src/kyb/ballot/ballot-store.ts";
import { expireBallots } from "../../service/src/kyb/ballot/ballots.ts";
import { lockBusiness } from "../../service/src/kyb/business/business-store.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { sql, type Statement } from "../../service/src/platform/database/db.ts";
import { openDataWorld, registerEndpoint, requestsPath } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { signaturesPath, someText } from "../kyb-signature-world.ts";
import type { Answer } from "../kyb-world.ts";
import { untilBlocked } from "../lock-waits.ts";

const members = ["alice", "bob", "carol"];

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx, organizationId } = world;
const { db } = ctx;
const [business = "0x"] = await insertBusinesses(world, 1, members);
const second = await createDomain(
  ctx,
  { organizationId, domain: "second.example", environment: "live" },
  "test",
);
const { key: secondKey } = await createApiKey(
  ctx,
  { clientDomainId: second.id, name: "Backend" },
  "test",
);
await registerEndpoint(world, secondKey);

const ask = async (apiKey = world.apiKey): Promise<Answer> =>
  world.ask({ businessWalletAddress: business }, { apiKey });

async function asked(apiKey?: string): Promise<string> {
  const { status, body } = await ask(apiKey);
  assert.equal(status, 201, JSON.stringify(body));
  return String(body["requestId"]);
}

async function askSignature(message: string): Promise<void> {
  const { status, body } = await world.call("POST", signaturesPath, {
    headers: { "idempotency-key": randomBytes(8).toString("hex") },
    body: { businessWalletAddress: business, ...someText, message },
  });
  assert.equal(status, 201, JSON.stringify(body));
}

async function deadlocks(): Promise<number> {
  const [row] = await db.query<{ deadlocks: number }>(sql`
    select deadlocks from pg_stat_database where datname = current_database()`);
  return row?.deadlocks ?? 0;
}

const cancel = async (id: string, path = requestsPath): Promise<Answer> =>
  world.call("POST", `${path}/${id}/cancel`, { body: {} });

/** Holds up votes on the ballot and its end, but no change of its time; the job of expiry skips the ballot. */
const ballotOf = (id: string): Statement => sql`select from ballot where id = ${id} for key share`;

/** Holds up every hold and release of the organization's money. */
const money = sql`
  select from ledger_account where organization_id = ${organizationId} and kind = 'available' for update`;

/**
 * Also marks the ballot as hinted. Otherwise the job of the hints would do so and write a new version of the row, and
 * calls that wait for the old version would fall behind those that wait for the new one.
 */
const makeOverdue = async (id: string): Promise<unknown> =>
  db.query(sql`
    update ballot set expires_at = ${ctx.clock.now() - 1}, hinted_epoch = epoch where id = ${id}`);

/**
 * Holds a row until all of these calls wait for it, each begun once the one before waits.
 *
 * @param overdue a request whose time ends once the row is held
 * @returns how the calls were answered
 */
async function meetAt(
  row: Statement,
  {
    overdue,
    calls,
  }: { overdue: string; calls: readonly (() => Promise<Pick<Answer, "status" | "body">>)[] },
): Promise<string[]> {
  const { answers } = await db.transaction(async (tx) => {
    await tx.query(row);
    await makeOverdue(overdue);
    const begun: Promise<Pick<Answer, "status" | "body">>[] = [];
    for (const call of calls) {
      begun.push(call());
      await untilBlocked(db, tx, begun.length);
    }
    return { answers: Promise.all(begun) };
  });
  return (await answers).map(({ status, body }) => `${status} ${body.error?.reason ?? ""}`.trim());
}

/** The locks of a change of members or rules, which reads the chain before it takes them. */
async function lockAsChange(): Promise<Pick<Answer, "status" | "body">> {
  await db.transaction(async (tx) => {
    await lockBusiness(tx, business);
    await lockOpenBallots(tx, business);
  });
  return { status: 200, body: {} };
}

/** Begins a create that finds this request overdue before the job does. */
async function askBeforeJob(overdue: string): Promise<{ created: Promise<Answer> }> {
  return db.transaction(async (tx) => {
    await tx.query(ballotOf(overdue));
    await makeOverdue(overdue);
    const created = ask();
    await untilBlocked(db, tx, [created]);
    return { created };
  });
}

/** Checks that the request has this one end, announced once. */
async function checkEnd(
  id: string,
  end: { status: string; reason?: string },
  apiKey = world.apiKey,
): Promise<void> {
  const record = await world.until(`${id} has ended`, async () => {
    const { body } = await world.call("GET", `${requestsPath}/${id}`, { apiKey });
    return body["status"] === "pending_approval" ? null : body;
  });
  assert.deepEqual([record["status"], record["reason"]], [end.status, end.reason]);
  const { body } = await world.call("GET", `${requestsPath}/${id}/events`, { apiKey });
  const told = (body["items"] as { event: string }[]).map(({ event }) => event.split(".").at(-1));
  assert.deepEqual(told, ["pending_approval", end.status]);
}

const expired = { status: "refused", reason: "expired" };

/** Cancels open requests and moves all of them a day back, for the next test. */
async function clear(): Promise<void> {
  for (const [table, path] of [
    ["data_request", requestsPath],
    ["signature_request", signaturesPath],
  ] as const) {
    const open = await db.query<{ id: string }>({
      name: "",
      text: `select id from ${table} where status = 'pending_approval' and business = $1`,
      values: [business],
    });
    for (const { id } of open) {
      const answer = await cancel(id, path);
      if (answer.status !== 200)
        await world.call("POST", `${path}/${id}/cancel`, { body: {}, apiKey: secondKey });
    }
    await db.query({
      name: "",
      text: `update ${table} set created_at = created_at - 86400 where business = $1`,
      values: [business],
    });
  }
  await checkMoney(ctx);
}

for (const isFirst of [true, false]) {
  const inOrder = <T>(create: T, other: T): T[] => (isFirst ? [create, other] : [other, create]);
  const place = isFirst ? "before" : "behind";

  await test(`a create that comes ${place} a vote on an overdue request ends that, and the vote is too late`, async () => {
    const id = await asked();
    const item = await world.findVote("alice", id);
    const calls = inOrder(
      async () => ask(),
      async () => world.voteAs("alice", id, { item }),
    );
    const answers = await meetAt(ballotOf(id), { overdue: id, calls });
    assert.deepEqual(answers, inOrder("201", "409 ballot_over"));
    await checkEnd(id, expired);
    await clear();
  });

  await test(`a create that comes ${place} a change of the members ends the overdue request, and both go through`, async () => {
    const id = await asked();
    const calls = inOrder<() => Promise<Pick<Answer, "status" | "body">>>(
      async () => ask(),
      lockAsChange,
    );
    assert.deepEqual(await meetAt(ballotOf(id), { overdue: id, calls }), inOrder("201", "200"));
    await checkEnd(id, expired);
    await clear();
  });
}

await test("a create that comes before the cancellation of an overdue request: it has one end, and the create succeeds", async () => {
  const id = await asked();
  const calls = [async () => ask(), async () => cancel(id)];
  const answers = await meetAt(ballotOf(id), { overdue: id, calls });
  assert.deepEqual(answers, ["201", "409 request_not_open"]);
  await checkEnd(id, expired);
  await clear();
});

await test("a create that comes behind the cancellation of an overdue request: it has one end, and the create succeeds", async () => {
  const id = await asked();
  const another = await asked(secondKey);
  const { answers } = await db.transaction(async (tx) => {
    await tx.query(money);
    // Keeps the job busy with this request, or it would come between the two calls.
    await makeOverdue(another);
    await untilBlocked(db, tx);
    await makeOverdue(id);
    const cancelled = cancel(id);
    await untilBlocked(db, tx, 2);
    const created = ask();
    await untilBlocked(db, tx, 3);
    return { answers: Promise.all([cancelled, created]) };
  });
  assert.deepEqual(
    (await answers).map(({ status }) => status),
    [200, 201],
  );
  await checkEnd(id, { status: "cancelled" });
  await checkEnd(another, expired, secondKey);
  await clear();
});

await test("two creates for an overdue request at one instant: one ends it and is made, the other finds that open", async () => {
  const id = await asked();
  const calls = [async () => ask(), async () => ask()];
  const answers = await meetAt(ballotOf(id), { overdue: id, calls });
  assert.deepEqual(answers, ["201", "409 request_already_open"]);
  await checkEnd(id, expired);
  await clear();
});

await test("a create that comes while the job ends the overdue request succeeds once it has", async () => {
  const id = await asked();
  const { made } = await db.transaction(async (tx) => {
    await tx.query(money);
    await makeOverdue(id);
    await untilBlocked(db, tx);
    const begun = ask();
    await untilBlocked(db, tx, 2);
    return { made: begun };
  });
  assert.equal((await made).status, 201);
  await checkEnd(id, expired);
  await clear();
});

await test("the job leaves an overdue request alone that a create is just ending", async () => {
  const id = await asked();
  // Lacks what ending a ballot takes, so the job would throw if it had one to end.
  const unable: Pick<KybContext, "db" | "clock"> = ctx;
  const { made } = await db.transaction(async (tx) => {
    await tx.query(money);
    const { created } = await askBeforeJob(id);
    await untilBlocked(db, tx);
    await expireBallots(unable as KybContext);
    return { made: created };
  });
  assert.equal((await made).status, 201);
  await checkEnd(id, expired);
  await clear();
});

await test("a create for which overdue requests make room meets the cancellation of another one without a deadlock", async () => {
  const id = await asked();
  const overdue = await asked(secondKey);
  for (let count = 0; count < 3; count += 1) await askSignature(`Open ${count}`);
  const before = await deadlocks();
  const { cancelled } = await db.transaction(async (tx) => {
    await tx.query(money);
    const { created } = await askBeforeJob(overdue);
    // It waits for the money only if it has freed some before it looks at the other request.
    const waiting = await Promise.race([created.then(() => 0), untilBlocked(db, tx).then(() => 1)]);
    const cancelling = cancel(id);
    await untilBlocked(db, tx, waiting + 1);
    return { cancelled: Promise.all([created, cancelling]) };
  });
  const [, { status }] = await cancelled;
  assert.equal(status, 200);
  assert.equal(await deadlocks(), before);
  await checkEnd(overdue, expired, secondKey);
  await clear();
});
