// How the answers of a receiver, and their time, decide about an event.
import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { afterEach, test } from "node:test";
import { holdTimers } from "../../../test/held-timers.ts";
import { sql } from "../platform/database/db.ts";
import type { Outbound } from "../platform/outbound/outbound.ts";
import { listDeliveriesOf } from "./events.ts";
import { type Answer, openTestWebhooks, status } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

/** The factor by which time-outs are shortened in tests that wait for them. */
const hurry = 30;

/** Shortens every time-out by that factor, so that they keep their proportions. */
const hurried: Outbound = {
  send: async (request) => ctx.outbound.send({ ...request, timeoutMs: request.timeoutMs / hurry }),
  close: async () => ctx.outbound.close(),
};

await test("after a 429 the next attempt comes when Retry-After says", async () => {
  const receiver = await webhooks.openReceiver(status(429, { "retry-after": "1000" }));
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  const listed = await webhooks.firstEvent(event.streamId);
  assert.equal(listed.nextAttemptAt, ctx.clock.now() + 1000);
});

const endings: readonly [string, (response: ServerResponse) => void][] = [
  ["is larger than what is read", (response) => void response.end(Buffer.alloc(64 * 1024))],
  ["never ends", (response) => void response.write("a")],
];
for (const [how, end] of endings)
  await test(`a refusal counts by its status and Retry-After though its body ${how}`, async () => {
    const { clock } = ctx;
    for (const [answered, headers, waitSeconds] of [
      [429, { "retry-after": "1000" }, 1000],
      [503, { "retry-after": "100" }, 100],
      [429, {}, 60],
      [307, { "retry-after": "100", location: "/" }, 100],
    ] as const) {
      const receiver = await webhooks.openReceiver((_request, response) =>
        end(response.writeHead(answered, headers)),
      );
      const event = webhooks.event({ url: receiver.url });
      await webhooks.enqueue(event);
      await webhooks.deliver(webhooks.openSender({ outbound: hurried }));
      const page = { after: 0, limit: 1 };
      const {
        deliveries: [attempt],
      } = await listDeliveriesOf(ctx, event.streamId, page);
      assert.deepEqual([attempt?.outcome, attempt?.status], ["refused", answered]);
      const listed = await webhooks.firstEvent(event.streamId);
      assert.equal(listed.nextAttemptAt, clock.now() + waitSeconds);
    }
  });

await test("a receiver that nobody listens for is tried again after five seconds", async () => {
  const event = webhooks.event({ url: "http://127.0.0.1:1025/" });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  const listed = await webhooks.firstEvent(event.streamId);
  assert.equal(listed.nextAttemptAt, ctx.clock.now() + 5);
});

const hangs: readonly [string, Answer][] = [
  ["hangs", () => undefined],
  [
    "answers 200 and never ends its body",
    (_request, response) => void response.writeHead(200).write("a"),
  ],
  [
    "answers 500 and never ends its body",
    (_request, response) => void response.writeHead(500).write("a"),
  ],
  [
    "answers after 16 s",
    (_request, response) => void setTimeout(() => response.end(), 16_000 / hurry).unref(),
  ],
];
for (const [what, answer] of hangs) {
  await test(`a receiver that ${what} is cut off after 15 s, and waits for a minute`, async () => {
    // Not before the receiver was asked, however long the machine stalls.
    using limit = holdTimers(15_000 / hurry);
    const receiver = await webhooks.openReceiver((request, response) => {
      answer(request, response);
      setTimeout(() => limit.pass(), 100);
    });
    const event = webhooks.event({ url: receiver.url });
    await webhooks.enqueue(event);
    await webhooks.deliver(webhooks.openSender({ outbound: hurried }));
    assert.equal(receiver.received.length, 1);
    const listed = await webhooks.firstEvent(event.streamId);
    assert.equal(listed.deliveredAt, null);
    assert.equal(listed.nextAttemptAt, ctx.clock.now() + 60);
  });
}

