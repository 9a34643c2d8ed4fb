import assert from "node:assert/strict";
import { test } from "node:test";
import { addClient, openTestLogin, user } from "../test-login.ts";
import { insertTestLogouts, listTestLogouts } from "../test-login-store.ts";
import { endDelivery, leaseDeliveries, postponeDelivery } from "./back-channel-store.ts";

test("two processes that look for logouts at once take each of them once, and neither waits for the other", async () => {
  await using login = await openTestLogin();
  const { db } = login.ctx;
  const { id: clientId } = await addClient(login);
  const now = login.clock.now();
  await insertTestLogouts(db, { clientId, user, dueAt: now - 1, count: 4 });
  const lease = { now, seconds: 60, perClient: 9, underWay: {}, fullOrganizations: [] };
  const taken = await db.transaction(async (tx) => [
    await leaseDeliveries(tx, { ...lease, limit: 3 }),
    await leaseDeliveries(db, { ...lease, limit: 9 }),
  ]);
  assert.deepEqual(
    taken.map(({ length }) => length),
    [3, 1],
  );
  assert.equal(new Set(taken.flat().map(({ id }) => id)).size, 4);
  // Deliveries that are under way take none of these places.
  await insertTestLogouts(db, { clientId, user, dueAt: now, count: 1 });
  assert.equal((await leaseDeliveries(db, { ...lease, limit: 1, perClient: 1 })).length, 1);
});

test("a process that lost its lease on a logout neither ends it nor puts it off", async () => {
  await using login = await openTestLogin();
  const { id: clientId } = await addClient(login);
  const now = login.clock.now();
  await insertTestLogouts(login.ctx.db, { clientId, user, dueAt: now, count: 1 });
  const lease = { seconds: 60, limit: 9, perClient: 9, underWay: {}, fullOrganizations: [] };
  const [first] = await leaseDeliveries(login.ctx.db, { ...lease, now });
  assert.deepEqual(await leaseDeliveries(login.ctx.db, { ...lease, now: now + 59 }), []);
  const [second] = await leaseDeliveries(login.ctx.db, { ...lease, now: now + 60 });
  assert.ok(first && second);
  await endDelivery(login.ctx.db, first, { outcome: "delivered", now: now + 61 });
  await postponeDelivery(login.ctx.db, first, now + 3600);
  const [row] = await listTestLogouts(login.ctx.db);
  assert.equal(row?.outcome, null);
  assert.deepEqual(
    await leaseDeliveries(login.ctx.db, { ...lease, now: now + 61 }),
    [],
    "still leased",
  );
  assert.equal((await leaseDeliveries(login.ctx.db, { ...lease, now: now + 120 })).length, 1);
});
