import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import { largeBytes } from "./event.ts";
import { listDeliveriesOf, listEventsOf, pageBytesMax } from "./events.ts";
import { readPlace } from "./stream-page.ts";
import { sql } from "../platform/database/db.ts";
import { insertClientDomain } from "./test-endpoint-store.ts";
import { openTestWebhooks, ok, status, type Received } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

const idOf = (request: Received): string => String(request.headers["svc-event-id"]);

async function listedOf(streamId: string) {
  return (await listEventsOf(ctx, streamId, { after: 0, limit: 100 })).events;
}

await test("an event is delivered with its body, its id and both signatures, once", async () => {
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: `${receiver.url}?order=1` });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  await webhooks.deliver();
  const [request, ...others] = receiver.received;
  assert.ok(request);
  assert.equal(others.length, 0);
  assert.equal(request.path, "/hook?order=1");
  assert.equal(request.body, event.body);
  assert.equal(request.headers["content-type"], "application/json");
  assert.equal(request.headers["svc-event-id"], event.id);
  assert.equal(request.headers["svc-delivery-attempt"], "1");
  const [listed] = await listedOf(event.streamId);
  const now = ctx.clock.now();
  assert.deepEqual(listed, {
    id: event.id,
    sequence: 1,
    kind: "status.updated",
    createdAt: now,
    deliveredAt: now,
    attempts: 1,
    nextAttemptAt: null,
    body: event.body,
  });
});

await test("nothing of a change that was rolled back is announced", async () => {
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: receiver.url });
  const twin = webhooks.event({ url: receiver.url, streamId: event.streamId });
  await assert.rejects(webhooks.enqueue(event, twin), /webhook_event_stream_id_sequence/);
  await webhooks.deliver();
  assert.equal(receiver.received.length, 0);
});

await test("a thousand events are one statement", async () => {
  const events = Array.from({ length: 1000 }, () =>
    webhooks.event({ url: "http://127.0.0.1:9999/" }),
  );
  const before = ctx.db.callsTotal;
  await webhooks.enqueue(...events);
  assert.equal(ctx.db.callsTotal - before, 2, "with the end of the transaction");
});

for (const code of [301, 400, 410, 500]) {
  await test(`an answer ${code} is tried again with the same bytes and a new time`, async () => {
    const receiver = await webhooks.openReceiver(status(code, { location: "http://127.0.0.1:1/" }));
    const event = webhooks.event({ url: receiver.url });
    await webhooks.enqueue(event);
    await webhooks.deliver();
    webhooks.advance(4);
    await webhooks.deliver();
    assert.equal(receiver.received.length, 1);
    webhooks.advance(1);
    receiver.setAnswer(ok);
    await webhooks.deliver();
    const [first, second] = receiver.received;
    assert.ok(first && second);
    assert.equal(second.body, first.body);
    assert.equal(idOf(second), idOf(first));
    assert.equal(second.headers["svc-delivery-attempt"], "2");
    assert.notEqual(second.headers["svc-signature"], first.headers["svc-signature"]);
    const [listed] = await listedOf(event.streamId);
    assert.equal(listed?.attempts, 2);
    assert.equal(listed.deliveredAt, ctx.clock.now());
  });
}

await test("first attempts of a stream go in order, one after the other, whatever comes of them", async () => {
  let open = 0;
  const receiver = await webhooks.openReceiver((_request, response) => {
    open += 1;
    assert.equal(open, 1);
    setImmediate(() => {
      open -= 1;
      response.writeHead(open === 0 ? 500 : 200).end();
    });
  });
  const first = webhooks.event({ url: receiver.url });
  const events = Array.from({ length: 10 }, (_, index) =>
    webhooks.event({ url: receiver.url, streamId: first.streamId, sequence: index + 1 }),
  );
  // Neither ids nor due times give the order.
  await webhooks.enqueue(...events.toReversed());
  await webhooks.deliver();
  // The clock stands still, so the test advances it by what the endpoint's pace requires.
  webhooks.advance(1);
  await webhooks.deliver();
  assert.deepEqual(
    receiver.received.map((request) => idOf(request)),
    events.map((event) => event.id),
  );
});

