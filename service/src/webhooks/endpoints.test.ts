// Endpoints for KYB events on a real database, with a clock that the test moves.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { sql } from "../platform/database/db.ts";
import { getEndpoint, rotateSecret } from "./endpoints.ts";
import { recordEnds } from "./attempt-ends.ts";
import { listDeliveriesOf, listKybEvents } from "./events.ts";
import { reconcileHeld } from "./held.ts";
import * as store from "./delivery-store.ts";
import type { NewEvent } from "./event.ts";
import { openTestWebhooks, ok, status } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx, clientDomainId } = webhooks;

/** Puts the endpoint into quarantine with one event, which is then held. */
async function quarantine(receiver: Receiver): Promise<string> {
  receiver.setAnswer(status(410));
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  await webhooks.deliver();
  assert.equal(await webhooks.isActive(), false);
  receiver.setAnswer(ok);
  receiver.received.length = 0;
  return event.id;
}

/** Delivers for more seconds than there are events, which is enough at the pace of a resuming endpoint. */
async function deliverAll(): Promise<void> {
  for (let round = 0; round < 20; round += 1) {
    webhooks.advance(1);
    await webhooks.deliver();
  }
}

type Receiver = Awaited<ReturnType<typeof webhooks.openReceiver>>;

const idsOf = ({ received }: Receiver): string[] =>
  received.map(({ headers }) => String(headers["svc-event-id"]));

await test("events wait until an endpoint is registered, and go to the URL that it has when they are sent", async () => {
  const [first, second] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  await webhooks.deliver();
  await webhooks.register(first.url);
  await webhooks.register(second.url);
  webhooks.advance(600);
  await webhooks.deliver();
  assert.deepEqual([idsOf(first), idsOf(second)], [[], [event.id]]);
});

await test("an address is kept as it was checked, whatever its owner wrote", async () => {
  await webhooks.register("HTTPS://Hooks.Example.COM:443/a/../In?b=%7e");
  const { url } = await getEndpoint(ctx.db, clientDomainId);
  assert.equal(url, "https://hooks.example.com/In?b=%7e");
});

await test("a 410 holds everything; reactivated, all of it goes out, the oldest first", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  const held = [await quarantine(receiver)];
  for (let count = 0; count < 5; count += 1) {
    webhooks.advance(10);
    const event = webhooks.kybEvent();
    await webhooks.enqueue(event);
    held.push(event.id);
    await webhooks.deliver();
  }
  webhooks.advance(29 * 86_400);
  await webhooks.deliver();
  assert.equal(receiver.received.length, 0);
  await webhooks.reactivate();
  await webhooks.deliver();
  assert.deepEqual(idsOf(receiver), held);
  await assert.rejects(webhooks.reactivate(), { reason: "endpoint_not_quarantined" });
});

await test("held events are sent oldest first, whatever their streams", async () => {
  for (const resume of ["reactivated", "moved"] as const) {
    const receiver = await webhooks.openReceiver();
    await webhooks.register(receiver.url);
    const held = [await quarantine(receiver)];
    for (let stream = 0; stream < 4; stream += 1) {
      const { streamId } = webhooks.kybEvent();
      for (const sequence of [1, 2, 3]) {
        const event: NewEvent = Object.assign(webhooks.kybEvent(), { streamId, sequence });
        webhooks.advance(1);
        await webhooks.enqueue(event);
        held.push(event.id);
      }
      await webhooks.deliver();
    }
    webhooks.advance(60);
    if (resume === "reactivated") await webhooks.reactivate();
    else await webhooks.register(receiver.url);
    const fresh = webhooks.kybEvent();
    webhooks.advance(1);
    await webhooks.enqueue(fresh);
    const begun = await deliverInTurn();
    assert.ok(begun.includes(fresh.id));
    assert.deepEqual(
      begun.filter((id) => id !== fresh.id),
      held,
    );
    await webhooks.empty();
  }
});

