// What the statements guarantee, whatever was read before them.
import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { test } from "node:test";
import { encodeInfos, hexOfBytes, parseLink } from "@svc/protocol";
import { openTestSettlement } from "../../../test/approved-orders.ts";
import type { TestOrder } from "../../../test/approved-orders-store.ts";
import { getPackage } from "../accounts/index.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import { answerOrder, openOrder } from "./consent.ts";
import { countMismatch, findLink, keepRequestObject } from "./consent-store.ts";
import { steps } from "./order.ts";
import type { Order } from "./order-row.ts";
import { beginAttempt, findOrder, holdTransfer, insertLink } from "./order-store.ts";
import { type RequestedOrder, requestOrder } from "./orders.ts";
import { moveOrders } from "./transitions.ts";

await using settlement = await openTestSettlement();
const { ctx, packageId, user, world } = settlement;
const now = ctx.clock.now();

async function request(): Promise<Order> {
  return (await requestLink()).order;
}

async function requestLink(lifetime = 600): Promise<RequestedOrder> {
  const key = await ctx.apiKeys.authenticate(world.live.apiKey);
  const { sourceKey } = await getPackage(ctx, packageId);
  const callback = `https://shop.example.com/${randomBytes(4).toString("hex")}`;
  const expiration = ctx.clock.now() + lifetime;
  const body = { user, sourceKey, callback, expiration, fields: ["EMAIL"] };
  return requestOrder(ctx, key, body);
}

function tokenOf(link: string): string {
  const parsed = parseLink(link);
  assert.ok("connection" in parsed && parsed.connection !== undefined);
  return parsed.connection.slice(parsed.connection.lastIndexOf("/") + 1);
}

async function giveLink(order: Order) {
  const token = randomBytes(16).toString("base64url");
  const tokenSha256 = sha256(token);
  const { attempt, expiration, callback } = order;
  const link = { tokenSha256, orderId: order.id, attempt, expiration, callback, requester: "" };
  await insertLink(ctx.db, { ...link, offered: [], createdAt: now });
  return { token, tokenSha256, order, attempt };
}

const countIn = async (order: Order): Promise<number | null> =>
  countMismatch(ctx.db, { order, attempt: order.attempt });

const cancel = async (order: Order): Promise<unknown> =>
  ctx.db.transaction(async (tx) =>
    moveOrders(ctx, tx, { orders: [order], step: steps.cancelled, at: now }),
  );

async function beginNext(order: Order): Promise<Order> {
  assert.ok(await holdTransfer(ctx.db, packageId));
  return beginAttempt(ctx.db, order, now);
}

await test("of two openings of a link the first request object is stored, and only in the link's own attempt", async () => {
  const order = await request();
  const [link, other] = [await giveLink(order), await giveLink(order)];
  const open = async (each: typeof link, object: string): Promise<string | null> =>
    keepRequestObject(ctx.db, each, { object, now });
  assert.equal(await open(link, "first"), "first");
  assert.equal(await open(link, "second"), "first");
  await cancel(order);
  assert.equal(await open(other, "third"), null, "nobody waits");
  await beginNext(order);
  assert.equal(await open(other, "third"), null, "another attempt waits");
});

await test("a mismatch is counted only in its own attempt, and only while that is pending", async () => {
  const first = await request();
  assert.equal(await countIn(first), 1);
  await cancel(first);
  assert.equal(await countIn(first), null, "nobody waits");
  const next = await beginNext(first);
  assert.equal(await countIn(first), null, "another attempt waits");
  assert.equal(await countIn(next), 1);
});

await test("an opened link no longer shows its request object once the order has ended", async () => {
  const { order, link } = await requestLink();
  const token = tokenOf(link);
  const object = await openOrder(ctx, token);
  assert.equal(await openOrder(ctx, token), object);
  await cancel(order);
  await assert.rejects(openOrder(ctx, token), { reason: "request_over" });
});

await test("a link is open through its own last second, or its order's if that is earlier", async () => {
  const [long, short] = [await requestLink(900), await requestLink(300)];
  assert.equal(long.order.id, short.order.id);
  for (const { link } of [long, short]) await openOrder(ctx, tokenOf(link)).catch(() => null);
  world.advance(300);
  await openOrder(ctx, tokenOf(short.link));
  world.advance(1);
  for (const { link } of [long, short])
    await assert.rejects(openOrder(ctx, tokenOf(link)), { reason: "request_over" });
});

await test("only the accepted approval is answered again, and no other one by the same link", async () => {
  const [approved] = (await settlement.approve(1)) as [TestOrder];
  const order = await findOrder(ctx.db, approved.referenceKey);
  assert.ok(order !== null);
  const { token, tokenSha256 } = await giveLink(order);
  const opened = await findLink(ctx.db, tokenSha256);
  assert.ok(opened !== null);
  const answer = async (signature: Buffer): Promise<unknown> => {
    const members = { svcID: user, id: order.referenceKey, infos: encodeInfos([]) };
    const body = { ...members, signature: hexOfBytes(signature) };
    return answerOrder(ctx, opened, { token, body, callerAddress: "192.0.2.1" });
  };
  const { signature } = approved.consent;
  const other = Buffer.from(signature);
  other[0] = (other[0] ?? 0) ^ 1;
  const { referenceKey } = order;
  assert.partialDeepStrictEqual(await answer(signature), { status: "INITIATING", referenceKey });
  await assert.rejects(answer(other), { reason: "request_over" });
});