await test("an endpoint gets eight at a time, and no more than fifty in a second", async () => {
  let [open, most] = [0, 0];
  const receiver = await webhooks.openReceiver((_request, response) => {
    open += 1;
    most = Math.max(most, open);
    setTimeout(() => {
      open -= 1;
      response.end();
    }, 100).unref();
  });
  const another = webhooks.openSender();
  // URLs that differ only in their query are one endpoint.
  const events = Array.from({ length: 24 }, (_, index) =>
    webhooks.event({ url: `${receiver.url}?order=${index}` }),
  );
  await webhooks.enqueue(...events);
  const started = performance.now();
  await Promise.all([webhooks.deliver(), another.pump()]);
  // The engine's clock stands still, so the test advances it by what the endpoint's pace requires.
  for (let round = 0; receiver.received.length < 24 && round < 100; round += 1) {
    webhooks.advance(0.16);
    await Promise.all([webhooks.deliver(), another.pump().then(async () => another.idle())]);
  }
  assert.equal(receiver.received.length, 24);
  assert.equal(new Set(receiver.received.map((request) => idOf(request))).size, 24);
  assert.ok(most <= 8, `${most} at a time`);
  assert.ok(performance.now() - started >= 3 * 140, "24 take their 20 ms each");
});

await test("the ninth attempt at an endpoint begins 160 ms after the first, and again eight later", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.enqueue(
    ...Array.from({ length: 16 }, () => webhooks.event({ url: receiver.url })),
  );
  const { db, clock } = ctx;
  for (let round = 0; round < 2; round += 1) {
    await webhooks.deliver();
    assert.equal(receiver.received.length, 8 * (round + 1));
    const [pace] = await db.query<{ next_at_ms: number }>(sql`
      select next_at_ms from webhook_endpoint`);
    assert.equal(pace?.next_at_ms, clock.nowMs() + 160);
    webhooks.advance(0.16);
  }
});

await test("a queue of an endpoint that hangs holds up nobody else", async () => {
  const hanging = await webhooks.openReceiver(() => undefined);
  const healthy = await webhooks.openReceiver();
  const queue = Array.from({ length: 300 }, () => webhooks.event({ url: hanging.url }));
  const other = webhooks.event({ url: healthy.url });
  await webhooks.enqueue(...queue, other);
  const delivered = Promise.withResolvers<void>();
  healthy.setAnswer((_request, response) => {
    response.end();
    delivered.resolve();
  });
  const sender = webhooks.openSender({
    outbound: {
      ...ctx.outbound,
      send: async (request) => ctx.outbound.send(request),
    },
  });
  await sender.pump();
  await delivered.promise;
  assert.ok(hanging.received.length <= 8);
});

await test("room that attempts make during claims is used right after these", async () => {
  const { db } = ctx;
  const receiver = await webhooks.openReceiver();
  const both = Promise.withResolvers<void>();
  const claimedAgain = Promise.withResolvers<void>();
  receiver.setAnswer((_request, response) => {
    void claimedAgain.promise.then(() => response.end());
    if (receiver.received.length === 2) both.resolve();
  });
  const kept = Promise.withResolvers<void>();
  let claims = 0;
  const query: typeof db.query = async (statement) => {
    const isClaim = statement.text.includes("update webhook_turn");
    if (isClaim) claims += 1;
    const isSecond = isClaim && claims === 2;
    const rows = await db.query(statement);
    if (statement.text.includes("webhook_attempt")) setImmediate(kept.resolve);
    if (isSecond) {
      claimedAgain.resolve();
      await kept.promise;
    }
    return rows as never[];
  };
  const sender = webhooks.openSender({ db: { ...db, query } });
  const streamId = randomUUID();
  const events = [1, 2].map((sequence) =>
    webhooks.event({ url: receiver.url, streamId, sequence }),
  );
  await webhooks.enqueue(...events);
  await sender.pump();
  await both.promise;
  assert.ok(claims > 2);
});

/**
 * Has one process deliver for client domains whose endpoints hang, one after the other, and then for one that answers.
 */
