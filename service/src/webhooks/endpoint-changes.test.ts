// Endpoints that change while deliveries are under way: what the old one answers is not the new one's fault.
import assert from "node:assert/strict";
import { once } from "node:events";
import type { ServerResponse } from "node:http";
import { test, type TestContext } from "node:test";
import { sql } from "../platform/db.ts";
import { createOutbound } from "../platform/outbound.ts";
import { getEndpoint, reactivateEndpoint } from "./endpoints.ts";
import { openTestWebhooks, ok, type TestWebhooks } from "./test-webhooks.ts";

async function isActive({ ctx, clientDomainId }: TestWebhooks): Promise<boolean> {
  return (await getEndpoint(ctx.db, clientDomainId)).active;
}

/** With time-outs as they are in life. */
async function openUnhurried(t: TestContext): Promise<TestWebhooks> {
  const outbound = createOutbound({ profile: "dev", ownHosts: [] });
  t.after(async () => outbound.close());
  return openTestWebhooks({ outbound });
}

/** Answers that are given when the test says so. */
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

test("a 410 of the address that an endpoint has left puts no quarantine on the new one", async (t) => {
  await using webhooks = await openUnhurried(t);
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
  assert.equal(await isActive(webhooks), true);
  webhooks.advance(10);
  await webhooks.deliver();
  assert.deepEqual(
    next.received.map(({ headers }) => headers["svc-event-id"]),
    [event.id],
  );
});

test("a last attempt that ends after the quarantine has begun is held, not given up", async (t) => {
  await using webhooks = await openUnhurried(t);
  const held = holdAnswers();
  const receiver = await webhooks.openReceiver(held.answer);
  await webhooks.register(receiver.url);
  const [last, other] = [webhooks.kybEvent(), webhooks.kybEvent()];
  await webhooks.enqueue(last, other);
  // Twelve attempts were made before.
  await webhooks.ctx.db.query(
    sql`update webhook_delivery set step = 12 where event_id = ${last.id}`,
  );
  await webhooks.ctx.db.query(sql`update webhook_event set attempts = 12 where id = ${last.id}`);
  const delivered = webhooks.deliver();
  await held.arrived(2);
  assert.equal(receiver.received.length, 2);
  const at = receiver.received.findIndex(({ headers }) => headers["svc-event-id"] === other.id);
  held.open[at]?.writeHead(410).end();
  while (await isActive(webhooks)) await new Promise((resolve) => void setImmediate(resolve));
  held.open[1 - at]?.writeHead(500).end();
  await delivered;
  receiver.setAnswer(ok);
  await webhooks.ctx.db.transaction(async (tx) =>
    reactivateEndpoint(webhooks.ctx, tx, webhooks.clientDomainId),
  );
  receiver.received.length = 0;
  webhooks.advance(60);
  await webhooks.deliver();
  assert.deepEqual(
    new Set(receiver.received.map(({ headers }) => headers["svc-event-id"])),
    new Set([last.id, other.id]),
  );
});
