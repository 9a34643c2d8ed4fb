import assert from "node:assert/strict";
import { test } from "node:test";
import { addClient, addCode, openTestLogin, post, redeem, refresh } from "../test-login.ts";
import { listTestFamilies } from "../test-login-store.ts";
import { createRefreshSuccessors } from "./refresh-successors.ts";
import { tokenJobs } from "./token-jobs.ts";

test("the jobs remove sealed successors after the grace and families that are over", async () => {
  await using own = await openTestLogin();
  const shop = await addClient(own);
  const run = async (name: string): Promise<void> => {
    for (const job of tokenJobs(own.ctx)) if (job.name === name) await job.run(AbortSignal.any([]));
  };
  const hasSuccessor = async (): Promise<boolean> =>
    (await listTestFamilies(own.ctx.db)).some((row) => row.hasSuccessor);
  const tokens = (await redeem(own, shop, await addCode(own, shop))).body;
  const next = await refresh(own, shop, tokens["refresh_token"]);
  await run("refresh-successors");
  assert.equal(await hasSuccessor(), true);
  own.clock.advance(10);
  await run("refresh-successors");
  assert.equal(await hasSuccessor(), false);

  // A successor that a killed process sealed is found by the sweep over all.
  const killed = createRefreshSuccessors(own.ctx);
  await refresh(own, shop, next.body["refresh_token"]);
  own.clock.advance(10);
  assert.equal(await hasSuccessor(), true);
  await killed.sweep();
  own.clock.advance(3);
  await killed.sweepAll();
  assert.equal(await hasSuccessor(), true, "for a process whose clock is late the grace goes on");
  own.clock.advance(1);
  await killed.sweepAll();
  assert.equal(await hasSuccessor(), false);

  const countAfter = async (seconds: number): Promise<number> => {
    own.clock.advance(seconds);
    await run("token-families");
    return (await listTestFamilies(own.ctx.db)).length;
  };
  const revoked = (await redeem(own, shop, await addCode(own, shop))).body;
  const form = { token: String(revoked["refresh_token"]) };
  await post(own, "/oauth2/revoke", { form, headers: { authorization: shop.basic } });
  assert.equal(await countAfter(86_400), 2, "whoever looks into a reuse has a day for it");
  assert.equal(await countAfter(1), 1);
  own.clock.advance(31 * 86_400);
  for (const { name } of tokenJobs(own.ctx)) await run(name);
  assert.equal((await listTestFamilies(own.ctx.db)).length, 0);
});