async function deliverBesideHanging(
  names: readonly string[],
  { count, bounds, ...given }: { count: number; bounds?: { underWayMax: number }; body?: string },
): Promise<[host: string, hanging: number][]> {
  const { outbound, db } = ctx;
  const receiver = await webhooks.openReceiver();
  const hanging = Promise.withResolvers<Awaited<ReturnType<typeof outbound.send>>>();
  const hung = new Map<string, number>();
  const send: typeof outbound.send = async (request) => {
    const { hostname } = new URL(request.url);
    if (request.url.startsWith(receiver.url)) return outbound.send(request);
    hung.set(hostname, (hung.get(hostname) ?? 0) + 1);
    return hanging.promise;
  };
  const sender = webhooks.openSender({ outbound: { ...outbound, send } }, bounds);
  for (const name of names) {
    const clientDomainId = randomUUID();
    await insertClientDomain(db, clientDomainId);
    const events = Array.from({ length: count }, (_, index) =>
      webhooks.event({ url: `https://${name}.example/${index}`, clientDomainId, ...given }),
    );
    await webhooks.enqueue(...events);
    await sender.pump();
  }
  const delivered = Promise.withResolvers<void>();
  receiver.setAnswer((_request, response) => {
    response.end();
    delivered.resolve();
  });
  await webhooks.enqueue(webhooks.event({ url: receiver.url, ...given }));
  await sender.pump();
  await delivered.promise;
  hanging.resolve({ kind: "failed", reason: "timeout" });
  return [...hung];
}

await test("a client domain whose endpoints hang takes half of what the others leave, and holds up nobody else", async () => {
  const wish = { count: 100, bounds: { underWayMax: 64 } };
  assert.deepEqual(await deliverBesideHanging(["one", "two", "three"], wish), [
    ["one.example", 32],
    ["two.example", 16],
    ["three.example", 8],
  ]);
});

await test("a client domain whose endpoints hang takes half of the large bodies that the others leave, and holds up nobody else", async () => {
  const body = JSON.stringify({ image: "x".repeat(largeBytes) });
  assert.deepEqual(await deliverBesideHanging(["one", "two"], { count: 20, body }), [
    ["one.example", 8],
    ["two.example", 4],
  ]);
});

await test("a resend restarts the schedule, while the number of attempts continues", async () => {
  const receiver = await webhooks.openReceiver();
  const first = webhooks.event({ url: receiver.url });
  const second = webhooks.event({ url: receiver.url, streamId: first.streamId, sequence: 2 });
  await webhooks.enqueue(first, second);
  await webhooks.deliver();
  assert.equal(await webhooks.redeliver({ streamId: first.streamId, eventId: second.id }), 1);
  await webhooks.deliver();
  const { clock } = ctx;
  const deliveredAt = clock.now();
  webhooks.advance(1);
  receiver.setAnswer(status(500));
  assert.equal(await webhooks.redeliver({ streamId: first.streamId }), 2);
  await webhooks.deliver();
  const { events } = await listEventsOf(ctx, first.streamId, { after: 0, limit: 2 });
  assert.deepEqual(
    events.map((each) => [each.deliveredAt, each.nextAttemptAt]),
    [
      [deliveredAt, clock.now() + 5],
      [deliveredAt, clock.now() + 5],
    ],
    "it was delivered at its first 2xx",
  );
  assert.deepEqual(
    receiver.received.map((each) => [idOf(each), each.headers["svc-delivery-attempt"]]),
    [
      [first.id, "1"],
      [second.id, "1"],
      [second.id, "2"],
      [first.id, "2"],
      [second.id, "3"],
    ],
  );
  const unknown = { streamId: first.streamId, eventId: "evt_unknown" };
  await assert.rejects(webhooks.redeliver(unknown), { reason: "event_not_found" });
});

await test("after its last attempt an event is kept for a resend", async () => {
  const receiver = await webhooks.openReceiver(status(500));
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  for (let attempt = 2; attempt <= 13; attempt += 1) {
    const [listed] = await listedOf(event.streamId);
    assert.ok(listed?.nextAttemptAt);
    webhooks.advance(listed.nextAttemptAt - ctx.clock.now());
    await webhooks.deliver();
  }
  const [listed] = await listedOf(event.streamId);
  assert.equal(receiver.received.length, 13);
  assert.equal(listed?.nextAttemptAt, null);
  assert.equal(listed.deliveredAt, null);
  webhooks.advance(30 * 86_400);
  receiver.setAnswer(ok);
  await webhooks.redeliver({ streamId: event.streamId });
  await webhooks.deliver();
  assert.equal(receiver.received.at(-1)?.headers["svc-delivery-attempt"], "14");
});

