import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { holdDeliveries } from "./endpoint-store.ts";
import { sql } from "../platform/database/db.ts";
import { createLog } from "../platform/telemetry/log.ts";
import { createOutbound } from "../platform/outbound/outbound.ts";
import { getEndpoint } from "./endpoints.ts";
import { webhookJobs } from "./jobs.ts";
import * as store from "./delivery-store.ts";
import { ok, openTestWebhooks, status } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx, clientDomainId } = webhooks;

function openLog(level: "debug" | "error") {
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  return { lines, log: createLog({ level, destination }) };
}

await test("deliveries of a process that hangs are made by another, and its own results no longer count", async () => {
  const receiver = await webhooks.openReceiver();
  const stopped = Promise.withResolvers<void>();
  const { outbound } = ctx;
  const stuck = webhooks.openSender({
    outbound: {
      ...outbound,
      send: async (request) => {
        await stopped.promise;
        return outbound.send(request);
      },
    },
  });
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await stuck.pump();
  await webhooks.deliver();
  assert.equal(receiver.received.length, 0, "it is claimed");
  receiver.setAnswer(status(500));
  webhooks.advance(30);
  await store.endLeases(ctx.db, ctx.clock.nowMs());
  await webhooks.deliver();
  assert.equal((await webhooks.firstEvent(event.streamId)).attempts, 1);
  receiver.setAnswer(ok);
  stopped.resolve();
  await stuck.idle();
  assert.equal(receiver.received.length, 2);
  assert.deepEqual(
    receiver.received.map((each) => each.headers["svc-event-id"]),
    [event.id, event.id],
  );
  const { attempts, deliveredAt, nextAttemptAt } = await webhooks.firstEvent(event.streamId);
  assert.deepEqual([attempts, deliveredAt], [1, null]);
  assert.equal(nextAttemptAt, ctx.clock.now() + 5);
});

await test("a process that stops gives back what it had not begun to finish", async () => {
  const receiver = await webhooks.openReceiver();
  const events = Array.from({ length: 8 }, () => webhooks.event({ url: receiver.url }));
  await webhooks.enqueue(...events);
  const stopping = webhooks.openSender();
  await stopping.pump();
  // By the endpoint's pace most of them wait.
  await stopping[Symbol.asyncDispose]();
  webhooks.advance(1);
  await webhooks.deliver();
  const ids = receiver.received.map((each) => each.headers["svc-event-id"]);
  assert.equal(ids.length, 8);
  assert.equal(new Set(ids).size, 8);
});

await test("a sender that ends is idle, whatever it gives back", async () => {
  const receiver = await webhooks.openReceiver();
  const events = Array.from({ length: 8 }, () => webhooks.event({ url: receiver.url }));
  await webhooks.enqueue(...events);
  const begun = Promise.withResolvers<void>();
  const { outbound } = ctx;
  const send: typeof outbound.send = async (request) => {
    begun.resolve();
    return outbound.send(request);
  };
  const ending = webhooks.openSender({ outbound: { ...outbound, send } });
  const pumping = ending.pump();
  // In the same turn as the claim: none of the pauses between the attempts is over.
  await begun.promise;
  const isIdle = ending.idle();
  await ending[Symbol.asyncDispose]();
  await Promise.all([pumping, isIdle]);
  await ending.idle();
  assert.equal(receiver.received.length, 1, "it gave the others back");
});

await test("a process stops also while the database is away, and leaves what it claimed to the end of its lease", async () => {
  const receiver = await webhooks.openReceiver();
  const { db } = ctx;
  let isAway = false;
  const stopping = webhooks.openSender({
    db: {
      ...db,
      query: async (statement) => {
        if (isAway) throw new Error("the database is away");
        return db.query(statement);
      },
    },
  });
  await webhooks.enqueue(...Array.from({ length: 8 }, () => webhooks.event({ url: receiver.url })));
  await stopping.pump();
  // By the endpoint's pace most of them wait.
  isAway = true;
  await stopping[Symbol.asyncDispose]();
  webhooks.advance(30);
  await store.endLeases(db, ctx.clock.nowMs());
  await webhooks.deliver();
  const ids = receiver.received.map((each) => each.headers["svc-event-id"]);
  assert.equal(new Set(ids).size, 8);
});

await test("results that the database did not take are recorded again each second, and logged once a minute", async () => {
  const receiver = await webhooks.openReceiver();
  const { db } = ctx;
  let isAway = true;
  const { log, lines } = openLog("error");
  const sender = webhooks.openSender({
    log,
    db: {
      ...db,
      query: async (statement) => {
        if (isAway && statement.text.includes("insert into webhook_attempt"))
          throw new Error("the database is away");
        return db.query(statement);
      },
    },
  });
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver(sender);
  const retries = webhookJobs(ctx, sender).find(({ name }) => name === "webhook-retries");
  assert.equal(retries?.everySeconds, 1);
  const retry = async (): Promise<void> => {
    await retries.run(AbortSignal.any([]));
    await sender.idle();
  };
  await retry();
  assert.equal((await webhooks.firstEvent(event.streamId)).deliveredAt, null);
  assert.equal(lines.length, 1, lines.join(""));
  isAway = false;
  await retry();
  assert.equal(receiver.received.length, 1);
  assert.notEqual((await webhooks.firstEvent(event.streamId)).deliveredAt, null);
});

