import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { sql } from "../platform/database/db.ts";
import { firstEndpoint } from "./delivery-store.ts";
import { emptyExpired, purgePaces } from "./retention-store.ts";
import { listEventsOf } from "./events.ts";
import { forgetOld, forgetStreams, purgeBodies } from "./retention.ts";
import { ok, openTestWebhooks, status } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

const day = 86_400;
const secretName = "Ottilie Wildermuth";
const secretAnswer = "got it, Ottilie";

/** The contents of the engine's tables, as in a dump, with bytes also as text. */
async function dump(): Promise<string> {
  const rows = await ctx.db.query<{ row: string }>(sql`
    select to_jsonb(e)::text || ' ' || coalesce(encode(e.body_sealed, 'escape'), '') as row from webhook_event e
    union all select to_jsonb(d)::text from webhook_delivery d
    union all select to_jsonb(a)::text || ' ' || coalesce(encode(a.answer_sealed, 'escape'), '') from webhook_attempt a`);
  return rows.map(({ row }) => row).join("\n");
}

async function personalEvent(url: string) {
  const body = JSON.stringify({ infos: secretName });
  const payloadExpiresAt = ctx.clock.now() + 7 * day;
  const event = webhooks.event({ url, body, isPersonal: true, payloadExpiresAt });
  await webhooks.enqueue(event);
  return event;
}

await test("a personal body and what the receiver answers are nowhere in a dump, and arrive", async () => {
  const receiver = await webhooks.openReceiver((_request, response) => response.end(secretAnswer));
  const event = await personalEvent(receiver.url);
  assert.doesNotMatch(await dump(), /Ottilie/);
  assert.equal((await webhooks.firstEvent(event.streamId)).body, event.body);
  await webhooks.deliver();
  assert.equal(receiver.received[0]?.body, event.body);
  const after = await dump();
  assert.match(after, /answer_sealed": "/);
  assert.doesNotMatch(after, /Ottilie/);
});

await test("a delivered body goes 24 hours after the 2xx, with the answers; the event stays, a resend is refused", async () => {
  const receiver = await webhooks.openReceiver((_request, response) => response.end(secretAnswer));
  const event = await personalEvent(receiver.url);
  await webhooks.deliver();
  webhooks.advance(day - 1);
  await purgeBodies(ctx);
  assert.equal(await webhooks.redeliver(event), 1);
  await webhooks.deliver();
  // A resend does not prolong the lifetime.
  webhooks.advance(1);
  await assert.rejects(webhooks.redeliver(event), { reason: "payload_expired" });
  assert.equal((await webhooks.firstEvent(event.streamId)).body, null);
  await purgeBodies(ctx);
  assert.deepEqual(
    await ctx.db.query(sql`
    select body_sealed, purge_at from webhook_event`),
    [{ body_sealed: null, purge_at: null }],
  );
  assert.deepEqual(
    await ctx.db.query(sql`
    select count(*) from webhook_attempt where answer_sealed is not null`),
    [{ count: 0 }],
  );
  const tombstone = await webhooks.firstEvent(event.streamId);
  assert.equal(tombstone.body, null);
  assert.equal(tombstone.attempts, 2);
  await assert.rejects(webhooks.redeliver(event), { reason: "payload_expired" });
});

await test("an undelivered body is purged when it is due for it, and not sent after that, purged or not", async () => {
  const receiver = await webhooks.openReceiver(status(503, { "retry-after": String(day) }));
  const event = await personalEvent(receiver.url);
  const expiresAt = ctx.clock.now() + 7 * day;
  for (let attempt = 1; attempt <= 13; attempt += 1) {
    await webhooks.deliver();
    const { nextAttemptAt } = await webhooks.firstEvent(event.streamId);
    if (nextAttemptAt === null) break;
    assert.ok(nextAttemptAt < expiresAt);
    webhooks.advance(nextAttemptAt - ctx.clock.now());
  }
  const attempts = receiver.received.length;
  assert.ok(attempts >= 7);
  const late = await personalEvent(receiver.url);
  receiver.setAnswer(ok);
  webhooks.advance(7 * day);
  await webhooks.deliver();
  assert.equal(receiver.received.length, attempts);
  assert.equal((await webhooks.firstEvent(late.streamId)).nextAttemptAt, null);
  await purgeBodies(ctx);
  assert.doesNotMatch(await dump(), /"purge_at": \d/);
});

