// Endpoints that change during deliveries: an answer of the former endpoint is not the fault of the new one.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { afterEach, test, type TestContext } from "node:test";
import { type Queryable, sql, type Statement } from "../platform/database/db.ts";
import { keepPauses } from "../platform/test-pauses.ts";
import { endLeases, hasDue, resentStep } from "./delivery-store.ts";
import { holdDeliveries } from "./endpoint-store.ts";
import { listEventsOf, moveEvents, redeliverEvents } from "./events.ts";
import { openTestWebhooks, ok, type Receiver, status } from "./test-webhooks.ts";
import { listBlocked, untilBlockedAt } from "../../../test/lock-waits.ts";
import { until } from "../../../test/patience.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx, clientDomainId } = webhooks;

/** Answers that the test releases. */
function holdAnswers() {
  const open: ServerResponse[] = [];
  const arrivals = new EventTarget();
  return {
    open,
    answer: (_request: unknown, response: ServerResponse): void => {
      open.push(response);
      arrivals.dispatchEvent(new Event("arrival"));
    },
    async arrived(count: number): Promise<void> {
      while (open.length < count) await once(arrivals, "arrival");
    },
  };
}

const idsOf = (receiver: Receiver): string[] =>
  receiver.received.map(({ headers }) => String(headers["svc-event-id"]));

await test("a 410 from an endpoint's former URL does not put the new one into quarantine", async () => {
  const held = holdAnswers();
  const [old, next] = [await webhooks.openReceiver(held.answer), await webhooks.openReceiver()];
  await webhooks.register(old.url);
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  const delivered = webhooks.deliver();
  await held.arrived(1);
  await webhooks.register(next.url);
  held.open[0]?.writeHead(410).end();
  await delivered;
  assert.equal(await webhooks.isActive(), true);
  webhooks.advance(10);
  await webhooks.deliver();
  assert.deepEqual(
    next.received.map(({ headers }) => headers["svc-event-id"]),
    [event.id],
  );
});

await test("an event that fails at an endpoint's former URL goes to the new one at once", async () => {
  const held = holdAnswers();
  const [old, next] = [await webhooks.openReceiver(held.answer), await webhooks.openReceiver()];
  await webhooks.register(old.url);
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  const delivered = webhooks.deliver();
  await held.arrived(1);
  await webhooks.register(next.url);
  held.open[0]?.writeHead(500).end();
  await delivered;
  assert.deepEqual(idsOf(next), [event.id]);
});

/** Two attempts under way whose answers the test releases; one is the last attempt at its event. */
async function beginLastAttempt() {
  const held = holdAnswers();
  const receiver = await webhooks.openReceiver(held.answer);
  await webhooks.register(receiver.url);
  const [last, other] = [webhooks.kybEvent(), webhooks.kybEvent()];
  await webhooks.enqueue(last, other);
  const { db } = ctx;
  await db.query(sql`update webhook_delivery set step = 12 where event_id = ${last.id}`);
  await db.query(sql`update webhook_event set attempts = 12 where id = ${last.id}`);
  const delivered = webhooks.deliver();
  await held.arrived(2);
  return { held, receiver, last, other, delivered };
}

async function untilQuarantined(): Promise<void> {
  await until("the quarantine", async () => ((await webhooks.isActive()) ? null : true));
}

await test("a 410 to an attempt that began before a reactivation does not put the endpoint into quarantine again", async () => {
  const { held, receiver, last, other, delivered } = await beginLastAttempt();
  const at = receiver.received.findIndex(({ headers }) => headers["svc-event-id"] === other.id);
  held.open[at]?.writeHead(410).end();
  await untilQuarantined();
  await webhooks.reactivate();
  receiver.setAnswer(status(500));
  held.open[1 - at]?.writeHead(410).end();
  await delivered;
  assert.equal(await webhooks.isActive(), true);
  webhooks.advance(60);
  await webhooks.deliver();
  receiver.setAnswer(ok);
  receiver.received.length = 0;
  webhooks.advance(180);
  await webhooks.deliver();
  assert.deepEqual(
    new Set(idsOf(receiver)),
    new Set([last.id, other.id]),
    "the schedule of both began again",
  );
  receiver.setAnswer(status(410));
  await webhooks.enqueue(webhooks.kybEvent());
  webhooks.advance(10);
  await webhooks.deliver();
  assert.equal(await webhooks.isActive(), false, "an attempt that began since counts");
});

