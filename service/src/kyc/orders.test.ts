// Who asked about whom is known also where no order came of it (decisions section 8, Audit).
import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { getPackage } from "../accounts/index.ts";
import { requestOrder } from "./orders.ts";

await using settlement = await openTestSettlement();
const { ctx, packageId, user, world } = settlement;

await test("a request is written down as a question about its user, also one that is refused", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const noted: string[] = [];
  const lookups = { ...ctx.lookups, note: (...about: string[]) => void noted.push(...about) };
  const body = {
    user,
    sourceKey,
    callback: "https://shop.example.com/hook",
    expiration: ctx.clock.now() + 600,
  };
  const ask = async (field: string) =>
    requestOrder({ ...ctx, lookups }, key, { ...body, fields: [field] });
  assert.equal((await ask("EMAIL")).order.user, user);
  assert.deepEqual(noted, [key.id, user]);
  await assert.rejects(ask("PHONE"), { reason: "unverified_fields" });
  assert.deepEqual(noted, [key.id, user, key.id, user]);
  await assert.rejects(ask("SHOE_SIZE"), { reason: "invalid_fields" });
  assert.equal(noted.length, 4, "nothing was learned");
});
