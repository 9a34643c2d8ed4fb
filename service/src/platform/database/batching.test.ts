import assert from "node:assert/strict";
import { test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { Problem } from "../http/problems.ts";
import { createBatcher } from "./batching.ts";

/** Waits until a call that is due is made: first the end of the call before is handled, then what arrives next. */
async function turn(): Promise<void> {
  for (let turns = 0; turns < 3; turns += 1) await setImmediate();
}

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

void test("questions of one turn of the event loop share a call, and so do those that come while it is under way", async () => {
  const { calls, ask } = manual();
  const first = [ask(1), ask(2)];
  await turn();
  assert.deepEqual(calls[0]?.questions, [1, 2]);
  const others = [ask(3), ask(4)];
  await turn();
  assert.equal(calls.length, 1);
  calls[0].end();
  assert.deepEqual(await Promise.all(first), ["answer 1", "answer 2"]);
  await turn();
  assert.deepEqual(calls[1]?.questions, [3, 4]);
  calls[1].end();
  assert.deepEqual(await Promise.all(others), ["answer 3", "answer 4"]);
});

void test("a lone question is asked at the end of its turn, and several a turn later, with what came meanwhile", async () => {
  const { calls, ask } = manual();
  const alone = ask(1);
  await setImmediate();
  assert.deepEqual(calls[0]?.questions, [1]);
  calls[0].end();
  await alone;
  await turn();
  const together = [ask(2), ask(3)];
  await setImmediate();
  assert.equal(calls.length, 1);
  together.push(ask(4));
  await setImmediate();
  assert.deepEqual(calls[1]?.questions, [2, 3, 4]);
  calls[1].end();
  await Promise.all(together);
});

void test("one call takes 64 questions at most, and each gets its own answer", async () => {
  const { calls, ask } = manual();
  const questions = Array.from({ length: 66 }, (_, index) => index + 1);
  const asked = questions.map(async (question) => ask(question));
  for (let index = 0; index < 2; index += 1) {
    await turn();
    calls[index]?.end();
  }
  assert.deepEqual(
    await Promise.all(asked),
    questions.map((each) => `answer ${each}`),
  );
  assert.deepEqual(
    calls.map((call) => call.questions),
    [questions.slice(0, 64), questions.slice(64)],
  );
});

void test("questions that found no place in a call that hangs get another after 250 ms", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { calls, ask } = manual();
  const asked = Array.from({ length: 65 }, async (_, index) => ask(index));
  await turn();
  assert.equal(calls[0]?.questions.length, 64);
  t.mock.timers.tick(250);
  await turn();
  assert.deepEqual(calls[1]?.questions, [64]);
  for (const call of calls) call.end();
  assert.equal((await Promise.all(asked)).length, 65);
});

void test("while 10,000 questions wait, another is refused as unavailable", async () => {
  const { ask } = manual();
  for (let question = 0; question < 10_000; question += 1) void ask(question);
  let refusal: unknown;
  ask(10_000).catch((error: unknown) => (refusal = error));
  await turn();
  assert.ok(refusal instanceof Problem && refusal.reason === "unavailable");
});

void test("a question that a call leaves unanswered fails", async () => {
  const ask = createBatcher<number, string>(async () => ["answer"]);
  const [first, second] = await Promise.allSettled([ask(1), ask(2)]);
  assert.deepEqual([first?.status, second?.status], ["fulfilled", "rejected"]);
});

void test("a call that fails fails each of its questions, and the next call is made", async () => {
  const { calls, ask } = manual();
  const lost = ask(1);
  await turn();
  const kept = ask(2);
  calls[0]?.end(new Error("the database is away"));
  await assert.rejects(lost, /away/);
  await turn();
  calls[1]?.end();
  assert.equal(await kept, "answer 2");
});

void test("a call that takes longer than 250 ms keeps nobody else waiting, and three are under way at most", async (t) => {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  const { calls, ask } = manual();
  const pass = async (milliseconds: number): Promise<void> => {
    t.mock.timers.tick(milliseconds);
    await turn();
  };
  const asked = [ask(1)];
  await pass(0);
  asked.push(ask(2));
  await pass(249);
  assert.equal(calls.length, 1);
  await pass(1);
  assert.deepEqual(calls[1]?.questions, [2]);
  for (const question of [3, 4]) asked.push(ask(question));
  await pass(0);
  assert.equal(calls.length, 2, "the second is waited for as the first was");
  calls[1].end();
  assert.equal(await asked[1], "answer 2");
  await turn();
  assert.deepEqual(calls[2]?.questions, [3, 4]);
  asked.push(ask(5));
  await pass(250);
  assert.deepEqual(calls[3]?.questions, [5]);
  asked.push(ask(6));
  await pass(250);
  assert.equal(calls.length, 4);
  calls[0]?.end();
  await turn();
  assert.deepEqual(calls[4]?.questions, [6]);
  for (const call of calls) call.end();
  assert.deepEqual(
    await Promise.all(asked),
    [1, 2, 3, 4, 5, 6].map((each) => `answer ${each}`),
  );
});
