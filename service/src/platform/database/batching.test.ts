import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { createBatcher } from "./batching.ts";

/** Calls under way, each ended by the test. */
function manual() {
  const calls: { questions: readonly number[]; end: (error?: Error) => void }[] = [];
  const ask = createBatcher<number, string>(async (questions) => {
    const { promise, resolve, reject } = Promise.withResolvers<string[]>();
    const end = (error?: Error): void =>
      error === undefined ? resolve(questions.map((each) => `answer ${each}`)) : reject(error);
    calls.push({ questions, end });
    return promise;
  });
  return { calls, ask };
}

void test("the first question goes at once, those that come meanwhile go together", async () => {
  const { calls, ask } = manual();
  const first = ask(1);
  assert.deepEqual(calls[0]?.questions, [1]);
  const others = [ask(2), ask(3)];
  assert.equal(calls.length, 1);
  calls[0].end();
  assert.equal(await first, "answer 1");
  await setImmediate();
  assert.deepEqual(calls[1]?.questions, [2, 3]);
  calls[1].end();
  assert.deepEqual(await Promise.all(others), ["answer 2", "answer 3"]);
});

void test("one call takes 64 questions at most, and each gets its own answer", async () => {
  const { calls, ask } = manual();
  const questions = Array.from({ length: 66 }, (_, index) => index + 1);
  const asked = questions.map(async (question) => ask(question));
  for (let index = 0; index < 3; index += 1) {
    calls[index]?.end();
    await setImmediate();
  }
  assert.deepEqual(
    await Promise.all(asked),
    questions.map((each) => `answer ${each}`),
  );
  assert.deepEqual(
    calls.map((call) => call.questions),
    [questions.slice(0, 1), questions.slice(1, 65), questions.slice(65)],
  );
});

void test("a call that fails tells each of its own, and the next one goes on", async () => {
  const { calls, ask } = manual();
  const lost = ask(1);
  const kept = ask(2);
  calls[0]?.end(new Error("the database is away"));
  await assert.rejects(lost, /away/);
  await setImmediate();
  calls[1]?.end();
  assert.equal(await kept, "answer 2");
});

void test("a call that takes longer than 250 ms keeps nobody else waiting, and three are under way at most", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { calls, ask } = manual();
  const asked = [1, 2].map(async (question) => ask(question));
  t.mock.timers.tick(249);
  assert.equal(calls.length, 1);
  t.mock.timers.tick(1);
  assert.deepEqual(calls[1]?.questions, [2]);
  for (const question of [3, 4]) asked.push(ask(question));
  assert.equal(calls.length, 2, "the second is waited for as the first was");
  calls[1].end();
  assert.equal(await asked[1], "answer 2");
  await setImmediate();
  assert.deepEqual(calls[2]?.questions, [3, 4]);
  asked.push(ask(5));
  t.mock.timers.tick(250);
  assert.deepEqual(calls[3]?.questions, [5]);
  asked.push(ask(6));
  t.mock.timers.tick(250);
  assert.equal(calls.length, 4);
  calls[0]?.end();
  await setImmediate();
  assert.deepEqual(calls[4]?.questions, [6]);
  for (const call of calls) call.end();
  assert.deepEqual(
    await Promise.all(asked),
    [1, 2, 3, 4, 5, 6].map((each) => `answer ${each}`),
  );
});