for (const [code, told] of [
  [500, "is held, not given up"],
  [200, "is not made again"],
] as const)
  await test(`a last attempt that ends with ${code} after the quarantine has begun ${told}`, async () => {
    const { held, receiver, last, other, delivered } = await beginLastAttempt();
    const at = receiver.received.findIndex(({ headers }) => headers["svc-event-id"] === other.id);
    held.open[at]?.writeHead(410).end();
    await untilQuarantined();
    held.open[1 - at]?.writeHead(code).end();
    await delivered;
    receiver.setAnswer(ok);
    await webhooks.reactivate();
    receiver.received.length = 0;
    webhooks.advance(60);
    await webhooks.deliver();
    const expected = code === 500 ? [last.id, other.id] : [other.id];
    assert.deepEqual(new Set(idsOf(receiver)), new Set(expected));
  });

async function move(streamId: string, url: string) {
  await ctx.db.transaction(async (tx) => moveEvents(ctx, tx, { streamId, clientDomainId, url }));
}

await test("undelivered events of a stream go to its new URL at once, in order", async () => {
  const old = await webhooks.openReceiver(status(500));
  const next = await webhooks.openReceiver();
  const [streamId, url] = ["order", old.url];
  const events = [1, 2, 3].map((sequence) => webhooks.event({ streamId, sequence, url }));
  const other = webhooks.event({ url });
  await webhooks.enqueue(...events, other);
  await webhooks.deliver();
  await webhooks.deliver();
  webhooks.advance(5);
  await webhooks.deliver();
  const triedAtOld = old.received.length;
  await move(streamId, `${next.url}?order=1`);
  for (const _ of events) await webhooks.deliver();
  assert.deepEqual(
    idsOf(next),
    events.map(({ id }) => id),
  );
  assert.equal(old.received.length, triedAtOld);
  const { events: listed } = await listEventsOf(ctx, streamId, { after: 0, limit: 100 });
  assert.ok(listed.every(({ deliveredAt }) => deliveredAt !== null));
  const left = await webhooks.firstEvent(other.streamId);
  assert.equal(left.deliveredAt, null, "of another stream");
});

await test("a delivered event keeps its URL when its stream is redirected", async () => {
  const [old, next] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const [streamId, url] = ["order", old.url];
  const delivered = webhooks.event({ streamId, url });
  const waiting = webhooks.event({ streamId, url, sequence: 2 });
  await webhooks.enqueue(delivered);
  await webhooks.deliver();
  await webhooks.enqueue(waiting);
  const { db } = ctx;
  const read = async () =>
    db.query<{ url: string; version: string }>(
      sql`select url, xmin::text as version from webhook_event order by sequence`,
    );
  const [before] = await read();
  await move(streamId, next.url);
  const [first, second] = await read();
  assert.deepEqual(first, before);
  assert.equal(second?.url, next.url);
});

await test("a resend goes to the new URL, but personal data to the one that its user was shown", async () => {
  const [old, next] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const [streamId, url] = ["order", old.url];
  const payloadExpiresAt = ctx.clock.now() + 3600;
  const told = webhooks.event({ streamId, url });
  const data = webhooks.event({ streamId, url, sequence: 2, isPersonal: true, payloadExpiresAt });
  await webhooks.enqueue(told, data);
  for (const _ of [told, data]) await webhooks.deliver();
  old.received.length = 0;
  await move(streamId, next.url);
  await webhooks.redeliver({ streamId, url: next.url });
  for (const _ of [told, data]) await webhooks.deliver();
  assert.deepEqual([idsOf(old), idsOf(next)], [[data.id], [told.id]]);
});