await test("a process that ends or dies while an endpoint resumes does not change the order of its events", async () => {
  for (const end of ["ends", "dies"] as const) {
    const receiver = await webhooks.openReceiver();
    await webhooks.register(receiver.url);
    const held = [await quarantine(receiver)];
    for (let stream = 0; stream < 2; stream += 1) {
      const { streamId } = webhooks.kybEvent();
      for (const sequence of [1, 2]) {
        const event: NewEvent = Object.assign(webhooks.kybEvent(), { streamId, sequence });
        webhooks.advance(1);
        await webhooks.enqueue(event);
        held.push(event.id);
      }
    }
    await webhooks.deliver();
    webhooks.advance(60);
    await webhooks.reactivate();
    const lease = randomUUID();
    const claimed = await claimOf(lease);
    assert.ok(claimed.length > 0);
    const taken = claimed.map(({ eventId }) => ({ eventId, lease }));
    if (end === "ends") await store.release(ctx.db, taken, Math.floor(ctx.clock.nowMs()));
    webhooks.advance(31);
    if (end === "dies") await store.endLeases(ctx.db, Math.floor(ctx.clock.nowMs()));
    assert.deepEqual(await deliverInTurn(), held, end);
    await webhooks.empty();
  }
});

await test("a resend of an earlier event does not block held events for ever", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  const { streamId } = webhooks.kybEvent();
  const eventOf = (sequence: number): NewEvent =>
    Object.assign(webhooks.kybEvent(), { streamId, sequence });
  const first = eventOf(1);
  await webhooks.enqueue(first);
  await webhooks.deliver();
  await quarantine(receiver);
  const held: string[] = [];
  for (const event of [eventOf(2), eventOf(3), webhooks.kybEvent()]) {
    webhooks.advance(1);
    await webhooks.enqueue(event);
    held.push(event.id);
  }
  await webhooks.deliver();
  webhooks.advance(60);
  await webhooks.reactivate();
  assert.equal(await webhooks.redeliver({ streamId, eventId: first.id }), 1);
  await deliverAll();
  const arrived = idsOf(receiver);
  for (const id of [first.id, ...held]) assert.ok(arrived.includes(id), id);
});

await test("held events of the same second are all sent, and each stream in order", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  await quarantine(receiver);
  const { streamId } = webhooks.kybEvent();
  const made = Array.from({ length: 4 }, () => webhooks.kybEvent());
  const ids = made.map(({ id }) => id).toSorted((a, b) => (a < b ? 1 : -1));
  const held = made.map((event, at) =>
    Object.assign(event as NewEvent, { id: ids[at] ?? "", streamId, sequence: at + 1 }),
  );
  await webhooks.enqueue(...held);
  await webhooks.deliver();
  webhooks.advance(60);
  await webhooks.reactivate();
  await deliverAll();
  assert.deepEqual(
    idsOf(receiver).filter((id) => ids.includes(id)),
    held.map(({ id }) => id),
  );
});

await test("a held event shows no next attempt, and stays held after a resend", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  await quarantine(receiver);
  const event = webhooks.kybEvent();
  const { streamId } = event;
  await webhooks.enqueue(event);
  await webhooks.deliver();
  assert.equal(await webhooks.redeliver({ streamId }), 1);
  await webhooks.deliver();
  const page = { after: 0, limit: 10 };
  const listed = await webhooks.firstEvent(streamId);
  assert.deepEqual([listed.nextAttemptAt, listed.attempts], [null, 0]);
  const filter = {
    clientDomainId,
    kinds: [event.kind],
    isDelivered: null,
  };
  const { events } = await listKybEvents(ctx, filter, { before: null, limit: 10 });
  assert.ok(events.length === 2 && events.every((each) => each.nextAttemptAt === null));
  assert.deepEqual(await listDeliveriesOf(ctx, streamId, page), { deliveries: [] });
  assert.equal(receiver.received.length, 0);
});

await test("an event whose last attempt ends in the quarantine is held with the others", async () => {
  const receiver = await webhooks.openReceiver(status(500));
  await webhooks.register(receiver.url);
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  // The schedule of thirteen attempts spans 76 hours: the last one is the first after 72.
  for (let attempt = 1; attempt <= 13; attempt += 1) {
    assert.equal(await webhooks.isActive(), true);
    await webhooks.deliver();
    const listed = await webhooks.firstEvent(event.streamId);
    assert.equal(listed.attempts, attempt);
    const nextAt = listed.nextAttemptAt ?? ctx.clock.now();
    webhooks.advance(nextAt + 1 - ctx.clock.now());
  }
  assert.equal(await webhooks.isActive(), false);
  receiver.setAnswer(ok);
  await webhooks.reactivate();
  await webhooks.deliver();
  assert.equal(receiver.received.length, 14);
});