await test("a receiver that streams without an end is cut off after 16 KiB, and has failed", async () => {
  const receiver = await webhooks.openReceiver((_request, response) => {
    response.writeHead(200);
    const write = (): void => {
      while (response.writable && response.write(Buffer.alloc(4096)));
      if (response.writable) response.once("drain", write);
    };
    write();
  });
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  await webhooks.deliver();
  const listed = await webhooks.firstEvent(event.streamId);
  assert.equal(listed.deliveredAt, null);
  assert.equal(listed.nextAttemptAt, ctx.clock.now() + 5);
});

await test("an answer counts within 14 of its 15 seconds", async () => {
  const receiver = await webhooks.openReceiver(status(200));
  const event = webhooks.event({ url: receiver.url });
  await webhooks.enqueue(event);
  const { outbound } = ctx;
  // Not shortened: the last second would be 33 ms, and a busy machine may pause a process for that long.
  const limitsMs: number[] = [];
  const noting: Outbound = {
    async send(request) {
      limitsMs.push(request.timeoutMs);
      return outbound.send(request);
    },
    close: async () => outbound.close(),
  };
  await webhooks.deliver(webhooks.openSender({ outbound: noting }));
  assert.equal(limitsMs.length, 1);
  assert.ok(Number(limitsMs[0]) > 14_000, `${limitsMs[0]} ms`);
  assert.ok((await webhooks.firstEvent(event.streamId)).deliveredAt);
});

for (const [bytes, outcome] of [
  [16 * 1024, { isDelivered: true, kept: 4096 }],
  [16 * 1024 + 1, { isDelivered: false, kept: 0 }],
] as const)
  await test(`of an answer of ${bytes} bytes ${outcome.kept} are kept, and it has ${outcome.isDelivered ? "arrived" : "failed"}`, async () => {
    const receiver = await webhooks.openReceiver(
      (_request, response) => void response.end(Buffer.alloc(bytes, "y")),
    );
    const event = webhooks.event({ url: receiver.url });
    await webhooks.enqueue(event);
    await webhooks.deliver();
    const { db, seal } = ctx;
    const [attempt] = await db.query<{ id: string; answer_sealed: Buffer | null }>(sql`
      select id, answer_sealed from webhook_attempt`);
    const place = { table: "webhook_attempt", id: attempt?.id ?? "", column: "answer_sealed" };
    const answer = attempt?.answer_sealed ? seal.open(attempt.answer_sealed, place) : [];
    const listed = await webhooks.firstEvent(event.streamId);
    const isDelivered = listed !== undefined && listed.deliveredAt !== null;
    assert.deepEqual({ isDelivered, kept: answer.length }, outcome);
    const page = { after: 0, limit: 1 };
    const {
      deliveries: [told],
    } = await listDeliveriesOf(ctx, event.streamId, page);
    assert.equal(told?.outcome, isDelivered ? "delivered" : "failed");
    assert.equal(told.durationMs !== undefined, isDelivered, "how long it took would tell why");
  });

for (const [how, answer] of hangs.slice(0, 3))
  await test(`an endpoint that ${how} gets one delivery at a time until it answers`, async () => {
    const receiver = await webhooks.openReceiver(answer);
    const outbound = hurried;
    let underWay = 0;
    const most: number[] = [];
    const sender = webhooks.openSender({
      outbound: {
        ...outbound,
        async send(request) {
          underWay += 1;
          most.push(underWay);
          return outbound.send(request).finally(() => (underWay -= 1));
        },
      },
    });
    const runOf = async (): Promise<number> => {
      const events = Array.from({ length: 4 }, () => webhooks.event({ url: receiver.url }));
      await webhooks.enqueue(...events);
      await webhooks.deliver(sender);
      return Math.max(...most.splice(0));
    };
    assert.ok((await runOf()) > 1, "nothing is known of it yet");
    assert.equal(await runOf(), 1);
  });
