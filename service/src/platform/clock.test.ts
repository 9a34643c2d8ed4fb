import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { after, test } from "node:test";
import { advanceClock, clockSkewMs, openClock, skewLimitMs } from "./clock.ts";
import { openDb } from "./db.ts";
import { openNotifications, type Notifications } from "./notifications.ts";
import { openTestDatabase } from "./test-database.ts";

const database = await openTestDatabase();
const [one, two] = [1, 2].map(() => openDb({ ...database.connection, connections: 2 }));
assert.ok(one && two);
after(async () => {
  await one.close();
  await two.close();
  await database[Symbol.asyncDispose]();
});

const onFault = (error: unknown): never => {
  throw error;
};

/** Tells when the handler of a notification has done its work. */
function observed(notifications: Notifications, events: EventEmitter): Notifications {
  return {
    ...notifications,
    subscribe: async (channel, handler) =>
      notifications.subscribe(channel, async (payload) => {
        await handler(payload);
        events.emit("handled");
      }),
  };
}

test("an advance reaches every process with one notification", async () => {
  let machineMs = 1_700_000_000_900;
  const machineNowMs = (): number => machineMs;
  await using stack = new AsyncDisposableStack();
  const events = new EventEmitter();
  const here = stack.use(await openNotifications(one, { onFault }));
  const there = stack.use(await openNotifications(two, { onFault }));
  const first = stack.use(await openClock(one, here, machineNowMs));
  const second = stack.use(await openClock(two, observed(there, events), machineNowMs));
  assert.deepEqual([first.now(), second.now()], [1_700_000_000, 1_700_000_000]);

  const handled = once(events, "handled");
  assert.equal(await advanceClock(one, 86_400), 86_400);
  await handled;
  assert.equal(second.now(), 1_700_086_400);
  assert.equal(second.nowMs(), 1_700_086_400_900);

  await first.refresh();
  assert.equal(first.now(), second.now());
  machineMs += 100;
  assert.equal(second.now(), 1_700_086_401);

  const again = once(events, "handled");
  assert.equal(await advanceClock(two, 1), 86_401);
  await again;
  assert.equal(second.now(), 1_700_086_402);

  const late = stack.use(await openClock(one, here, machineNowMs));
  assert.equal(late.now(), 1_700_086_402);
});

test("time cannot be turned back before the beginning", async () => {
  await assert.rejects(advanceClock(one, -1_000_000));
});

test("the distance of the machine's clock from the database's is reported", async () => {
  assert.ok(Math.abs(await clockSkewMs(one)) < skewLimitMs);
  const fast = await clockSkewMs(one, () => Date.now() + 60_000);
  assert.ok(fast > 58_000 && fast < 62_000);
  assert.ok((await clockSkewMs(one, () => Date.now() - 60_000)) < -skewLimitMs);
});