await test("the hundredth failure within an hour is a quarantine, and none before", async () => {
  const receiver = await webhooks.openReceiver(status(500, { "retry-after": "86400" }));
  await webhooks.register(receiver.url);
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver();
  webhooks.advance(3600);
  await webhooks.enqueue(...Array.from({ length: 98 }, () => webhooks.kybEvent()));
  while (receiver.received.length < 99) {
    await webhooks.deliver();
    webhooks.advance(1);
  }
  assert.equal(await webhooks.isActive(), true);
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver();
  assert.equal(await webhooks.isActive(), false);
});

await test("three refusals by the address policy over ten minutes are a quarantine", async () => {
  const outbound = {
    send: async () => ({ kind: "failed", reason: "blocked" }) as const,
    close: async () => undefined,
  };
  const sender = webhooks.openSender({ outbound });
  await webhooks.register("https://hooks.example.com/kyb");
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver(sender);
  webhooks.advance(599);
  await webhooks.deliver(sender);
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver(sender);
  assert.equal(await webhooks.isActive(), true);
  webhooks.advance(1);
  await webhooks.enqueue(webhooks.kybEvent());
  await webhooks.deliver(sender);
  assert.equal(await webhooks.isActive(), false);
});

await test("after a quarantine an endpoint gets at most five deliveries in a second until its first 2xx", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  await quarantine(receiver);
  await webhooks.enqueue(...Array.from({ length: 60 }, () => webhooks.kybEvent()));
  await webhooks.deliver();
  receiver.setAnswer(status(503));
  await webhooks.reactivate();
  const startsMs: number[] = [];
  const beganAtMs = performance.now();
  receiver.setAnswer((_request, response) => {
    startsMs.push(performance.now() - beganAtMs);
    response.writeHead(503).end();
  });
  await webhooks.deliver();
  // Measured from before the first attempt: if that reached the receiver late, the others would seem too early.
  for (const [at, startMs] of startsMs.entries())
    assert.ok(startMs >= at * 200 - 10, `${at} began after ${startMs} ms`);
  assert.ok(startsMs.length >= 2);
});

await test("PUT ends a quarantine: held events go to the new URL, signed only by the new secret", async () => {
  const [old, next] = [await webhooks.openReceiver(), await webhooks.openReceiver()];
  const before = await webhooks.register(old.url);
  const id = await quarantine(old);
  const after = await webhooks.register(next.url);
  assert.deepEqual([before.secretVersion, after.secretVersion, after.active], [1, 2, true]);
  assert.notEqual(before.secret, after.secret);
  assert.equal(before.createdAt, after.createdAt);
  await webhooks.deliver();
  assert.deepEqual([idsOf(old), idsOf(next)], [[], [id]]);
  const header = String(next.received[0]?.headers["svc-kyb-signature"]);
  assert.match(header, /^t=\d+,v1=[0-9a-f]{64},kv=2$/);
});

const rotate = async (immediate = false): Promise<unknown> =>
  ctx.db.transaction(async (tx) => rotateSecret(ctx, tx, { clientDomainId, immediate }));

await test("an old secret signs beside the new one for 24 hours, and two live at most", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  const versions = async (): Promise<string[]> => {
    await webhooks.enqueue(webhooks.kybEvent());
    await webhooks.deliver();
    const header = String(receiver.received.at(-1)?.headers["svc-kyb-signature"]);
    return [...header.matchAll(/kv=(\d+)/g)].map(([, version = ""]) => version);
  };
  await rotate();
  assert.deepEqual(await versions(), ["2", "1"]);
  await rotate();
  assert.deepEqual(await versions(), ["3", "2"]);
  webhooks.advance(86_399);
  assert.deepEqual(await versions(), ["3", "2"]);
  webhooks.advance(1);
  assert.deepEqual(await versions(), ["3"]);
  await rotate(true);
  assert.deepEqual(await versions(), ["4"]);
});

await test("nothing of an endpoint's secret stands in the clear, and its reads do not show it", async () => {
  const { secret } = await webhooks.register("https://hooks.example.com/kyb");
  assert.match(secret, /^[0-9a-f]{64}$/);
  const rows = await ctx.db.query(sql`select * from kyb_endpoint_secret`);
  assert.ok(!JSON.stringify(rows).includes(Buffer.from(secret).toString("hex")));
  assert.ok(!JSON.stringify(rows).includes(secret));
  const shown = await getEndpoint(ctx.db, clientDomainId);
  assert.deepEqual(Object.keys(shown).toSorted(), ["active", "createdAt", "secretVersion", "url"]);
});