await test("an attempt under way at a stream's former URL is made again at the new one", async () => {
  const held = holdAnswers();
  const [old, next] = [await webhooks.openReceiver(held.answer), await webhooks.openReceiver()];
  const event = webhooks.event({ url: old.url });
  await webhooks.enqueue(event);
  const delivered = webhooks.deliver();
  await held.arrived(1);
  await move(event.streamId, next.url);
  held.open[0]?.writeHead(500).end();
  await delivered;
  await webhooks.deliver();
  assert.deepEqual(idsOf(next), [event.id]);
});

await test("an event that is claimed while its stream is redirected goes only to the new URL", async () => {
  const [old, next] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const event = webhooks.event({ url: old.url });
  await webhooks.enqueue(event);
  const { streamId } = event;
  const delivered = await ctx.db.transaction(async (tx) => {
    await moveEvents(ctx, tx, { streamId, clientDomainId, url: next.url });
    const delivering = webhooks.deliver();
    await untilBlockedAt(ctx.db, "webhook_turn");
    return { delivering };
  });
  await delivered.delivering;
  await webhooks.deliver();
  assert.deepEqual([idsOf(old), idsOf(next)], [[], [event.id]]);
});

await test("a resend does not deadlock with the recording of an attempt at the same event", async () => {
  const held = holdAnswers();
  const receiver = await webhooks.openReceiver(held.answer);
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  const delivered = webhooks.deliver();
  await held.arrived(1);
  await ctx.db.transaction(async (tx) => {
    const resend = { isOver: false };
    const together: Queryable = {
      async query<Row extends object>(statement: Statement): Promise<Row[]> {
        const rows = await tx.query<Row>(statement);
        if (held.open[0]?.writableEnded === false) {
          held.open[0].writeHead(500).end();
          await untilBlockedAt(ctx.db, "duration_ms");
        }
        return rows;
      },
    };
    const resent = redeliverEvents(ctx, together, event).finally(() => {
      resend.isOver = true;
    });
    while (!resend.isOver) assert.ok((await listBlocked(ctx.db)).length < 2, "both wait");
    assert.equal(await resent, 1);
  });
  await delivered;
  const listed = await webhooks.firstEvent(event.streamId);
  assert.deepEqual([listed.attempts, listed.nextAttemptAt], [1, ctx.clock.now() + 5]);
});

await test("undelivered personal data stays with the URL that its user was shown, when its stream is redirected", async () => {
  const [old, next] = [await webhooks.openReceiver(status(500)), await webhooks.openReceiver()];
  const [streamId, url] = ["order", old.url];
  const payloadExpiresAt = ctx.clock.now() + 3600;
  const told = webhooks.event({ streamId, url });
  const data = webhooks.event({ streamId, url, sequence: 2, isPersonal: true, payloadExpiresAt });
  await webhooks.enqueue(told, data);
  for (const _ of [told, data]) await webhooks.deliver();
  old.setAnswer(ok);
  old.received.length = 0;
  await move(streamId, next.url);
  webhooks.advance(60);
  for (const _ of [told, data]) await webhooks.deliver();
  assert.deepEqual([idsOf(old), idsOf(next)], [[data.id], [told.id]]);
});

await test("an attempt under way is not begun again by a resend, nor before its lease is over", async () => {
  const held = holdAnswers();
  const receiver = await webhooks.openReceiver(held.answer);
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  const delivered = webhooks.deliver();
  await held.arrived(1);
  receiver.setAnswer(ok);
  const { db, clock } = ctx;
  const isFree = async (): Promise<boolean> => {
    await endLeases(db, clock.nowMs());
    return hasDue(db, clock.nowMs());
  };
  const seen = [await isFree()];
  assert.equal(await webhooks.redeliver(event), 1);
  seen.push(await isFree());
  const late = { eventId: event.id, endpointId: randomUUID(), lease: randomUUID() };
  await holdDeliveries(db, [late], { nowMs: clock.nowMs(), most: 1 });
  held.open[0]?.writeHead(200).end();
  await delivered;
  assert.deepEqual(seen, [false, false]);
  const listed = await webhooks.firstEvent(event.streamId);
  assert.equal(listed.deliveredAt, clock.now(), "whoever had it earlier gives nothing back");
});

