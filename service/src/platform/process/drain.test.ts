import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { Ctx } from "../context.ts";
import { drain } from "./drain.ts";

/** Drains for a minute at most: a listener whose connections end when they are cut, and work that ends when told. */
function beginDrain(t: TestContext) {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const said: string[] = [];
  const [connections, work] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const ctx = {
    config: { drainSeconds: 60 },
    log: { info: () => void said.push("begun"), warn: () => void said.push("warned") },
  } as unknown as Ctx;
  const cut = (): void => {
    said.push("cut");
    connections.resolve();
  };
  const listener = { cut, [Symbol.asyncDispose]: async () => connections.promise };
  const works = [{ [Symbol.asyncDispose]: async () => work.promise }];
  const drained = drain(ctx, { listener, works }).then(
    () => void said.push("drained"),
    () => void said.push("failed"),
  );
  return { said, connections, work, drained };
}

test("what hangs has the time of the drain and not more, then connections are cut and the log says so", async (t) => {
  const { said, work, drained } = beginDrain(t);
  t.mock.timers.tick(59_999);
  await nextTurn();
  assert.deepEqual(said, ["begun"]);
  t.mock.timers.tick(1);
  await nextTurn();
  assert.deepEqual(said, ["begun", "warned", "cut"], "and work that still runs is waited for");
  work.resolve();
  await drained;
  assert.deepEqual(said, ["begun", "warned", "cut", "drained"]);
});

test("what ends in time is waited for, and how it failed is told", async (t) => {
  const { said, connections, work, drained } = beginDrain(t);
  connections.resolve();
  await nextTurn();
  assert.deepEqual(said, ["begun"]);
  work.reject(new Error("broken"));
  await drained;
  assert.deepEqual(said, ["begun", "cut", "failed"]);
});

const countTimers = (): number =>
  process.getActiveResourcesInfo().filter((each) => each === "Timeout").length;

test("a drain that is over keeps no process", async () => {
  const before = countTimers();
  const listener = { cut: () => undefined, [Symbol.asyncDispose]: async () => undefined };
  const ctx = { config: { drainSeconds: 60 }, log: { info: () => undefined } } as unknown as Ctx;
  await drain(ctx, { listener, works: [] });
  assert.equal(countTimers(), before);
});
