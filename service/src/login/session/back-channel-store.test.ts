import assert from "node:assert/strict";
import { test } from "node:test";
import { addClient, openTestLogin, user } from "../test-login.ts";
import { insertTestLogouts } from "../test-login-store.ts";
import { leaseDeliveries } from "./back-channel-store.ts";

test("two processes that look for logouts at once take each of them once, and neither waits for the other", async () => {
  await using login = await openTestLogin();
  const { db } = login.ctx;
  const { id: clientId } = await addClient(login);
  const now = login.clock.now();
  await insertTestLogouts(db, { clientId, user, dueAt: now, count: 4 });
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
});
