import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { findKybEvent, listKybEvents } from "./event-store.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

test("an event of an endpoint is found by its own client domain, and one of an order is none", async () => {
  await using webhooks = await openTestWebhooks();
  const { ctx, clientDomainId } = webhooks;
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