await test("a resend during an attempt that fails begins the schedule anew, also where that was the last attempt", async () => {
  const held = holdAnswers();
  const { db } = ctx;
  for (const [at, step] of [11, 12].entries()) {
    const receiver = await webhooks.openReceiver(held.answer);
    const event = webhooks.event({ url: receiver.url });
    await webhooks.enqueue(event);
    await db.query(sql`update webhook_delivery set step = ${step} where event_id = ${event.id}`);
    const delivered = webhooks.deliver();
    await held.arrived(at + 1);
    assert.equal(await webhooks.redeliver(event), 1);
    await endLeases(db, ctx.clock.nowMs());
    assert.equal(await hasDue(db, ctx.clock.nowMs()), false, "nobody begins another");
    receiver.setAnswer(status(503));
    held.open[at]?.writeHead(503).end();
    await delivered;
    await webhooks.deliver();
    assert.equal(receiver.received.length, 2, `after ${step} attempts it is sent again at once`);
    receiver.setAnswer(ok);
    webhooks.advance(6);
    await webhooks.deliver();
    const numbers = receiver.received.map(({ headers }) => headers["svc-delivery-attempt"]);
    assert.deepEqual(numbers, ["1", "2", "3"], "and after the first pause");
  }
});

await test("a resent delivery that a process of an earlier version released gets the whole schedule", async () => {
  const receiver = await webhooks.openReceiver(status(503));
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  // Such a process ends the lease without resetting the step.
  const freed = sql`update webhook_delivery set step = ${resentStep} where event_id = ${event.id}`;
  await ctx.db.query(freed);
  await webhooks.deliver();
  await webhooks.deliver();
  assert.equal(receiver.received.length, 1, "the first pause comes after the first attempt");
  webhooks.advance(6);
  await webhooks.deliver();
  webhooks.advance(6);
  await webhooks.deliver();
  assert.equal(receiver.received.length, 2, "and then the second");
});

/**
 * Claims an event of an endpoint that resumes after a quarantine. The attempt waits for its turn until the test ends
 * the pause.
 */
async function claimPaced(t: TestContext, receiver: Receiver) {
  const { db, clock } = ctx;
  await webhooks.register(receiver.url);
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver();
  await db.query(sql`update kyb_endpoint set is_resuming = true`);
  await db.query(sql`update webhook_endpoint set next_at_ms = ${clock.nowMs() + 1400}`);
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  const sender = webhooks.openSender();
  const pauses = keepPauses(t);
  await sender.pump();
  return { event, sender, pauses };
}

await test("a claimed delivery that waited for its turn uses the endpoint's URL and secret of that time", async (t) => {
  const [old, next] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const { event, sender, pauses } = await claimPaced(t, old);
  await webhooks.register(next.url);
  pauses.end();
  await sender.idle();
  assert.deepEqual(idsOf(next), [event.id]);
  assert.match(String(next.received[0]?.headers["svc-kyb-signature"]), /^t=\d+,v1=\w+,kv=2$/);
});

await test("a claimed delivery that waited for its turn is held untried once its endpoint is in quarantine", async (t) => {
  const receiver = await webhooks.openReceiver();
  const { event, sender, pauses } = await claimPaced(t, receiver);
  await ctx.db.query(sql`update kyb_endpoint set is_active = false`);
  pauses.end();
  await sender.idle();
  assert.equal(idsOf(receiver).includes(event.id), false);
  await webhooks.reactivate();
  webhooks.advance(10);
  await webhooks.deliver();
  assert.deepEqual(idsOf(receiver).slice(1), [event.id]);
});
