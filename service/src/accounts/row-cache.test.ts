import assert from "node:assert/strict";
import { test } from "node:test";
import type { NotificationHandler, Notifications } from "../platform/database/notifications.ts";
import { openRowCache, type RowCache } from "./row-cache.ts";

/** A cache over a table in memory, with time and notifications in the test's hand. */
async function openFixture() {
  const rows = new Map<string, string>();
  const handlers = new Set<NotificationHandler>();
  const fixture = { rows, nowMs: 1_000_000, loads: 0, gate: Promise.resolve() };
  const notifications: Notifications = {
    subscribe: async (_channel, handler) => {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    announce: () => assert.fail("a cache announces nothing"),
    close: async () => undefined,
    [Symbol.asyncDispose]: async () => undefined,
  };
  const clock = { now: () => Math.floor(fixture.nowMs / 1000), nowMs: () => fixture.nowMs };
  const cache: RowCache<string> = await openRowCache<string>(
    { clock, notifications },
    {
      channel: "row",
      load: async (id) => {
        fixture.loads += 1;
        const row = rows.get(id) ?? null;
        await fixture.gate;
        return row;
      },
    },
  );
  const announce = (id: string): void => handlers.forEach((handler) => void handler(id));
  return { ...fixture, fixture, cache, announce };
}

void test("a row is read once a minute, an absent one every five seconds", async () => {
  const { rows, fixture, cache } = await openFixture();
  rows.set("a", "1");
  for (const id of ["a", "b", "a", "b"]) await cache.find(id);
  assert.equal(fixture.loads, 2);
  fixture.nowMs += 5_000;
  for (const id of ["a", "b"]) await cache.find(id);
  assert.equal(fixture.loads, 3);
  fixture.nowMs += 55_000;
  await cache.find("a");
  assert.equal(fixture.loads, 4);
});

void test("a row that is announced as changed is read again, and so is everything after a gap", async () => {
  const { rows, fixture, cache, announce } = await openFixture();
  rows.set("a", "1").set("b", "1");
  await Promise.all([cache.find("a"), cache.find("b")]);
  rows.set("a", "2");
  announce("a");
  assert.equal(await cache.find("a"), "2");
  assert.equal(await cache.find("b"), "1");
  assert.equal(fixture.loads, 3);
  rows.set("b", "2");
  announce("");
  assert.equal(await cache.find("b"), "2");
});

void test("a row that changes while it is read is not kept", async () => {
  const { rows, fixture, cache, announce } = await openFixture();
  rows.set("a", "old");
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.gate = promise;
  const first = cache.find("a");
  rows.set("a", "new");
  announce("a");
  resolve();
  assert.equal(await first, "old");
  assert.equal(await cache.find("a"), "new");
});

void test("a row that is read anew comes from no earlier read, and replaces what that one found", async () => {
  const { rows, fixture, cache } = await openFixture();
  rows.set("a", "old");
  const { promise, resolve } = Promise.withResolvers<void>();
  fixture.gate = promise;
  const begun = cache.find("a");
  rows.set("a", "new");
  const anew = cache.findAnew("a");
  resolve();
  assert.deepEqual(await Promise.all([begun, anew]), ["old", "new"]);
  assert.equal(await cache.find("a"), "new");
  assert.equal(fixture.loads, 2);
});

void test("a failed read is not remembered", async () => {
  const { rows, fixture, cache } = await openFixture();
  fixture.gate = Promise.reject(new Error("the database is away"));
  await assert.rejects(cache.find("a"), /away/);
  fixture.gate = Promise.resolve();
  rows.set("a", "1");
  assert.equal(await cache.find("a"), "1");
});

void test("at most 10,000 rows are kept, the least recently used go first", async () => {
  const { rows, fixture, cache } = await openFixture();
  for (let at = 0; at <= 10_000; at += 1) rows.set(String(at), "x");
  for (let at = 0; at < 10_000; at += 1) await cache.find(String(at));
  await cache.find("0");
  await cache.find("10000");
  assert.equal(fixture.loads, 10_001);
  await cache.find("0");
  assert.equal(fixture.loads, 10_001);
  await cache.find("1");
  assert.equal(fixture.loads, 10_002);
});

void test("invented ids push out no real row", async () => {
  const { rows, fixture, cache } = await openFixture();
  rows.set("real", "1");
  await cache.find("real");
  for (let at = 0; at < 20_000; at += 1) await cache.find(`invented-${at}`);
  const before = fixture.loads;
  assert.equal(await cache.find("real"), "1");
  assert.equal(fixture.loads, before);
});

void test("a clock that is set back makes a row stale, not immortal", async () => {
  const { rows, fixture, cache } = await openFixture();
  rows.set("a", "1");
  await cache.find("a");
  fixture.nowMs -= 3_600_000;
  await cache.find("a");
  assert.equal(fixture.loads, 2);
});