await test("production reaches no receiver on this machine, by name, by redirect or by an answer of the DNS", async () => {
  const reached: string[] = [];
  const outbound = createOutbound({
    profile: "production",
    ownHosts: [],
    resolve: {
      addresses: async (name) => [name === "inside.example.com" ? "127.0.0.1" : "10.0.0.7"],
      txt: async () => [],
    },
    connect: {
      ca: "",
      addressOf: (address) => {
        reached.push(address);
        return address;
      },
    },
  });
  const sender = webhooks.openSender({ outbound });
  const receiver = await webhooks.openReceiver();
  const urls = [receiver.url, "https://inside.example.com/", "https://private.example.com/"];
  const events = urls.map((url) => webhooks.event({ url }));
  await webhooks.enqueue(...events);
  await webhooks.deliver(sender);
  assert.equal(receiver.received.length, 0);
  assert.deepEqual(reached, []);
  for (const event of events) assert.equal((await webhooks.firstEvent(event.streamId)).attempts, 1);
  const text = await ctx.metrics.registry.getSingleMetricAsString("webhook_attempts_total");
  assert.match(text, /outcome="blocked"} 3/);
  await outbound.close();
});

await test("a redirect is not followed", async () => {
  const target = await webhooks.openReceiver();
  const receiver = await webhooks.openReceiver((_request, response) =>
    response.writeHead(307, { location: target.url }).end(),
  );
  await webhooks.enqueue(webhooks.event({ url: receiver.url }));
  await webhooks.deliver();
  assert.equal(receiver.received.length, 1);
  assert.equal(target.received.length, 0);
});

await test("an event without a signing key is not sent unsigned, and is tried again", async () => {
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver(webhooks.openSender({ signingKeys: async () => new Map() }));
  assert.equal(receiver.received.length, 0);
  assert.equal((await webhooks.firstEvent(event.streamId)).nextAttemptAt, ctx.clock.now() + 5);
});

await test("neither a body nor the query of an address is logged", async () => {
  const { log, lines } = openLog("debug");
  const sender = webhooks.openSender({ log });
  const receiver = await webhooks.openReceiver(status(500));
  const event = webhooks.event({
    url: `${receiver.url}?customer=ottilie`,
    body: '{"name":"ottilie"}',
  });
  await webhooks.enqueue(event);
  for (let attempt = 1; attempt <= 13; attempt += 1) {
    await webhooks.deliver(sender);
    webhooks.advance(86_400);
  }
  assert.equal(lines.length, 1);
  assert.match(lines.join(""), new RegExp(event.id));
  assert.doesNotMatch(lines.join(""), /ottilie/);
});

await test("the backlog and the age of its oldest event are measured", async () => {
  const receiver = await webhooks.openReceiver();
  await webhooks.enqueue(
    webhooks.event({ url: receiver.url }),
    webhooks.event({ url: receiver.url }),
  );
  webhooks.advance(90);
  const jobs = webhookJobs(ctx, webhooks.openSender());
  const measure = jobs.find(({ name }) => name === "webhook-backlog");
  await measure?.run(AbortSignal.any([]));
  const text = await ctx.metrics.registry.metrics();
  assert.match(text, /^webhook_backlog 2$/m);
  assert.match(text, /^webhook_oldest_due_seconds 90(\.\d+)?$/m);
  receiver.setAnswer(ok);
  await webhooks.deliver();
  await measure?.run(AbortSignal.any([]));
  assert.match(await ctx.metrics.registry.metrics(), /^webhook_backlog 0$/m);
});

await test("a pace that was written by a clock far ahead delays nothing", async () => {
  const receiver = await webhooks.openReceiver();
  const [first, second] = [1, 2].map(() => webhooks.event({ url: receiver.url }));
  assert.ok(first && second);
  await webhooks.enqueue(first);
  await webhooks.deliver();
  const { db, clock } = ctx;
  const aheadMs = clock.nowMs() + 3_600_000;
  await db.query(sql`update webhook_endpoint set next_at_ms = ${aheadMs}`);
  await webhooks.enqueue(second);
  await webhooks.deliver();
  assert.equal(receiver.received.length, 2);
  const rows = await db.query(sql`select from webhook_endpoint where next_at_ms >= ${aheadMs}`);
  assert.equal(rows.length, 0);
});

