// A process that stands still, as on a machine that swaps, is moved or was lost, keeps nobody waiting for long.
import assert from "node:assert/strict";
import { test } from "node:test";
import { sql } from "../../service/src/platform/database/db.ts";
import { openKycWorld } from "../kyc-world.ts";
import { untilBlockedAt } from "../lock-waits.ts";
import { openOwnPostgres } from "../own-postgres.ts";

test("a process that stops inside a transaction keeps others from what it holds for 15 s, and they are told to come again", async () => {
  // A server of its own: on a shared one the stopped process would hold up every other test.
  await using server = await openOwnPostgres();
  await using world = await openKycWorld({ DATABASE_URL: server.url });
  await using other = await world.startProcess();
  const { db } = world.ctx;
  const { asked } = await db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_package where id = ${world.dynamic.id} for no key update`);
    const answer = world.ask({}, { baseUrl: other.url });
    await untilBlockedAt(db, "update kyc_package");
    // Stopped, it gets the lock on the package and does nothing with it.
    process.kill(other.pid, "SIGSTOP");
    return { asked: answer };
  });
  const answers = [await world.ask({ fields: ["EMAIL"] })];
  while (answers.at(-1)?.status === 503) answers.push(await world.ask({ fields: ["EMAIL"] }));
  assert.deepEqual([...new Set(answers.map(({ status }) => status))], [503, 200]);
  assert.equal(answers[0]?.body.error?.reason, "unavailable");
  process.kill(other.pid, "SIGCONT");
  const { status, body } = await asked;
  assert.deepEqual([status, body.error?.reason], [503, "unavailable"]);
  assert.equal((await world.ask({}, { baseUrl: other.url })).status, 200, "and goes on as before");
});
