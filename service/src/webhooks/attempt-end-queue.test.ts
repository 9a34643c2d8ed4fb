import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Db, Statement } from "../platform/database/db.ts";
import { AttemptEndQueue } from "./attempt-end-queue.ts";
import type { Ended } from "./delivery-store.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

const leaseMs = 30_000;

/** The end of an attempt at an event that does not exist, which the database ignores. */
const endOf = (eventId: string, begunAtMs = Number.MAX_SAFE_INTEGER): Ended => ({
  eventId,
  lease: "00000000-0000-4000-8000-000000000000",
  outcome: "delivered",
  number: 1,
  status: 200,
  begunAtMs,
  durationMs: 1,
  answerSealed: null,
  deliveredAt: 1,
  dueAtMs: null,
  kybEndpointId: null,
  kybEndpointResets: null,
});

/** A queue that notes how many ends each of its recording statements has. */
function openQueue(onStatement: () => void = () => undefined) {
  const sizes: number[] = [];
  const seen = { sizes, recorded: 0 };
  const query = async <Row extends object>(statement: Statement): Promise<Row[]> => {
    const [ids] = statement.values;
    if (Array.isArray(ids)) {
      sizes.push(ids.length);
      onStatement();
    }
    return ctx.db.query<Row>(statement);
  };
  const db: Db = { ...ctx.db, query };
  const onRecorded = (): void => void (seen.recorded += 1);
  return { queue: new AttemptEndQueue({ ...ctx, db }, { leaseMs, onRecorded }), seen };
}

await test("attempts that end during a recording are recorded right after it, and reported separately", async () => {
  const told: number[] = [];
  const { queue, seen } = openQueue(() => {
    told.push(seen.recorded);
    if (told.length < 3) queue.add(endOf(`late ${told.length}`));
  });
  queue.add(endOf("a"));
  queue.add(endOf("b"));
  await queue.settled();
  assert.deepEqual(told, [0, 1, 2]);
  assert.deepEqual(seen, { sizes: [2, 1, 1], recorded: 3 });
  assert.deepEqual([queue.hasWaiting, queue.isRecording], [false, false]);
});

await test("a statement records 512 ends at most", async () => {
  const { queue, seen } = openQueue();
  for (let at = 0; at < 513; at += 1) queue.add(endOf(`${at}`));
  await queue.settled();
  assert.deepEqual(seen, { sizes: [512, 1], recorded: 2 });
});

await test("results that the database does not take are kept, and not reported, until their leases end", async () => {
  const { queue, seen } = openQueue(() => {
    throw new Error("away");
  });
  const nowMs = ctx.clock.nowMs();
  queue.add(endOf("young", nowMs));
  await queue.settled();
  assert.deepEqual([queue.hasWaiting, seen.recorded], [true, 0]);
  webhooks.advance(leaseMs / 1000);
  queue.record();
  await queue.settled();
  assert.deepEqual([queue.hasWaiting, seen.recorded], [false, 0]);
});