await test("ten thousand held events are handed out in order, none lost, though processes take turns", async () => {
  const receiver = await webhooks.openReceiver(status(410));
  await webhooks.register(receiver.url);
  const waiting = Array.from({ length: 10_001 }, () => {
    webhooks.advance(0.001);
    return webhooks.kybEvent();
  });
  await webhooks.enqueue(...waiting);
  await countMarked();
  const leaseId = randomUUID();
  const [gone] = await claimOf(leaseId);
  assert.ok(gone);
  const refusal = { outcome: "refused", status: 410, deliveredAt: null } as const;
  await recordEnds(ctx, [{ ...deliveredOf(gone, leaseId), ...refusal }]);
  assert.equal(await webhooks.isActive(), false);
  await webhooks.deliver();
  await reconcileHeld(ctx);
  await store.endLeases(ctx.db, ctx.clock.nowMs() + 60_000);
  await reconcileHeld(ctx);
  const most = 5000;
  assert.deepEqual(await readHeld(), { held: 10_001, most });
  await webhooks.reactivate();
  assert.deepEqual(await readHeld(), { held: 5001, most });
  assert.equal(receiver.received.length, 0);
  const processes = [randomUUID(), randomUUID()];
  const seen: string[] = [];
  for (let round = 0; seen.length < waiting.length; round += 1) {
    const begun = await deliverDue(processes[round % 2], 250);
    assert.ok(begun.length > 0, `${seen.length} were handed out`);
    seen.push(...begun);
    await reconcileHeld(ctx);
    assert.deepEqual(await readHeld(), { held: 0, most });
    webhooks.advance(60);
  }
  assert.deepEqual(
    seen,
    waiting.map(({ id }) => id),
  );
});

/** Installs a trigger that counts the rows that each statement holds or releases. */
async function countMarked(): Promise<void> {
  const { db } = ctx;
  await db.query(sql`create table marked (count int)`);
  await db.query(sql`
    create function count_marked() returns trigger language plpgsql as $$ begin
      insert into marked select count(*) from before join after using (event_id) where before.is_held <> after.is_held;
      return null;
    end $$`);
  await db.query(sql`
    create trigger marking after update on webhook_delivery referencing old table as before new table as after
    for each statement execute function count_marked()`);
}

async function readHeld(): Promise<object> {
  const [row] = await ctx.db.query<object>(sql`
    select (select count(*) from webhook_delivery where is_held) as held, (select max(count) from marked) as most`);
  return row ?? {};
}

async function claimOf(lease: string, slots = 8): Promise<readonly store.Delivery[]> {
  const nowMs = Math.floor(ctx.clock.nowMs());
  const claimed = await store.claim(ctx.db, {
    nowMs,
    lease,
    leasedUntilMs: nowMs + 30_000,
    limit: 512,
    after: store.firstEndpoint,
    endpointsMax: 1024,
    slots,
    slow: [],
    fullDomains: [],
    largeMax: 16,
    fullOfLarge: [],
  });
  return claimed.deliveries.toSorted((a, b) => a.startAtMs - b.startAtMs);
}

/** As {@link deliverAll} but without a receiver, where an attempt may arrive before one that began a little earlier. */
async function deliverInTurn(): Promise<string[]> {
  const begun: string[] = [];
  for (let round = 0; round < 20; round += 1) {
    webhooks.advance(1);
    begun.push(...(await deliverDue()));
  }
  return begun;
}

/** Records success for all attempts that may begin. @returns their events, in the order of their beginning */
async function deliverDue(lease: string = randomUUID(), slots = 8): Promise<string[]> {
  const claimed = await claimOf(lease, slots);
  await recordEnds(
    ctx,
    claimed.map((each) => deliveredOf(each, lease)),
  );
  return claimed.map(({ eventId }) => eventId);
}

function deliveredOf(delivery: store.Delivery, lease: string): store.Ended {
  return {
    eventId: delivery.eventId,
    lease,
    outcome: "delivered",
    number: delivery.attempts + 1,
    status: 200,
    begunAtMs: Math.floor(delivery.startAtMs),
    durationMs: 1,
    answerSealed: null,
    deliveredAt: ctx.clock.now(),
    dueAtMs: null,
    kybEndpointId: delivery.endpointId,
    kybEndpointResets: 0,
  };
}
