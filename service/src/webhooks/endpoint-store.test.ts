import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { type Db, type Queryable, sql } from "../platform/database/db.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { SealBroken } from "../platform/cryptography/seal.ts";
import { endLeases, release } from "./delivery-store.ts";
import { endpointIdOf } from "./endpoint.ts";
import { makeSecret, openSecrets } from "./endpoint-secret.ts";
import {
  holdDeliveries,
  holdWaiting,
  listTargets,
  lockHealth,
  reactivate,
  releaseHeld,
  saveEndpoint,
  saveHealth,
  type TargetRow,
} from "./endpoint-store.ts";
import { registerEndpoint, rotateSecret } from "./endpoints.ts";
import { insertClientDomain } from "./test-endpoint-store.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx, clientDomainId } = webhooks;

await test("a new secret of one endpoint ends none of another one's", async () => {
  const other = randomUUID();
  await insertClientDomain(ctx.db, other);
  const rotate = async (of: string, immediate: boolean): Promise<unknown> =>
    ctx.db.transaction(async (tx) => rotateSecret(ctx, tx, { clientDomainId: of, immediate }));
  const read = async (of: string): Promise<TargetRow[]> =>
    listTargets(ctx.db, [endpointIdOf({ channel: "kyb", clientDomainId: of, url: null })]);
  const url = "https://hooks.example.com/in";
  await webhooks.register(url);
  await ctx.db.transaction(async (tx) => registerEndpoint(ctx, tx, { clientDomainId: other, url }));
  await rotate(other, false);
  const before = await read(other);
  assert.equal(before[0]?.secrets.length, 2);
  for (const immediate of [false, false, true]) await rotate(clientDomainId, immediate);
  await webhooks.register(url);
  assert.deepEqual(await read(other), before);
  assert.equal((await read(clientDomainId))[0]?.secrets.length, 1);
});

await test("the end of a quarantine resets the counts of failures and refusals", async () => {
  const url = "https://hooks.example.com/in";
  await webhooks.register(url);
  const id = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const now = ctx.clock.now();
  const begun = { failures: 0, failingSinceMs: null, refusals: 0, refusedSinceMs: null };
  const ended = { failures: 9, failingSinceMs: 1, refusals: 3, refusedSinceMs: 1 };
  const ways = [
    async () => reactivate(ctx.db, id, now),
    async () => saveEndpoint(ctx.db, { id, clientDomainId, url, now }),
  ];
  for (const end of ways) {
    const health = { isActive: false, isResuming: false, ...ended };
    await saveHealth(ctx.db, [{ id, health }]);
    await end();
    const [known] = await lockHealth(ctx.db, [id]);
    assert.deepEqual(known?.health, { isActive: true, isResuming: true, ...begun });
  }
});

await test("an endpoint stays slow after a quarantine even at another URL, and one that was in none is not slow", async () => {
  const id = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const url = "https://hooks.example.com/in";
  const isSlowAfter = async (isResuming: boolean): Promise<boolean | undefined> => {
    await ctx.db.query(sql`update kyb_endpoint set is_resuming = ${isResuming} where id = ${id}`);
    await webhooks.register(url);
    return (await lockHealth(ctx.db, [id]))[0]?.health.isResuming;
  };
  await webhooks.register(url);
  assert.deepEqual([await isSlowAfter(true), await isSlowAfter(false)], [true, false]);
});

