import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import type { Db } from "../platform/database/db.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

await test("after a claim that took long a process rests for 50 ms, and one claim takes what was announced meanwhile", async (t) => {
  const receiver = await webhooks.openReceiver();
  const { db } = ctx;
  let [claims, nowMs] = [0, 0];
  const query: Db["query"] = async (statement) => {
    if (statement.text.includes("update webhook_turn")) {
      claims += 1;
      nowMs += 1000;
    }
    return db.query(statement);
  };
  const sender = webhooks.openSender({ db: { ...db, query } });
  t.mock.method(performance, "now", () => nowMs);
  await sender.pump();
  assert.equal(claims, 1);
  await webhooks.enqueue(...[1, 2, 3].map(() => webhooks.event({ url: receiver.url })));
  const began = Date.now();
  await Promise.all([sender.pump(), sender.pump(), sender.pump()]);
  await sender.idle();
  assert.equal(claims, 2);
  assert.equal(receiver.received.length, 3);
  assert.ok(Date.now() - began >= 45, "it rested");
});

await test("a process that closes while it rests claims nothing more, and does not wait", async () => {
  const sender = webhooks.openSender();
  await sender.pump();
  const before = ctx.db.callsTotal;
  const pumping = sender.pump();
  await Promise.all([sender[Symbol.asyncDispose](), pumping]);
  assert.equal(ctx.db.callsTotal, before);
});

await test("a process that is woken at any moment while its claims end claims again", async (t) => {
  const receiver = await webhooks.openReceiver();
  const { db } = ctx;
  t.mock.method(performance, "now", () => 0);
  for (let moment = 0; moment < 24; moment += 1) {
    webhooks.advance(1);
    let woken: Promise<void> | undefined;
    const wake = async (): Promise<void> => {
      for (let turn = 0; turn < moment; turn += 1) await Promise.resolve();
      await sender.pump();
    };
    const query: Db["query"] = async (statement) => {
      const found = await db.query<never>(statement);
      if (woken === undefined && statement.text.includes("update webhook_turn")) {
        await webhooks.enqueue(webhooks.event({ url: receiver.url }));
        woken = wake();
      }
      return found;
    };
    const sender = webhooks.openSender({ db: { ...db, query } });
    await sender.pump();
    await woken;
    await sender.idle();
    assert.equal(receiver.received.length, moment + 1, `woken at ${moment}`);
  }
});
