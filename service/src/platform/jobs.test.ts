import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { patienceMs } from "../../../test/patience.ts";
import { type Job, startJobs } from "./jobs.ts";
import { createLog } from "./telemetry/log.ts";
import type { NotificationHandler, Notifications } from "./database/notifications.ts";

/** Notifications of one process, told by the test. */
function openBell(): Notifications & { ring(): void; listeners(): number } {
  const handlers = new Set<NotificationHandler>();
  const close = async (): Promise<void> => handlers.clear();
  return {
    ring: () => handlers.forEach((handler) => void handler("")),
    listeners: () => handlers.size,
    async subscribe(_channel, handler) {
      handlers.add(handler);
      return () => handlers.delete(handler);
    },
    announce: () => assert.fail("no job announces anything"),
    close,
    [Symbol.asyncDispose]: close,
  };
}

const log = createLog({ level: "silent" });
const hour = 3600;

test("a job that is woken runs at once, and once more when it is woken while it runs", async () => {
  const notifications = openBell();
  const gates = [1, 2, 3].map(() => Promise.withResolvers<void>());
  const started = [1, 2, 3].map(() => Promise.withResolvers<void>());
  let runs = 0;
  const job: Job = {
    name: "test",
    everySeconds: hour,
    wakeOn: "bell",
    async run() {
      const run = runs;
      runs += 1;
      started[run]?.resolve();
      await gates[run]?.promise;
    },
  };
  const jobs = startJobs({ log, notifications }, [job]);
  notifications.ring();
  await started[0]?.promise;
  notifications.ring();
  notifications.ring();
  assert.equal(runs, 1, "one run at a time");
  gates[0]?.resolve();
  await started[1]?.promise;
  gates[1]?.resolve();
  await jobs[Symbol.asyncDispose]();
  assert.equal(runs, 2);
  notifications.ring();
  assert.equal(runs, 2, "a closed job is not woken");
  assert.equal(notifications.listeners(), 0);
});

test("a run that has ended waits for no wake any more, so that an idle process keeps nothing of its runs", async () => {
  const notifications = openBell();
  const gate = Promise.withResolvers<void>();
  const woken: number[] = [];
  let runs = 0;
  const job: Job = {
    name: "test",
    everySeconds: hour,
    wakeOn: "bell",
    async run(_closing, nextWake) {
      runs += 1;
      const run = runs;
      void nextWake?.().then(() => woken.push(run));
      if (run === 2) await gate.promise;
    },
  };
  await using _ = startJobs({ log, notifications }, [job]);
  notifications.ring();
  await new Promise(setImmediate);
  notifications.ring();
  notifications.ring();
  await new Promise(setImmediate);
  gate.resolve();
  assert.deepEqual(woken, [2]);
});

test("closing tells a run under way, waits for it, and begins no other", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const notifications = openBell();
  const gate = Promise.withResolvers<void>();
  const signals: AbortSignal[] = [];
  const run = async (closing: AbortSignal): Promise<void> => {
    signals.push(closing);
    await gate.promise;
  };
  const job: Job = { name: "test", everySeconds: 1, wakeOn: "bell", run };
  const jobs = startJobs({ log, notifications }, [job]);
  notifications.ring();
  await new Promise(setImmediate);
  notifications.ring();
  let isClosed = false;
  const closed = jobs[Symbol.asyncDispose]().then(() => (isClosed = true));
  await new Promise(setImmediate);
  assert.deepEqual([signals[0]?.aborted, isClosed], [true, false]);
  gate.resolve();
  await closed;
  t.mock.timers.tick(hour * 1000);
  await new Promise(setImmediate);
  assert.equal(signals.length, 1);
});

test("a job that fails takes its pause, and is woken again", async () => {
  const notifications = openBell();
  const again = Promise.withResolvers<void>();
  let runs = 0;
  const job: Job = {
    name: "test",
    everySeconds: hour,
    wakeOn: "bell",
    async run() {
      runs += 1;
      if (runs === 1) {
        notifications.ring();
        throw new Error("once");
      }
      again.resolve();
    },
  };
  await using jobs = startJobs({ log, notifications }, [job]);
  notifications.ring();
  await new Promise(setImmediate);
  assert.equal(runs, 1);
  notifications.ring();
  await again.promise;
  assert.ok(jobs);
});

test("what comes while a job fails is done a moment later, not after the pause", async () => {
  const notifications = openBell();
  const again = Promise.withResolvers<string>();
  let runs = 0;
  const job: Job = {
    name: "test",
    everySeconds: hour,
    wakeOn: "bell",
    async run() {
      runs += 1;
      if (runs > 1) return again.resolve("soon");
      notifications.ring();
      throw new Error("once");
    },
  };
  await using jobs = startJobs({ log, notifications }, [job]);
  notifications.ring();
  const late = setTimeout(again.resolve, patienceMs, "late");
  assert.equal(await again.promise, "soon");
  clearTimeout(late);
  assert.ok(jobs);
});

