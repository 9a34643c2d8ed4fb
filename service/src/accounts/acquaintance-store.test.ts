import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { openTestContext } from "../../../test/test-context.ts";
import { acquaint, createOrganization, forgetAcquaintances, isAcquainted } from "./index.ts";

await using ctx = await openTestContext();

await test("an organization knows whom it met, until that person is forgotten, and nobody that only others met", async () => {
  const [one, other] = [
    await createOrganization(ctx, { name: "Example AG" }, "cli"),
    await createOrganization(ctx, { name: "Other AG" }, "cli"),
  ];
  const user: Address = `0x${"11".repeat(20)}`;
  const stranger: Address = `0x${"22".repeat(20)}`;
  const now = ctx.clock.now();
  await ctx.db.query({
    name: "",
    text: "insert into svc_user (address, created_at) values ($1, $2)",
    values: [user, now],
  });
  const met = async (by: Address): Promise<boolean[]> =>
    Promise.all([one, other].map(async ({ id }) => isAcquainted(ctx.db, id, by)));
  assert.deepEqual(await met(user), [false, false]);
  await acquaint(ctx.db, { organizationId: one.id, user, now });
  assert.deepEqual(await met(user), [true, false]);
  assert.deepEqual(await met(stranger), [false, false]);
  await forgetAcquaintances(ctx.db, user);
  assert.deepEqual(await met(user), [false, false]);
});
