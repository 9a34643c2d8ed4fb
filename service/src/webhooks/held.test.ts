import assert from "node:assert/strict";
import { afterEach, test } from "node:test";
import { sql } from "../platform/database/db.ts";
import { openNotifications } from "../platform/database/notifications.ts";
import { heldChannel } from "./endpoint-store.ts";
import { ok, openTestWebhooks, status } from "./test-webhooks.ts";

await using webhooks = await openTestWebhooks();
afterEach(async () => webhooks.empty());
const { ctx } = webhooks;

await test("the start and every kind of end of a quarantine wake the job that holds and releases deliveries", async () => {
  const receiver = await webhooks.openReceiver(status(410));
  await webhooks.register(receiver.url);
  await using notifications = await openNotifications(ctx.db, { onFault: () => undefined });
  let [wakes, onMark] = [0, (): void => undefined];
  await notifications.subscribe(heldChannel, (payload) => {
    if (payload === "mark") onMark();
    else wakes += 1;
  });
  /** Notifications arrive in order, so all earlier ones have arrived once the mark has. */
  const wakesSoFar = async (): Promise<number> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    onMark = resolve;
    await ctx.db.query(sql`select pg_notify(${heldChannel}, 'mark')`);
    await promise;
    return wakes;
  };
  const quarantine = async (): Promise<void> => {
    await webhooks.enqueue(webhooks.kybEvent());
    await webhooks.deliver();
  };
  const before = await wakesSoFar();
  await quarantine();
  assert.equal(await wakesSoFar(), before + 1);
  await webhooks.reactivate();
  assert.equal(await wakesSoFar(), before + 2);
  await webhooks.deliver();
  assert.equal(await wakesSoFar(), before + 3, "in quarantine again");
  await webhooks.register(receiver.url);
  assert.equal(await wakesSoFar(), before + 4);
});

await test("a delivery that does not change its endpoint's health does not write the endpoint's row", async () => {
  const receiver = await webhooks.openReceiver(status(500));
  await webhooks.register(receiver.url);
  /** The physical place of the row, which every write changes. */
  const placeAfterDelivery = async (): Promise<string | undefined> => {
    await webhooks.enqueue(webhooks.kybEvent());
    await webhooks.deliver();
    const [row] = await ctx.db.query<{ place: string }>(
      sql`select ctid::text as place from kyb_endpoint`,
    );
    return row?.place;
  };
  const failed = await placeAfterDelivery();
  receiver.setAnswer(ok);
  const recovered = await placeAfterDelivery();
  assert.notEqual(recovered, failed);
  assert.equal(await placeAfterDelivery(), recovered);
});
