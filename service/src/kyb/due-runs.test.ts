import assert from "node:assert/strict";
import { test } from "node:test";
import { until } from "../../../test/patience.ts";
import { type DueKind, runDueKinds } from "./due-runs.ts";
import type { Due } from "./due-store.ts";

const nothing: Due = {
  ballots: false,
  approvals: false,
  dataRefusals: false,
  signatureRefusals: false,
  failedRecordings: false,
  removals: false,
};

test("work that becomes due does not wait for a long run of another kind", async () => {
  let due: Due = { ...nothing, ballots: true };
  const { promise: ended, resolve: end } = Promise.withResolvers<void>();
  let announced = 0;
  const kinds: DueKind[] = [
    {
      isDue: ({ ballots }) => ballots,
      async run() {
        due = { ...due, dataRefusals: true };
        await ended;
        due = { ...due, ballots: false };
      },
    },
    {
      isDue: ({ dataRefusals }) => dataRefusals,
      async run() {
        announced += 1;
        due = { ...due, dataRefusals: false };
      },
    },
  ];
  const running = runDueKinds(async () => due, kinds);
  await until("the refusal is announced", async () => announced > 0 || null);
  assert.equal(due.ballots, true);
  end();
  await running;
  assert.equal(announced, 1);
});

test("a kind of work that fails or gets nothing done does not delay others, and is left to the next run", async () => {
  const begun: string[] = [];
  const kindOf = (name: keyof Due, run: () => Promise<void>): DueKind => ({
    isDue: (due) => due[name],
    async run() {
      begun.push(name);
      await run();
    },
  });
  const kinds = [
    kindOf("ballots", async () => {
      throw new Error("not now");
    }),
    kindOf("failedRecordings", async () => undefined),
  ];
  const due = { ...nothing, ballots: true, failedRecordings: true };
  await assert.rejects(
    runDueKinds(async () => due, kinds),
    /work on businesses failed/,
  );
  assert.deepEqual(begun, ["ballots", "failedRecordings"]);
});
