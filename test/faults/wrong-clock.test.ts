// A process on a machine whose clock is wrong leaves alone what others decide by the right one.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { openKycWorld } from "../kyc-world.ts";

const dayMs = 86_400_000;

/** `NODE_OPTIONS` of a process whose machine is ahead. */
const aheadBy = (ms: number): string =>
  `--import=data:text/javascript,const%20now=Date.now;Date.now=()=>now()+${ms}`;

test("a process whose clock is 90 days ahead is not ready, runs no job and ends no key", async () => {
  await using world = await openKycWorld();
  const { db } = world.ctx;
  const asked = await world.ask();
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  const keys = sql`select kid, starts_at from signing_key order by kid`;
  const before = await db.query(keys);
  const waiting = Promise.withResolvers<void>();
  const environment = { NODE_OPTIONS: aheadBy(90 * dayMs), LOG_LEVEL: "error" };
  await using ahead = await world.startProcess(environment, {
    onLine: (line) => {
      if (line.includes("jobs wait")) waiting.resolve();
    },
  });
  assert.equal((await fetch(`${ahead.url}/health/ready`)).status, 503);
  await waiting.promise;
  assert.equal((await world.statusOf(referenceKey))["status"], "PENDING");
  assert.deepEqual(await db.query(keys), before);
});