await test("a body with a shorter lifetime than a day is not kept longer after its 2xx, and an event with a body is no tombstone", async () => {
  const { db } = ctx;
  const event = webhooks.event({ url: "http://127.0.0.1:1/hook" });
  await webhooks.enqueue(event);
  const soon = ctx.clock.now() + 60;
  await db.query(sql`update webhook_event set purge_at = ${soon} where id = ${event.id}`);
  await db.transaction(async (tx) => forgetStreams(ctx, tx, [event.streamId]));
  const read = async () => db.query(sql`select purge_at from webhook_event`);
  assert.deepEqual(await read(), [{ purge_at: soon }]);
  webhooks.advance(366 * day);
  await forgetOld(ctx);
  assert.equal((await read()).length, 1);
  await purgeBodies(ctx);
  await forgetOld(ctx);
  assert.equal((await read()).length, 0);
});

await test("a delivery is deleted together with the body that is purged", async () => {
  await personalEvent("http://127.0.0.1:1/hook");
  const listDeliveries = async () => ctx.db.query(sql`select from webhook_delivery`);
  webhooks.advance(7 * day - 1);
  await purgeBodies(ctx);
  assert.equal((await listDeliveries()).length, 1);
  webhooks.advance(1);
  await purgeBodies(ctx);
  assert.equal((await listDeliveries()).length, 0);
});

await test("no attempt changes the time of personal data that goes to an endpoint, and neither does its 2xx", async () => {
  const receiver = await webhooks.openReceiver(status(503));
  await webhooks.register(receiver.url);
  const payloadExpiresAt = ctx.clock.now() + 7 * day;
  const event = webhooks.kybEvent({ isPersonal: true, payloadExpiresAt });
  await webhooks.enqueue(event);
  for (const [attempts, answer] of [
    [1, status(503)],
    [2, ok],
  ] as const) {
    receiver.setAnswer(answer);
    await webhooks.deliver();
    webhooks.advance(60);
    const known = await webhooks.firstEvent(event.streamId);
    assert.deepEqual([known.attempts, known.deliveredAt !== null], [attempts, attempts === 2]);
    assert.deepEqual(
      await ctx.db.query(sql`select purge_at from webhook_event where id = ${event.id}`),
      [{ purge_at: payloadExpiresAt }],
    );
  }
});

await test("a body without personal data can be sent again for 30 days after its last attempt", async () => {
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  webhooks.advance(34 * day);
  await purgeBodies(ctx);
  const { deliveredAt } = await webhooks.firstEvent(event.streamId);
  assert.equal(await webhooks.redeliver(event), 1);
  await webhooks.deliver();
  assert.equal((await webhooks.firstEvent(event.streamId)).deliveredAt, deliveredAt);
  webhooks.advance(30 * day - 1);
  await purgeBodies(ctx);
  assert.equal(await webhooks.redeliver(event), 1);
  webhooks.advance(1);
  await purgeBodies(ctx);
  await assert.rejects(webhooks.redeliver(event), { reason: "payload_expired" });
});

await test("an event whose attempts were put off to the last can be sent again for 30 days after that one too", async () => {
  const receiver = await webhooks.openReceiver(status(503, { "retry-after": String(day) }));
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  for (let attempt = 2; attempt <= 13; attempt += 1) {
    webhooks.advance(day);
    await webhooks.deliver();
  }
  assert.equal(receiver.received.length, 13);
  assert.equal((await webhooks.firstEvent(event.streamId)).nextAttemptAt, null);
  webhooks.advance(30 * day - 1);
  await purgeBodies(ctx);
  assert.equal(await webhooks.redeliver(event), 1);
});

