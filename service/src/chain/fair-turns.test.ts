import assert from "node:assert/strict";
import { test } from "node:test";
import { createFairTurns } from "./fair-turns.ts";

/** Work that ends when the test calls `end`, in the order in which it began. */
function openBench() {
  const begun: string[] = [];
  const ends: (() => void)[] = [];
  const work = (name: string) => async (): Promise<string> => {
    begun.push(name);
    await new Promise<void>((resolve) => ends.push(resolve));
    return name;
  };
  return { begun, work, end: () => ends.shift()?.() };
}

const onFull = (): Error => new Error("full");

const settle = async (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

/** The outcome of a call so far, without waiting: a turn that never comes fails the test at once. */
async function outcomeOf(call: Promise<string>): Promise<string> {
  const ended = call.catch((error: unknown) => (error as Error).message);
  return Promise.race([ended, settle().then(() => "waits")]);
}

const outcomesOf = async (calls: readonly Promise<string>[]): Promise<string[]> =>
  Promise.all(calls.map(outcomeOf));

test("two run at once, and an owner with much to do does not keep another from its turn", async () => {
  const { begun, work, end } = openBench();
  const turns = createFairTurns({ atOnce: 2, waitingMax: 9, ofOwnerMax: 3, onFull });
  const all = [
    ...["a1", "a2", "a3", "a4", "a5"].map(async (name) => turns("a", work(name))),
    turns("b", work("b1")),
    turns("c", work("c1")),
  ];
  await settle();
  assert.deepEqual(begun, ["a1", "a2"]);
  for (let ended = 0; ended < all.length; ended++) {
    end();
    await settle();
  }
  assert.deepEqual(begun, ["a1", "a2", "a3", "b1", "c1", "a4", "a5"]);
  assert.deepEqual(await outcomesOf(all), ["a1", "a2", "a3", "a4", "a5", "b1", "c1"]);
});

test("an owner with too much waiting work is refused, and another still has a place", async () => {
  const { begun, work, end } = openBench();
  const turns = createFairTurns({ atOnce: 1, waitingMax: 9, ofOwnerMax: 1, onFull });
  const all = [turns("a", work("a1")), turns("a", work("a2"))];
  assert.equal(await outcomeOf(turns("a", work("a3"))), "full");
  all.push(turns("b", work("b1")));
  for (let ended = 0; ended < all.length; ended++) {
    await settle();
    end();
  }
  assert.deepEqual(await outcomesOf(all), ["a1", "a2", "b1"]);
  assert.deepEqual(begun, ["a1", "a2", "b1"]);
});

test("work that fails passes on its turn, and work beyond the limit is refused", async () => {
  const { work, end } = openBench();
  const turns = createFairTurns({ atOnce: 1, waitingMax: 1, ofOwnerMax: 1, onFull });
  const failing = turns("a", async () => Promise.reject(new Error("broken")));
  const waiting = turns("a", work("second"));
  assert.deepEqual(await outcomesOf([turns("b", work("third")), failing]), ["full", "broken"]);
  end();
  assert.equal(await outcomeOf(waiting), "second");
});

test("work that has begun no longer counts as waiting", async () => {
  const { begun, work, end } = openBench();
  const turns = createFairTurns({ atOnce: 1, waitingMax: 1, ofOwnerMax: 1, onFull });
  const all = [turns("a", work("a1")), turns("a", work("a2"))];
  await settle();
  end();
  await settle();
  all.push(turns("b", work("b1")));
  await settle();
  assert.deepEqual(begun, ["a1", "a2"], "and itself runs alone");
  for (let ended = 1; ended < 3; ended++) {
    end();
    await settle();
  }
  assert.deepEqual(await outcomesOf(all), ["a1", "a2", "b1"]);
  assert.deepEqual(begun, ["a1", "a2", "b1"]);
});
