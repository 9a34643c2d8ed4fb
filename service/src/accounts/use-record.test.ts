import assert from "node:assert/strict";
import { test } from "node:test";
import { openUseRecord, type Use } from "./use-record.ts";

/** A record whose writes end when the test says so. */
function openFixture() {
  const saved: Use[] = [];
  const gates: PromiseWithResolvers<void>[] = [];
  const clock = { seconds: 1000, now: () => clock.seconds, nowMs: () => clock.seconds * 1000 };
  const log = { warn: () => undefined };
  const record = openUseRecord(
    { clock, log } as unknown as Parameters<typeof openUseRecord>[0],
    async (uses) => {
      const gate = Promise.withResolvers<void>();
      gates.push(gate);
      await gate.promise;
      saved.push(...uses);
    },
  );
  return { record, saved, gates, clock };
}

void test("closing waits for the write that is on its way", async () => {
  const { record, saved, gates } = openFixture();
  record.note("a");
  const flushing = record.flush();
  let isClosed = false;
  const closing = record[Symbol.asyncDispose]().then(() => (isClosed = true));
  await new Promise(setImmediate);
  assert.equal(isClosed, false);
  gates[0]?.resolve();
  await Promise.all([flushing, closing]);
  assert.deepEqual(saved, [{ id: "a", at: 1000 }]);
});

void test("what could not be written is written by the next flush, unless it was used later", async () => {
  const { record, saved, gates, clock } = openFixture();
  record.note("a");
  record.note("b");
  const failing = record.flush();
  await new Promise(setImmediate);
  clock.seconds += 60;
  record.note("b");
  gates[0]?.reject(new Error("the database is away"));
  await failing;
  const closing = record[Symbol.asyncDispose]();
  await new Promise(setImmediate);
  gates[1]?.resolve();
  await closing;
  // By id, whatever was noted first.
  assert.deepEqual(saved, [
    { id: "a", at: 1000 },
    { id: "b", at: 1060 },
  ]);
});
