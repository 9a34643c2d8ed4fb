// Who asked about whom is known also where no order came of it (decisions section 8, Audit).
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { getPackage } from "../accounts/index.ts";
import { sql } from "../platform/database/db.ts";
import { requestOrder } from "./orders.ts";

await using settlement = await openTestSettlement();
const { ctx, packageId, user, world } = settlement;

await test("a request is written down as a question about its user, also one that is refused", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const listNoted = async () =>
    ctx.db.query<{ at: number }>(sql`
      select at from lookup where key_id = ${key.id} and user_address = ${user} order by at`);
  const body = {
    user,
    sourceKey,
    callback: "https://shop.example.com/hook",
    expiration: ctx.clock.now() + 600,
  };
  const ask = async (field: string) => requestOrder(ctx, key, { ...body, fields: [field] });
  await assert.rejects(ask("SHOE_SIZE"), { reason: "invalid_fields" });
  assert.equal((await listNoted()).length, 0, "nothing was learned");
  assert.equal((await ask("EMAIL")).order.user, user);
  assert.equal((await listNoted()).length, 1);
  world.advance(60);
  await assert.rejects(ask("PHONE"), { reason: "unverified_fields" });
  assert.equal((await listNoted()).length, 2);
});
