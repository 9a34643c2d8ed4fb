import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { HintLine } from "./hint-line.ts";
import type { DueHint } from "./push-store.ts";

const noisy: Address = `0x${"a1".repeat(20)}`;
const quiet: Address = `0x${"b2".repeat(20)}`;

const hintsOf = (business: Address, count: number): DueHint[] =>
  Array.from({ length: count }, (_, at) => ({
    id: `${business} ${at}`,
    business,
    subscriptionSealed: Buffer.alloc(0),
  }));

/** A line whose hints hang until they are ended one by one. */
function openHanging() {
  const begun: DueHint[] = [];
  const ends: (() => void)[] = [];
  const line = new HintLine(async (due) => {
    begun.push(due);
    const { promise, resolve } = Promise.withResolvers<void>();
    ends.push(resolve);
    return promise;
  });
  return { begun, ends, line };
}

test("a free place goes to the business that has the fewest, however many hints of another wait", async () => {
  const { begun, ends, line } = openHanging();
  line.add(hintsOf(noisy, 1000));
  line.add(hintsOf(quiet, 2));
  const places = begun.length;
  assert.ok(begun.every(({ business }) => business === noisy));
  for (const end of ends.splice(0, 3)) end();
  while (begun.length < places + 3) await Promise.resolve();
  assert.deepEqual(
    begun.slice(places).map(({ business }) => business),
    [quiet, quiet, noisy],
  );
  while (!line.isEmpty) {
    for (const end of ends.splice(0)) end();
    await Promise.resolve();
  }
  assert.equal(begun.length, 1002);
});

test("there is room once fewer hints wait than there are places, and a line is empty once all are sent", async () => {
  const { ends, line } = openHanging();
  line.add(hintsOf(noisy, 600));
  let steps = "";
  const room = line.untilRoom().then(() => (steps += "room "));
  const empty = line.untilEmpty().then(() => (steps += "empty"));
  while (!line.isEmpty) {
    for (const end of ends.splice(0)) end();
    await Promise.resolve();
  }
  await Promise.all([room, empty]);
  assert.equal(steps, "room empty");
});