test("a job that is woken in each of its runs, and fails in each, runs once a second in the end", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const notifications = openBell();
  const startsMs: number[] = [];
  let nowMs = 0;
  const job: Job = {
    name: "test",
    everySeconds: hour,
    wakeOn: "bell",
    async run() {
      startsMs.push(nowMs);
      notifications.ring();
      throw new Error("always");
    },
  };
  await using jobs = startJobs({ log, notifications }, [job]);
  notifications.ring();
  while (nowMs < 5_000) {
    await new Promise(setImmediate);
    nowMs += 50;
    t.mock.timers.tick(50);
  }
  assert.deepEqual(startsMs, [0, 50, 150, 350, 750, 1550, 2550, 3550, 4550]);
  assert.ok(jobs);
});

test("a job that fails again and again is logged at once, then once a minute, and when it fails in another way", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const lines: string[] = [];
  const told = createLog({ level: "error", destination: { write: (line) => lines.push(line) } });
  const exceptions = new Map([
    [90_000, "refused"],
    [100_000, null],
  ]);
  const job: Job = {
    name: "test",
    everySeconds: 1,
    async run() {
      const fault = exceptions.has(nowMs) ? exceptions.get(nowMs) : "away";
      if (typeof fault === "string") throw new Error(fault);
    },
  };
  await using jobs = startJobs({ log: told, notifications: openBell() }, [job]);
  for (nowMs = 1000; nowMs <= 165_000; nowMs += 1000) {
    t.mock.timers.tick(1000);
    await new Promise(setImmediate);
  }
  const seen = lines.map((line) => {
    const { err, failures } = JSON.parse(line) as { err: Error; failures?: number };
    return [err.message, failures];
  });
  assert.deepEqual(seen, [
    ["away", undefined],
    ["away", 61],
    ["refused", 90],
    ["away", 91],
    ["away", undefined],
    ["away", 61],
  ]);
  assert.ok(jobs);
});

/**
 * Freezes the time of this process.
 *
 * @returns what lets it pass, one millisecond after the other unless told otherwise
 */
function holdTime(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  let nowMs = 0;
  t.mock.method(performance, "now", () => nowMs);
  const pass = async (ms: number, stepMs = 1): Promise<void> => {
    for (const endMs = nowMs + ms; nowMs < endMs;) {
      nowMs += stepMs;
      t.mock.timers.tick(stepMs);
      await new Promise(setImmediate);
    }
  };
  return { pass, nowMs: () => nowMs };
}

test("jobs of one period share the moments at which they run, and begin one after the other", async (t) => {
  const { pass, nowMs } = holdTime(t);
  const runs: number[] = [];
  let underWay = 0;
  const run = async (): Promise<void> => {
    underWay += 1;
    assert.equal(underWay, 1, "one at a time");
    await Promise.resolve();
    underWay -= 1;
    runs.push(nowMs());
  };
  const jobs = Array.from({ length: 20 }, (_, at): Job => ({
    name: `job ${at}`,
    everySeconds: 1,
    run,
  }));
  await using running = startJobs({ log, notifications: openBell() }, jobs);
  await pass(1000);
  assert.deepEqual(
    [...new Set(runs)],
    [500, 1000],
    "the first run comes after half of the period at least",
  );
  assert.equal(runs.length, jobs.length);
  await pass(10_000);
  assert.equal(runs.length, 11 * jobs.length, "each once a second");
  assert.ok(runs.every((at) => at % 500 === 0));
  assert.ok(running);
});

test("a job that takes long holds up those of the same moment for 5 ms", async (t) => {
  const { pass, nowMs } = holdTime(t);
  const gate = Promise.withResolvers<void>();
  const runs: number[] = [];
  const long: Job = { name: "long", everySeconds: 0.5, run: async () => gate.promise };
  const short: Job = { name: "short", everySeconds: 0.5, run: async () => void runs.push(nowMs()) };
  await using running = startJobs({ log, notifications: openBell() }, [long, short]);
  await pass(1600);
  assert.deepEqual(runs, [505, 1000, 1500], "and none while it goes on");
  gate.resolve();
  assert.ok(running);
});

