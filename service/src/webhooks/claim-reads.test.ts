import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { endpointsMax } from "./claim-round.ts";
import { claim, firstEndpoint } from "./delivery-store.ts";
import {
  analyzeQueue,
  countIndexReads,
  countScanned,
  drainQueue,
  emptyQueue,
  holdQueue,
  insertPaces,
} from "./test-queue-store.ts";
import { openTestWebhooks, type TestWebhooks } from "./test-webhooks.ts";

const backlog = 6000;
const others = 20;
/** Few enough for a handful of pages. */
const drained = 600;
const slots = 8;
const limit = 512;

async function enqueue(webhooks: TestWebhooks, count: number, hostOf: (at: number) => string) {
  const { clientDomainId } = webhooks;
  const events = Array.from({ length: count }, (_, at) =>
    webhooks.event({ url: `https://${hostOf(at)}.example/hook`, clientDomainId }),
  );
  await webhooks.enqueue(...events);
}

/** Makes a claim, and checks how many index entries it reads. */
async function checkReads(
  { ctx }: TestWebhooks,
  taken: number,
  {
    fullDomains = [],
    scanned = "webhook_delivery",
  }: { fullDomains?: readonly string[]; scanned?: "webhook_delivery" | "webhook_endpoint" } = {},
): Promise<void> {
  const nowMs = Math.floor(ctx.clock.nowMs());
  await ctx.db.transaction(async (tx) => {
    const scannedBefore = await countScanned(tx, scanned);
    const { deliveries } = await claim(tx, {
      nowMs,
      lease: randomUUID(),
      leasedUntilMs: nowMs + 30_000,
      limit,
      after: firstEndpoint,
      endpointsMax,
      slots,
      slow: [],
      fullDomains,
      largeMax: 16,
      fullOfLarge: [],
    });
    assert.equal(deliveries.length, taken);
    assert.equal((await countScanned(tx, scanned)) - scannedBefore, 0);
    const reads = await countIndexReads(tx);
    const [due = 0, waiting = 0] = [
      reads["webhook_delivery_due_at"],
      reads["webhook_delivery_waiting"],
    ];
    assert.ok(due <= limit + 2, `${due} that are due`);
    // Per endpoint, beside the taken entries: the one that finds the endpoint, and the first that is not taken.
    assert.ok(waiting <= taken + 2 * (others + 1), `${waiting} that wait`);
  });
}

test("a claim reads no more of an endpoint's long queue than it may take where PostgreSQL has found that most are short", async () => {
  await using webhooks = await openTestWebhooks();
  await enqueue(webhooks, backlog, () => "long");
  await enqueue(webhooks, others * 3, (at) => `other-${at % others}`);
  await analyzeQueue(webhooks.ctx.db);
  await checkReads(webhooks, slots + others * 3);
});

test("a claim reads no endpoint's queue for another where PostgreSQL has found that all of it is one endpoint's", async () => {
  await using webhooks = await openTestWebhooks();
  await enqueue(webhooks, backlog, () => "long");
  await analyzeQueue(webhooks.ctx.db);
  await enqueue(webhooks, others, (at) => `other-${at}`);
  await checkReads(webhooks, slots + others);
});

test("a claim reads no endpoint's queue for another where PostgreSQL has found that all of it is held", async () => {
  await using webhooks = await openTestWebhooks();
  await enqueue(webhooks, backlog, () => "held");
  await holdQueue(webhooks.ctx.db);
  await analyzeQueue(webhooks.ctx.db);
  await enqueue(webhooks, backlog, () => "long");
  await enqueue(webhooks, others, (at) => `other-${at}`);
  await checkReads(webhooks, slots + others);
});

test("a claim reads no more of an endpoint's queue than it may take where PostgreSQL has found that a longer one was drained", async () => {
  await using webhooks = await openTestWebhooks();
  await enqueue(webhooks, backlog, () => "gone");
  await emptyQueue(webhooks.ctx.db);
  await enqueue(webhooks, drained, () => "gone");
  await drainQueue(webhooks.ctx.db);
  await enqueue(webhooks, drained, () => "long");
  await enqueue(webhooks, others, (at) => `other-${at}`);
  await checkReads(webhooks, 1 + slots + others);
});

test("a claim reads only the paces of the endpoints that it looks at", async () => {
  await using webhooks = await openTestWebhooks();
  await insertPaces(webhooks.ctx.db, 1000);
  await enqueue(webhooks, others, (at) => `other-${at}`);
  await analyzeQueue(webhooks.ctx.db);
  await checkReads(webhooks, others, { scanned: "webhook_endpoint" });
});

test("a claim does not read the queues of client domains that have no room", async () => {
  await using webhooks = await openTestWebhooks();
  await enqueue(webhooks, backlog, () => "long");
  const another = webhooks.event({
    url: "https://another.example/hook",
    clientDomainId: randomUUID(),
  });
  await webhooks.enqueue(another);
  await analyzeQueue(webhooks.ctx.db);
  await checkReads(webhooks, 1, { fullDomains: [webhooks.clientDomainId] });
});
