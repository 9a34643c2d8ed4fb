import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { sql } from "../platform/database/db.ts";
import { reportStream } from "./stream-report.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

await test("attempts are listed newest first over all events, and events without attempts too", async () => {
  const { url } = await webhooks.openReceiver();
  const first = webhooks.event({ url: `${url}?token=secret`, sequence: 1 });
  const { streamId } = first;
  const second = webhooks.event({ url, streamId, sequence: 2 });
  await webhooks.enqueue(first);
  await webhooks.deliver();
  webhooks.advance(60);
  await webhooks.enqueue(second);
  await webhooks.deliver();
  webhooks.advance(60);
  assert.equal(await webhooks.redeliver({ streamId, eventId: first.id }), 1);
  await webhooks.deliver();
  webhooks.advance(60);
  await webhooks.enqueue(webhooks.event({ url, streamId, sequence: 3 }));
  const told = await reportStream(ctx, streamId, { withAnswers: true });
  const attempts = told.attempts as { sequence: number; attempt: number; answer: string }[];
  assert.deepEqual(
    attempts.map(({ sequence, attempt, answer }) => [sequence, attempt, answer]),
    [
      [1, 2, "thanks"],
      [2, 1, "thanks"],
      [1, 1, "thanks"],
    ],
  );
  const events = told.events as { sequence: number; attempts: number; to: string }[];
  assert.deepEqual(
    events.map(({ sequence, attempts: made, to }) => [sequence, made, to]),
    [
      [3, 0, url],
      [2, 1, url],
      [1, 2, url],
    ],
  );
});

await test("an event shows when it is tried next, whether it is held, and whether its body was purged", async () => {
  const held = webhooks.kybEvent({ sequence: 1 });
  const { streamId } = held;
  const due = webhooks.kybEvent({ streamId, sequence: 2 });
  const purged = webhooks.kybEvent({ streamId, sequence: 3 });
  await webhooks.enqueue(held, due, purged);
  await ctx.db.query(sql`update webhook_delivery set is_held = true where event_id = ${held.id}`);
  await ctx.db.query(
    sql`update webhook_event set body = null, purge_at = null where id = ${purged.id}`,
  );
  await ctx.db.query(sql`delete from webhook_delivery where event_id = ${purged.id}`);
  const { events, attempts } = await reportStream(ctx, streamId, { withAnswers: false });
  const told = events as Record<"to" | "nextAttemptAt" | "isHeld" | "isPurged", unknown>[];
  assert.deepEqual(
    told.map(({ to, nextAttemptAt, isHeld, isPurged }) => [to, nextAttemptAt, isHeld, isPurged]),
    [
      ["endpoint", null, false, true],
      ["endpoint", ctx.clock.now(), false, false],
      ["endpoint", null, true, false],
    ],
  );
  assert.deepEqual(attempts, []);
});