await test("undelivered events of a forgotten stream are sealed, delivered, and deleted a day after their 2xx; the others at once", async () => {
  const receiver = await webhooks.openReceiver();
  const [streamId, body] = ["order", JSON.stringify({ user: secretName })];
  const url = `${receiver.url}?customer=wildermuth`;
  const told = webhooks.event({ streamId, url, body });
  const waiting = webhooks.event({ streamId, url, body, sequence: 2 });
  const other = webhooks.event({ url: receiver.url });
  const payloadExpiresAt = ctx.clock.now() + 7 * day;
  const personal = { streamId, url, body, sequence: 3, isPersonal: true, payloadExpiresAt };
  const never = webhooks.event(personal);
  await webhooks.enqueue(told);
  await webhooks.deliver();
  receiver.setAnswer(status(500));
  await webhooks.enqueue(waiting, never, other);
  await webhooks.deliver();
  const answers = async () =>
    ctx.db.query(sql`select from webhook_attempt where answer_sealed is not null`);
  assert.equal((await answers()).length, 1);
  await ctx.db.transaction(async (tx) => forgetStreams(ctx, tx, [streamId]));
  assert.doesNotMatch(await dump(), /Ottilie/);
  assert.deepEqual(await answers(), []);
  const bodies = async () =>
    (await listEventsOf(ctx, streamId, { after: 0, limit: 3 })).events.map(
      ({ body: each }) => each,
    );
  assert.deepEqual(await bodies(), [body]);
  assert.equal((await dump()).split("wildermuth").length, 2, "it is still to be sent there");
  receiver.setAnswer(ok);
  receiver.received.splice(0);
  webhooks.advance(5);
  await webhooks.deliver();
  assert.ok(!receiver.received.some((each) => each.headers["svc-event-id"] === never.id));
  assert.ok(receiver.received.some((each) => each.headers["svc-event-id"] === waiting.id));
  webhooks.advance(day);
  await purgeBodies(ctx);
  assert.deepEqual(await bodies(), []);
  assert.doesNotMatch(await dump(), /wildermuth/);
  const attempted = await ctx.db.query<{ id: string }>(sql`select id from webhook_attempt`);
  assert.deepEqual(
    attempted.map(({ id }) => id),
    [`${other.id}.1`, `${other.id}.2`],
  );
  assert.equal((await webhooks.firstEvent(other.streamId)).body, other.body);
});

await test("attempts are forgotten after 30 days, tombstones after a year", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.enqueue(webhooks.event({ url: receiver.url }));
  await webhooks.deliver();
  const counts = async () => {
    const [row] = await ctx.db.query<{
      events: number;
      attempts: number;
      paces: number;
    }>(sql`
      select (select count(*) from webhook_event) as events, (select count(*) from webhook_attempt) as attempts,
        (select count(*) from webhook_endpoint) as paces`);
    return row;
  };
  await forgetOld(ctx);
  assert.deepEqual(await counts(), { events: 1, attempts: 1, paces: 1 });
  webhooks.advance(30 * day);
  await forgetOld(ctx);
  assert.deepEqual(await counts(), { events: 1, attempts: 1, paces: 0 });
  webhooks.advance(day);
  await forgetOld(ctx);
  assert.deepEqual(await counts(), { events: 1, attempts: 0, paces: 0 });
  webhooks.advance(334 * day);
  await purgeBodies(ctx);
  await forgetOld(ctx);
  assert.equal((await counts())?.events, 1);
  webhooks.advance(day);
  await forgetOld(ctx);
  assert.equal((await counts())?.events, 0);
});

await test("the pace of an endpoint is kept if a delivery uses it during the purge", async () => {
  const { db, clock } = ctx;
  const beforeMs = clock.nowMs();
  await db.query(sql`insert into webhook_endpoint (id, next_at_ms) values (${randomUUID()}, 0)`);
  let purged: Promise<unknown> = Promise.resolve();
  await db.transaction(async (tx) => {
    await tx.query(sql`update webhook_endpoint set next_at_ms = ${beforeMs}`);
    purged = purgePaces(db, { beforeMs, after: firstEndpoint, limit: 10 });
    await untilBlocked(db, tx, [purged]);
  });
  await purged;
  assert.equal((await db.query(sql`select from webhook_endpoint`)).length, 1);
});

await test("a body whose lifetime was prolonged since the purge found it is kept", async () => {
  const event = webhooks.event({ url: "http://127.0.0.1:9" });
  await webhooks.enqueue(event);
  const now = ctx.clock.now();
  await ctx.db.transaction(async (tx) => emptyExpired(tx, { ids: [event.id], now }));
  assert.equal((await webhooks.firstEvent(event.streamId)).body, event.body);
});

await test("an update of an endpoint's pace, made with every delivery, writes no index", async () => {
  const indexes = await ctx.db.query(sql`
    select from pg_indexes where tablename = 'webhook_endpoint' and indexdef like '%next_at_ms%'`);
  assert.deepEqual(indexes, []);
});