test("a job that waits for another of the same moment begins no more when the process ends", async (t) => {
  const { pass } = holdTime(t);
  const gate = Promise.withResolvers<void>();
  let runs = 0;
  const long: Job = { name: "long", everySeconds: 0.5, run: async () => gate.promise };
  const short: Job = { name: "short", everySeconds: 0.5, run: async () => void (runs += 1) };
  const jobs = startJobs({ log, notifications: openBell() }, [long, short]);
  await pass(500);
  const closed = jobs[Symbol.asyncDispose]();
  gate.resolve();
  await closed;
  await pass(10);
  assert.equal(runs, 0);
});

test("the pause after a run that took long is not cut short by more than a quarter of a second", async (t) => {
  const { pass, nowMs } = holdTime(t);
  const starts: number[] = [];
  const run = async (): Promise<void> => {
    starts.push(nowMs());
    await new Promise((resolve) => setTimeout(resolve, 300));
  };
  await using running = startJobs({ log, notifications: openBell() }, [
    { name: "test", everySeconds: 0.5, run },
  ]);
  await pass(3000);
  assert.deepEqual(starts, [500, 1500, 2500]);
  assert.ok(running);
});

test("a job of a long period has its first run within 10 minutes, and the next after its period", async (t) => {
  const { pass } = holdTime(t);
  let runs = 0;
  const run = async (): Promise<void> => {
    runs += 1;
  };
  const job: Job = { name: "test", everySeconds: 24 * hour, run };
  await using running = startJobs({ log, notifications: openBell() }, [job]);
  await pass(600_000, 600_000);
  assert.equal(runs, 1);
  const almostMs = 24 * hour * 1000 - 1;
  await pass(almostMs, almostMs);
  assert.equal(runs, 1);
  await pass(1);
  assert.equal(runs, 2);
  assert.ok(running);
});

test("a run that is not allowed is skipped, and the next one comes in its turn", async () => {
  const notifications = openBell();
  const done = Promise.withResolvers<void>();
  const answers = [false, true];
  let runs = 0;
  const run = async (): Promise<void> => {
    runs += 1;
    done.resolve();
  };
  const mayRun = async (): Promise<boolean> => answers.shift() === true;
  const job: Job = { name: "test", everySeconds: hour, wakeOn: "bell", run };
  await using jobs = startJobs({ log, notifications, mayRun }, [job]);
  notifications.ring();
  await new Promise(setImmediate);
  assert.equal(runs, 0);
  notifications.ring();
  await done.promise;
  assert.ok(jobs);
});

/** A clock, and what moves it by seconds and calls who listens. */
function openMovableClock() {
  const listeners = new Set<(everyJob: boolean) => void>();
  let timeMs = 0;
  const clock = {
    nowMs: () => timeMs,
    onMoved(listener: (everyJob: boolean) => void) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
  };
  const move = async (seconds: number, everyJob = false): Promise<void> => {
    timeMs += seconds * 1000;
    for (const listener of listeners) listener(everyJob);
    await new Promise(setImmediate);
  };
  return [clock, move, listeners] as const;
}

test("a pause ends at once when the time is moved beyond it, and not before", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [sharedClock, move, listeners] = openMovableClock();
  let gate = Promise.resolve();
  const runsAt: number[] = [];
  const run = async (): Promise<void> => {
    runsAt.push(sharedClock.nowMs() / 1000);
    await gate;
  };
  const job: Job = { name: "test", everySeconds: hour, run };
  const jobs = startJobs({ log, notifications: openBell(), sharedClock }, [job]);
  await move(599);
  assert.deepEqual(runsAt, []);
  await move(1);
  await move(hour - 1);
  assert.deepEqual(runsAt, [600]);
  const held = Promise.withResolvers<void>();
  gate = held.promise;
  await move(1);
  assert.deepEqual(runsAt, [600, 600 + hour]);
  await move(1);
  assert.equal(runsAt.length, 2, "one run at a time");
  held.resolve();
  await new Promise(setImmediate);
  assert.deepEqual(runsAt, [600, 600 + hour, 601 + hour], "once more for a run that began before");
  await move(1, true);
  assert.deepEqual(runsAt.slice(3), [602 + hour], "at once if every job is asked for");
  await jobs[Symbol.asyncDispose]();
  await move(hour);
  assert.deepEqual([runsAt.length, listeners.size], [4, 0]);
});

test("a pause of seconds ends at once when the time is moved by somebody who asks for every job", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const [clock, move] = openMovableClock();
  let runs = 0;
  const run = async (): Promise<void> => {
    runs += 1;
  };
  const job: Job = { name: "test", everySeconds: 5, run };
  await using jobs = startJobs({ log, notifications: openBell(), sharedClock: clock }, [job]);
  await move(hour);
  assert.equal(runs, 0, "it runs soon enough");
  await move(1, true);
  assert.equal(runs, 1);
  assert.ok(jobs);
});