await test("a process that lost its lease releases nothing, and of its two results for one event the later counts", async () => {
  const { db, clock } = ctx;
  const receiver = await webhooks.openReceiver();
  for (const order of ["as made", "the other way round"]) {
    const event = webhooks.event({ url: receiver.url });
    await webhooks.enqueue(event);
    const take = async (lease: string) => {
      const nowMs = Math.floor(clock.nowMs());
      const wish = { limit: 8, after: store.firstEndpoint, endpointsMax: 9, slots: 8, largeMax: 1 };
      const times = { nowMs, lease, leasedUntilMs: nowMs + 30_000 };
      const nobody = { slow: [], fullDomains: [], fullOfLarge: [] };
      return (await store.claim(db, { ...wish, ...times, ...nobody })).deliveries;
    };
    const [old, current] = [randomUUID(), randomUUID()];
    assert.equal((await take(old)).length, 1);
    await store.endLeases(db, Math.floor(clock.nowMs()) + 29_999);
    const held = await db.query(sql`select from webhook_delivery where lease = ${old}`);
    assert.equal(held.length, 1, "its lease has a moment left");
    webhooks.advance(30);
    await store.endLeases(db, clock.nowMs());
    assert.equal((await take(current)).length, 1);
    await store.release(db, [{ eventId: event.id, lease: old }], clock.nowMs());
    assert.deepEqual(await take(randomUUID()), [], "it is under way");
    const made = { eventId: event.id, number: 1, durationMs: 1, answerSealed: null };
    const common = { ...made, kybEndpointId: null, kybEndpointResets: null };
    const begunAtMs = Math.floor(clock.nowMs());
    const deliveredAt = clock.now();
    const lost: store.Ended = {
      ...common,
      lease: old,
      outcome: "refused",
      status: 500,
      begunAtMs: begunAtMs - 30_000,
      deliveredAt: null,
      dueAtMs: begunAtMs,
    };
    const ends: store.Ended[] = [
      lost,
      {
        ...common,
        lease: current,
        outcome: "delivered",
        status: 200,
        begunAtMs,
        deliveredAt,
        dueAtMs: null,
      },
    ];
    const times = { nowMs: begunAtMs, deliveredDataSeconds: 1, keptUntil: 0 };
    for (const dueAtMs of [begunAtMs, null]) await store.finish(db, [{ ...lost, dueAtMs }], times);
    assert.equal((await webhooks.firstEvent(event.streamId)).attempts, 0);
    await store.finish(db, order === "as made" ? ends : ends.toReversed(), times);
    const { attempts, deliveredAt: noted } = await webhooks.firstEvent(event.streamId);
    assert.deepEqual([attempts, noted], [1, deliveredAt], order);
  }
});

await test("a process that lost its lease holds nothing that another has under way", async () => {
  const { db, clock } = ctx;
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  const stopped = Promise.withResolvers<void>();
  const { outbound } = ctx;
  const send: typeof outbound.send = async (request) => {
    await stopped.promise;
    return outbound.send(request);
  };
  const sender = webhooks.openSender({ outbound: { ...outbound, send } });
  await sender.pump();
  const [row] = await db.query<{ id: string }>(sql`select endpoint_id as id from webhook_delivery`);
  const lost = { eventId: event.id, endpointId: row?.id ?? "", lease: randomUUID() };
  await holdDeliveries(db, [lost], { nowMs: clock.nowMs(), most: 9 });
  stopped.resolve();
  await sender.idle();
  assert.equal((await webhooks.firstEvent(event.streamId)).attempts, 1);
});

await test("an attempt that breaks off is made again when its lease ends, and is logged", async () => {
  const { log, lines } = openLog("error");
  const receiver = await webhooks.openReceiver();
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  const broken = { ...ctx.outbound, send: async () => Promise.reject(new Error("unforeseen")) };
  await webhooks.deliver(webhooks.openSender({ log, outbound: broken }));
  assert.match(lines.join(""), /an attempt to deliver a webhook broke off/);
  webhooks.advance(30);
  await store.endLeases(ctx.db, ctx.clock.nowMs());
  await webhooks.deliver();
  assert.equal(receiver.received[0]?.headers["svc-event-id"], event.id);
});

await test("an endpoint whose secret does not open gets nothing unsigned and no quarantine, and all of it later", async () => {
  const { log, lines } = openLog("error");
  const sender = webhooks.openSender({ log });
  const { db } = ctx;
  const receiver = await webhooks.openReceiver();
  await webhooks.register(receiver.url);
  await db.query(
    sql`update kyb_endpoint_secret set secret_sealed = '\\x00'::bytea || secret_sealed`,
  );
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  for (let attempt = 1; attempt <= 13; attempt += 1) {
    await webhooks.deliver(sender);
    webhooks.advance(3600);
  }
  assert.equal(receiver.received.length, 0);
  const { attempts } = await webhooks.firstEvent(event.streamId);
  assert.ok(attempts > 1 && attempts < 13, `${attempts} attempts: they keep to the schedule`);
  assert.equal((await getEndpoint(db, clientDomainId)).active, true);
  assert.match(lines.join(""), /the secrets of an endpoint cannot be decrypted/);
  await db.query(sql`update kyb_endpoint_secret set secret_sealed = substr(secret_sealed, 2)`);
  webhooks.advance(86_400);
  await webhooks.deliver();
  assert.deepEqual(
    receiver.received.map(({ headers }) => headers["svc-event-id"]),
    [event.id],
  );
});