await test("holding and releasing deliveries wait for a change of their endpoint that is under way, and follow it", async () => {
  await webhooks.register("https://hooks.example.com/in");
  const endpointId = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const event = webhooks.kybEvent();
  const { id: eventId } = event;
  await webhooks.enqueue(event);
  const [lease, nowMs] = [randomUUID(), ctx.clock.nowMs()];
  const set = async (db: Queryable, isActive: boolean): Promise<unknown> =>
    db.query(sql`update kyb_endpoint set is_active = ${isActive} where id = ${endpointId}`);
  const ways: readonly (readonly [boolean, string | null, (db: Db) => Promise<unknown>])[] = [
    [true, null, async (db) => releaseHeld(db, endpointId, { nowMs, limit: 10 })],
    [false, null, async (db) => holdWaiting(db, endpointId, 10)],
    [
      false,
      lease,
      async (db) => holdDeliveries(db, [{ eventId, endpointId, lease }], { nowMs, most: 10 }),
    ],
  ];
  for (const [isActive, leased, act] of ways) {
    await set(ctx.db, isActive);
    // An active endpoint has a delivery to release, one in quarantine a delivery to hold.
    await ctx.db.query(sql`update webhook_delivery set is_held = ${isActive}, lease = ${leased}`);
    let acted: Promise<unknown> = Promise.resolve();
    await ctx.db.transaction(async (tx) => {
      await set(tx, !isActive);
      acted = act(ctx.db);
      await untilBlocked(ctx.db, tx, [acted]);
    });
    await acted;
    const rows = await ctx.db.query(sql`select is_held as "isHeld" from webhook_delivery`);
    assert.deepEqual(rows, [{ isHeld: isActive }], "the endpoint was changed before");
  }
});

await test("a claimed but untried delivery that had been held goes back to its old place, one that had been tried is due at once", async () => {
  await webhooks.register("https://hooks.example.com/in");
  const endpointId = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const [held, tried] = [webhooks.kybEvent(), webhooks.kybEvent()];
  await webhooks.enqueue(held, tried);
  const oldMs = ctx.clock.now() * 1000;
  webhooks.advance(60);
  const [lease, nowMs] = [randomUUID(), Math.floor(ctx.clock.nowMs())];
  await ctx.db.query(sql`update kyb_endpoint set resumed_at_ms = ${nowMs}`);
  const claimed = [held, tried].map(({ id: eventId }) => ({ eventId, endpointId, lease }));
  const ways: readonly (() => Promise<unknown>)[] = [
    async () => release(ctx.db, claimed, nowMs),
    async () => endLeases(ctx.db, nowMs),
    async () => holdDeliveries(ctx.db, claimed, { nowMs, most: 0 }),
  ];
  for (const giveBack of ways) {
    await ctx.db.query(sql`
      update webhook_delivery set lease = ${lease}, due_at_ms = ${nowMs},
        step = case when event_id = ${tried.id} then 1 else 0 end`);
    await giveBack();
    const due = await ctx.db.query(sql`
      select lease, due_at_ms as "dueAtMs" from webhook_delivery order by step`);
    assert.deepEqual(due, [
      { lease: null, dueAtMs: oldMs },
      { lease: null, dueAtMs: nowMs },
    ]);
  }
});

await test("processes take turns in updating the health of the endpoint", async () => {
  await webhooks.register("https://hooks.example.com/in");
  const id = endpointIdOf({ channel: "kyb", clientDomainId, url: null });
  const addFailure = async (tx: Queryable): Promise<void> => {
    const [known] = await lockHealth(tx, [id]);
    assert.ok(known);
    const health = { ...known.health, failures: known.health.failures + 1, failingSinceMs: 1 };
    await saveHealth(tx, [{ id, health }]);
  };
  let other: Promise<void> = Promise.resolve();
  await ctx.db.transaction(async (tx) => {
    await addFailure(tx);
    other = ctx.db.transaction(addFailure);
    await untilBlocked(ctx.db, tx, [other]);
  });
  await other;
  const [known] = await lockHealth(ctx.db, [id]);
  assert.equal(known?.health.failures, 2);
});

await test("a secret signs from its own row, and from no other that it was moved to", async () => {
  const [{ row, secret }, other] = [makeSecret(ctx, 1), makeSecret(ctx, 1)];
  const now = ctx.clock.now();
  assert.deepEqual(openSecrets(ctx, [row], now), [{ version: 1, secret }]);
  const moved = { ...other.row, secretSealed: row.secretSealed };
  assert.throws(() => openSecrets(ctx, [moved], now), SealBroken);
});
