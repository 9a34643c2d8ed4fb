import assert from "node:assert/strict";
import { test } from "node:test";

import { makeKey, type SigningKey } from "../test/fake-broker.ts";
import { getBrokerKeys } from "./broker-keys.ts";
import type { WalletContext } from "./context.ts";
import { memoryStorage } from "./index.ts";

const broker = "https://id.example";
const [first, second] = [makeKey("one"), makeKey("two")];

/** A wallet that has fetched the first key, a moment of its own, and what its broker publishes. */
function open() {
  const world = { now: 1_000_000, published: [first] as SigningKey[], fetches: 0 };
  const ctx = {
    storage: memoryStorage(),
    now: async () => world.now,
    fetch: async () => {
      world.fetches += 1;
      return Response.json({ keys: world.published.map(({ publicJwk }) => publicJwk) });
    },
  } as Partial<WalletContext> as WalletContext;
  const kidsFor = async (kid: string | undefined) =>
    (await getBrokerKeys(ctx, broker, { kid })).keys.map((key) => key.kid);
  return { world, kidsFor };
}

test("keys are kept for an hour: one that the broker withdraws is believed no longer", async () => {
  const { world, kidsFor } = open();
  assert.deepEqual(await kidsFor("one"), ["one"]);
  world.published = [second];
  world.now += 3599;
  assert.deepEqual(await kidsFor("one"), ["one"]);
  assert.equal(world.fetches, 1);
  world.now += 1;
  assert.deepEqual(await kidsFor("one"), ["two"]);
});

test("keys that a clock which was ahead has fetched are fetched anew", async () => {
  const { world, kidsFor } = open();
  world.now += 86_400;
  await kidsFor("one");
  world.now -= 86_400;
  world.published = [second];
  assert.deepEqual(await kidsFor("one"), ["two"]);
});

test("a name that is not among the kept keys, and it alone, has them fetched again", async () => {
  const { world, kidsFor } = open();
  await kidsFor("one");
  world.published = [first, second];
  for (const kid of ["one", undefined]) assert.deepEqual(await kidsFor(kid), ["one"]);
  assert.equal(world.fetches, 1);
  assert.deepEqual(await kidsFor("two"), ["one", "two"]);
  assert.equal(world.fetches, 2);
});