await test("a page of events stays within its bytes, shows one at least, and the next goes on from there", async () => {
  const streamId = randomUUID();
  const mebibyte = 1024 * 1024;
  const payloadExpiresAt = ctx.clock.now() + 86_400;
  const eventOf = (sequence: number, size: number) =>
    webhooks.event({
      url: "http://127.0.0.1:9",
      streamId,
      sequence,
      body: "x".repeat(size),
      // Sealed and plain bodies count alike.
      ...(sequence % 2 === 0 ? { isPersonal: true, payloadExpiresAt } : {}),
    });
  for (let sequence = 1; sequence <= 20; sequence += 1)
    await webhooks.enqueue(eventOf(sequence, mebibyte));
  await webhooks.enqueue(eventOf(21, pageBytesMax + 1), eventOf(22, 1), eventOf(23, 1));
  const pages: number[][] = [];
  for (let cursor: string | undefined = "0"; cursor !== undefined;) {
    const { after } = readPlace({ cursor, after: undefined });
    const page = await listEventsOf(ctx, streamId, { after, limit: 100 });
    const bytes = page.events.reduce((sum, { body }) => sum + (body?.length ?? 0), 0);
    assert.ok(page.events.length === 1 || bytes <= pageBytesMax, `${bytes} bytes`);
    pages.push(page.events.map(({ sequence }) => sequence));
    cursor = page.nextCursor;
  }
  assert.deepEqual(pages, [
    [1, 2, 3, 4, 5, 6, 7],
    [8, 9, 10, 11, 12, 13, 14],
    [15, 16, 17, 18, 19, 20],
    [21],
    [22, 23],
  ]);
});

await test("pages of attempts list each of them once, even if a page ends between two at one event", async () => {
  const { url } = await webhooks.openReceiver(status(500));
  const streamId = randomUUID();
  const eventOf = (sequence: number) => webhooks.event({ url, streamId, sequence });
  await webhooks.enqueue(eventOf(1), eventOf(2));
  for (let round = 0; round < 5; round += 1) {
    await webhooks.deliver();
    webhooks.advance(3600);
  }
  const { deliveries: all, ...next } = await listDeliveriesOf(ctx, streamId, {
    after: 0,
    limit: 100,
  });
  assert.ok(all.length > 6, `${all.length} attempts`);
  assert.deepEqual(next, {});
  for (const limit of [1, 3, all.length]) {
    const seen: typeof all = [];
    let pages = 0;
    for (let cursor: string | undefined = "0"; cursor !== undefined; pages += 1) {
      const place = readPlace({ cursor, after: undefined });
      const page = await listDeliveriesOf(ctx, streamId, { ...place, limit });
      seen.push(...page.deliveries);
      cursor = page.nextCursor;
    }
    assert.deepEqual(seen, all);
    assert.equal(pages, Math.ceil(all.length / limit), "no page is empty");
  }
  const { deliveries } = await listDeliveriesOf(ctx, streamId, { after: 1, limit: 100 });
  assert.deepEqual(new Set(deliveries.map(({ seq }) => seq)), new Set([2]));
});

await test("a process takes no more than it has room for, and the rest as soon as there is room", async () => {
  const answers: (() => void)[] = [];
  const receivers = await Promise.all(
    Array.from({ length: 5 }, async () =>
      webhooks.openReceiver((_request, response) => void answers.push(() => response.end())),
    ),
  );
  await webhooks.enqueue(...receivers.map(({ url }) => webhooks.event({ url })));
  const receivedTotal = (): number =>
    receivers.reduce((sum, { received }) => sum + received.length, 0);
  const sender = webhooks.openSender({}, { underWayMax: 2 });
  await sender.pump();
  while (answers.length < 1) await nextTurn();
  await sender.pump();
  assert.ok(receivedTotal() <= 2);
  while (receivedTotal() < 5 || answers.length > 0) {
    answers.splice(0).forEach((answer) => answer());
    await nextTurn();
    assert.ok(answers.length <= 2);
  }
  await sender.idle();
});
