import assert from "node:assert/strict";
import { once, EventEmitter } from "node:events";
import { after, test } from "node:test";
import {
  advanceClock,
  type Clock,
  clockSkewMs,
  databaseNowMs,
  isClockRight,
  openClock,
  skewLimitMs,
  watchClock,
} from "./clock.ts";
import { openDb, type Queryable } from "./database/db.ts";
import { openNotifications, type Notifications } from "./database/notifications.ts";
import { openTestDatabase } from "./database/test-database.ts";

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

/** Resolves when the handler of a notification is done. */
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
  const machine = { nowMs: () => machineMs, elapsedMs: () => 0 };
  await using stack = new AsyncDisposableStack();
  const events = new EventEmitter();
  const here = stack.use(await openNotifications(one, { onFault }));
  const there = stack.use(await openNotifications(two, { onFault }));
  const first = stack.use(await openClock(one, here, { machine }));
  const second = stack.use(await openClock(two, observed(there, events), { machine }));
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

  const late = stack.use(await openClock(one, here, { machine }));
  assert.equal(late.now(), 1_700_086_402);
});

test("a move of the time that asks for every job is heard even by a process that has read the move already", async () => {
  await using stack = new AsyncDisposableStack();
  const [events, came] = [new EventEmitter(), new EventEmitter()];
  let gate = Promise.resolve();
  const there = stack.use(await openNotifications(two, { onFault }));
  const slow: Notifications = {
    ...there,
    subscribe: async (channel, handler) =>
      there.subscribe(channel, async (payload) => {
        came.emit("came");
        await gate;
        await handler(payload);
      }),
  };
  const clock = stack.use(await openClock(two, observed(slow, events)));
  const heard: boolean[] = [];
  clock.onMoved((everyJob) => heard.push(everyJob));
  const handled = once(events, "handled");
  await advanceClock(one, 1);
  await handled;
  assert.deepEqual(heard, [false]);

  const [held, late] = [Promise.withResolvers<void>(), once(events, "handled")];
  gate = held.promise;
  const notified = once(came, "came");
  await advanceClock(one, 1, { everyJob: true });
  await notified;
  await clock.refresh();
  assert.deepEqual(heard, [false, false]);
  held.resolve();
  await late;
  assert.deepEqual(heard, [false, false, true]);
});

test("of two concurrent reads of the offset the newer one counts, and a failed one spoils none after it", async () => {
  await using notifications = await openNotifications(one, { onFault });
  const gates: PromiseWithResolvers<void>[] = [];
  const answers: (number | Error)[] = [0];
  const query = async (): Promise<never[]> => {
    const answer = answers.shift() ?? 0;
    await gates.shift()?.promise;
    if (answer instanceof Error) throw answer;
    return [{ offset_seconds: answer }] as never[];
  };
  const machine = { nowMs: () => 0, elapsedMs: () => 0 };
  await using clock = await openClock({ ...one, query }, notifications, { machine });
  const older = Promise.withResolvers<void>();
  gates.push(older, Promise.withResolvers());
  gates[1]?.resolve();
  answers.push(1, 2);
  const both = [clock.refresh(), clock.refresh()];
  await new Promise(setImmediate);
  older.resolve();
  await Promise.all(both);
  assert.equal(clock.now(), 2);
  answers.push(new Error("the database is away"), 3);
  const failing = clock.refresh();
  const next = clock.refresh();
  await assert.rejects(failing, /away/);
  await next;
  assert.equal(clock.now(), 3);
});

/** A machine whose wall clock can be set, beside a clock that nobody can set. */
function openMachine() {
  let nowMs = 1_700_000_000_000;
  let elapsedMs = 5_000;
  return {
    nowMs: () => nowMs,
    elapsedMs: () => elapsedMs,
    pass(ms: number): void {
      nowMs += ms;
      elapsedMs += ms;
    },
    set(byMs: number): void {
      nowMs += byMs;
    },
  };
}

test("time never runs back, nor stands still, while the machine's clock is set back and forth", async () => {
  await using notifications = await openNotifications(one, { onFault });
  const machine = openMachine();
  await using clock = await openClock(one, notifications, { machine });
  let last = clock.nowMs();
  // Steps as by a bad time server, of up to an hour, with a look at the time every 100 ms.
  for (let round = 0; round < 2_000; round += 1) {
    if (round % 50 === 0) machine.set((round % 100 === 0 ? -1 : 1) * (1 + (round % 7) * 600_000));
    machine.pass(100);
    const now = clock.nowMs();
    assert.ok(now >= last + 50, `after ${round} steps: ${last} -> ${now}`);
    last = now;
  }
});

