// Lookups are recorded even if no order is made (decisions section 8, Audit).
import assert from "node:assert/strict";
import { test } from "node:test";
import { attributeOfField, parseLink } from "@svc/protocol";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import { getPackage } from "../accounts/index.ts";
import { sql } from "../platform/database/db.ts";
import { checkBody, checkNames } from "./order-request.ts";
import { findNewestLink, listHistory } from "./order-store.ts";
import {
  cancelOrder,
  expireOrders,
  getCurrentOrder,
  getOrder,
  listCurrentOrders,
  purgeTokens,
  requestOrder,
} from "./orders.ts";

await using settlement = await openTestSettlement();
const { ctx, packageId, user, world } = settlement;

await test("a request is recorded as a lookup of its user, even if it is refused", async () => {
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

await test("an order is pending through its last second; then the same request begins another attempt, with its own texts and salt", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const ask = async (more: object) =>
    requestOrder(ctx, key, {
      user,
      sourceKey,
      fields: ["EMAIL"],
      optionalFields: ["PHONE"],
      callback: "https://shop.example.com/hook",
      expiration: ctx.clock.now() + 300,
      ...more,
    });
  const { order: first, link } = await ask({});
  const parsed = parseLink(link);
  assert.deepEqual("attributes" in parsed && parsed.attributes, [attributeOfField("EMAIL")]);
  world.advance(300);
  await expireOrders(ctx);
  const { order: same, isRepeat } = await ask({ expiration: first.expiration + 600 });
  assert.deepEqual([same.id, same.attempt, isRepeat], [first.id, 1, true]);
  world.advance(601);
  const words = { purpose: "p", reference: "r", returnUrl: "https://shop.example.com/back" };
  const { order: next } = await ask(words);
  assert.deepEqual({ ...next, ...words }, next);
  assert.deepEqual([next.id, next.attempt], [first.id, 2]);
  assert.notEqual(next.salt, first.salt);
  const [, failed] = await listHistory(ctx.db, first.id, 20);
  assert.equal(failed?.failureReason, "EXPIRED");
  await assert.rejects(getOrder(ctx, key, `${first.referenceKey}x`), { reason: "order_not_found" });
  world.advance(300 + 86_400);
  await purgeTokens(ctx);
  assert.notEqual(await findNewestLink(ctx.db, first.id), null);
  world.advance(1);
  await purgeTokens(ctx);
  assert.equal(await findNewestLink(ctx.db, first.id), null);
});

await test("a list shows no expired order as pending, whether or not a job has ended it", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const listed = async (status: "PENDING" | "FAILED") => {
    const filter = { clientDomainId: key.clientDomainId, status, user: null };
    const orders = await listCurrentOrders(ctx, filter, { before: null, limit: 100 });
    return orders.map(({ id }) => id);
  };
  const expiration = ctx.clock.now() + 300;
  const callback = "https://shop.example.com/listed";
  const asked = { user, sourceKey, fields: ["EMAIL"], callback, expiration };
  const {
    order: { id },
  } = await requestOrder(ctx, key, asked);
  world.advance(300);
  assert.ok((await listed("PENDING")).includes(id));
  world.advance(1);
  const [waiting, failed] = await Promise.all([listed("PENDING"), listed("FAILED")]);
  assert.deepEqual([waiting.includes(id), failed.includes(id)], [false, true]);
});

await test("an expired order is EXPIRED when it is read or cancelled, whether or not a job has ended it", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const expiration = ctx.clock.now() + 300;
  const callback = "https://shop.example.com/overdue";
  const asked = { user, sourceKey, fields: ["EMAIL"], callback, expiration };
  const {
    order: { id, referenceKey },
  } = await requestOrder(ctx, key, asked);
  world.advance(300);
  assert.equal((await getCurrentOrder(ctx, key, referenceKey)).status, "PENDING");
  world.advance(1);
  const reads = [1, 2, 3].map(async () => getCurrentOrder(ctx, key, referenceKey));
  for (const { status, failureReason } of await Promise.all(reads))
    assert.deepEqual([status, failureReason], ["FAILED", "EXPIRED"]);
  const latest = (await listHistory(ctx.db, id, 20)).slice(-2).map(({ status }) => status);
  assert.deepEqual(latest, ["PENDING", "FAILED"]);
  const again = await requestOrder(ctx, key, { ...asked, expiration: ctx.clock.now() + 300 });
  world.advance(301);
  await assert.rejects(cancelOrder(ctx, key, again.order.referenceKey), {
    reason: "order_not_cancellable",
  });
});

await test("a return URL has at most 2000 characters, no user name, the domain's host, and http only in dev", () => {
  const domain = "shop.example.com";
  const saysAll =
    /returnUrl must (be an https URL of at most 2000 characters, without user name or password|lie under the client domain shop\.example\.com)$/;
  const accepts = (returnUrl: string, profile: "dev" | "production" = "production"): boolean => {
    const callback = `https://${domain}/hook`;
    const body = { user, sourceKey: "sk", callback, expiration: 1, returnUrl };
    try {
      return checkBody(body, { profile, ownHosts: [], domain }).returnUrl === returnUrl;
    } catch (error) {
      assert.match(String(error), saysAll);
      return false;
    }
  };
  const longest = `https://${domain}/`.padEnd(2000, "x");
  for (const url of [`https://${domain}/back`, `https://app.${domain}/`, longest])
    assert.ok(accepts(url), url);
  for (const url of [
    `https://somebody@${domain}/`,
    `https://:word@${domain}/`,
    `https://other.example/`,
    `https://not${domain}/`,
    `${longest}x`,
    `http://${domain}/`,
  ])
    assert.ok(!accepts(url), url);
  assert.ok(accepts(`http://${domain}/`, "dev"));
});

await test("of an order with very many statuses the newest are listed", async () => {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const { order } = await requestOrder(ctx, key, {
    user,
    sourceKey,
    fields: ["EMAIL"],
    callback: "https://shop.example.com/hook",
    expiration: ctx.clock.now() + 600,
  });
  await ctx.db.query(sql`
    insert into kyc_order_status (order_id, sequence, attempt, status, created_at)
    select ${order.id}, n, 1, 'FAILED', n from generate_series(100, 120) as n`);
  const history = await listHistory(ctx.db, order.id, 20);
  assert.deepEqual(
    history.map(({ statusAt }) => statusAt),
    Array.from({ length: 20 }, (_, at) => 101 + at),
  );
});

await test("a package with fixed fields accepts no other fields, not even optional ones", () => {
  for (const named of [
    { fields: ["EMAIL"], optionalFields: [] },
    { fields: [], optionalFields: ["EMAIL"] },
  ])
    assert.throws(() => checkNames(named, ["PHONE"]), { reason: "dynamic_fields_unsupported" });
});
