import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { afterEach, test } from "node:test";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { SealBroken } from "../platform/cryptography/seal.ts";
import { sql } from "../platform/database/db.ts";
import { findKybEvent, listKybEvents, listResendable } from "./event-store.ts";
import { openBody, sealBody } from "./events.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx, clientDomainId } = webhooks;

await test("an event of an endpoint is found by its own client domain, and one of an order is none", async () => {
  const kinds = ["status.updated"];
  const own = webhooks.kybEvent({ kind: "status.updated" });
  const ofOrder = webhooks.event({ url: "https://hooks.example.com/in" });
  await webhooks.enqueue(own, ofOrder);
  const find = async (id: string, of = clientDomainId): Promise<string | undefined> =>
    (await findKybEvent(ctx.db, { id, clientDomainId: of }))?.streamId;
  assert.equal(await find(own.id), own.streamId);
  assert.equal(await find(own.id, randomUUID()), undefined);
  assert.equal(await find(ofOrder.id), undefined);
  const list = async (of: string): Promise<string[]> => {
    const filter = { clientDomainId: of, kinds, isDelivered: null };
    const page = { before: null, limit: 9, bytesMax: 1_000_000 };
    return (await listKybEvents(ctx.db, filter, page)).map(({ id }) => id);
  };
  assert.deepEqual(await list(clientDomainId), [own.id]);
  assert.deepEqual(await list(randomUUID()), []);
});

await test("a resend waits for a purge that is under way, and sends nothing of what that took", async () => {
  const { db, clock } = ctx;
  const event = webhooks.kybEvent();
  await webhooks.enqueue(event);
  const of = { streamId: event.streamId, eventId: null, now: clock.now() };
  const list = async (): Promise<boolean[]> =>
    (await listResendable(db, of)).map(({ isSendable }) => isSendable);
  assert.deepEqual(await list(), [true]);
  let resent: Promise<boolean[]> = Promise.resolve([]);
  await db.transaction(async (tx) => {
    await tx.query(sql`update webhook_event set body = null, purge_at = null`);
    resent = list();
    await untilBlocked(db, tx, [resent]);
  });
  assert.deepEqual(await resent, [false]);
});

await test("a sealed body opens as that of its own event, and of no other", async () => {
  const [{ id }, { id: other }] = [webhooks.kybEvent(), webhooks.kybEvent()];
  const row = { body: null, bodySealed: sealBody(ctx, { id, body: "{}" }) };
  assert.equal(openBody(ctx, { ...row, id }), "{}");
  assert.throws(() => openBody(ctx, { ...row, id: other }), SealBroken);
});