test("time runs at half speed until a clock that was set back has caught up, and follows one set forward at once", async () => {
  await using notifications = await openNotifications(one, { onFault });
  const machine = openMachine();
  await using clock = await openClock(one, notifications, { machine });
  const before = clock.nowMs();
  machine.set(-10_000);
  assert.deepEqual([clock.nowMs() - before, clock.leadMs()], [0, 10_000]);
  machine.pass(10_000);
  assert.deepEqual([clock.nowMs() - before, clock.leadMs()], [5_000, 5_000]);
  machine.pass(10_000);
  assert.deepEqual([clock.nowMs() - before, clock.leadMs()], [10_000, 0]);
  machine.pass(1_000);
  assert.deepEqual([clock.nowMs() - before, clock.leadMs()], [11_000, 0]);
  machine.set(3_600_000);
  assert.deepEqual([clock.nowMs() - before, clock.leadMs()], [3_611_000, 0]);
});

test("time cannot be turned back before the beginning", async () => {
  await assert.rejects(advanceClock(one, -1_000_000));
});

test("the distance of the machine's clock from the database's is reported", async () => {
  assert.ok(Math.abs(await clockSkewMs(one)) < skewLimitMs);
  const fast = await clockSkewMs(one, () => Date.now() + 60_000);
  assert.ok(fast > 58_000 && fast < 62_000);
  assert.ok((await clockSkewMs(one, () => Date.now() - 60_000)) < -skewLimitMs);
  // Half of the time that the answer took is attributed to its way back.
  const answering: Queryable = {
    query: async <Row extends object>() => [{ ms: 5000 }] as unknown as Row[],
  };
  const times = [4500, 5900];
  assert.equal(await clockSkewMs(answering, () => times.shift() ?? 0), 200);
});

test("a right clock is not taken for a wrong one because the database was slow to answer", async () => {
  const answering: Queryable = {
    query: async <Row extends object>() => [{ ms: 20_000 }] as unknown as Row[],
  };
  const between = async (asked: number, answered: number): Promise<number> => {
    const times = [asked, answered];
    return clockSkewMs(answering, () => times.shift() ?? 0);
  };
  assert.equal(await between(11_000, 20_001), 0);
  assert.equal(await between(20_000, 29_000), 0);
  // What the delay cannot explain is wrong all the same.
  assert.equal(await between(23_000, 29_000), 3000);
  assert.equal(await between(8000, 17_000), -3000);
});

/** A database whose clock is ahead by this much. */
const databaseAhead = (aheadMs: number): Queryable => ({
  query: async <Row extends object>() => [{ ms: Date.now() + aheadMs }] as unknown as Row[],
});

test("a process is right within 2 s of the database, ahead or behind, by its own time or by the machine's", async () => {
  const noted: number[] = [];
  const leading = (leadMs: number): Clock => ({
    now: () => 0,
    nowMs: () => 0,
    leadMs: () => leadMs,
    noteAhead: (ms) => noted.push(ms),
  });
  assert.equal(await isClockRight(databaseAhead(0), leading(1000)), true);
  assert.equal(await isClockRight(databaseAhead(0), leading(3000)), false);
  assert.equal(await isClockRight(databaseAhead(-3000), leading(0)), false);
  assert.equal(await isClockRight(databaseAhead(3000), leading(0)), false);
  assert.deepEqual(
    noted.map((ms) => Math.round(ms / 1000)),
    [1, 3, 3, -3],
  );
});

test("less than a second of distance is none, and the database's time follows the rest", async () => {
  await using notifications = await openNotifications(one, { onFault });
  const machine = { nowMs: () => 1_700_000_000_000, elapsedMs: () => 0 };
  await using clock = await openClock(one, notifications, { machine });
  const distances = [999, 1000, -999, -1500].map((ms) => {
    clock.noteAhead?.(ms);
    return clock.nowMs() - databaseNowMs(clock);
  });
  assert.deepEqual(distances, [0, 1000, 0, -1500]);
});

test("whether the clock is right is measured every 5 s, and at once when it was set", async () => {
  const machine = openMachine();
  const told: boolean[] = [];
  let [measured, answer] = [0, true];
  const measure = async (): Promise<boolean> => {
    measured += 1;
    return answer;
  };
  const isRight = watchClock(measure, (each) => told.push(each), machine);
  assert.equal(await isRight(), true);
  machine.pass(4_900);
  assert.equal(await isRight(), true);
  assert.equal(measured, 1);
  answer = false;
  machine.set(3_600_000);
  assert.equal(await isRight(), false);
  answer = true;
  assert.equal(await isRight(), false, "until it is measured again");
  machine.pass(5_000);
  assert.equal(await isRight(), true);
  assert.deepEqual([measured, told], [3, [false, true]]);
  machine.set(-3_600_000);
  assert.equal(await isRight(), true);
  assert.equal(measured, 4);
});

test("a measurement that fails is made again by whoever asks next", async () => {
  let measured = 0;
  const isRight = watchClock(
    async () => {
      measured += 1;
      if (measured === 1) throw new Error("the database is away");
      return true;
    },
    () => undefined,
    openMachine(),
  );
  await assert.rejects(isRight(), /away/);
  assert.equal(await isRight(), true);
});
