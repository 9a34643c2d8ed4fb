import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { until } from "./until.ts";

/** The first look takes a while and finds nothing, the second finds it. */
function lookTwice(t: TestContext, { tookMs }: { tookMs: number }) {
  t.mock.timers.enable({ apis: ["Date"] });
  let isSecond = false;
  return async (): Promise<string | null> => {
    if (isSecond) return "there";
    isSecond = true;
    t.mock.timers.tick(tookMs);
    return null;
  };
}

test("a demo waits for the confirmations of a chain from outside, which take minutes", async (t) => {
  const look = lookTwice(t, { tookMs: 1_800_000 });
  assert.equal(await until("all counts", { isEmbedded: false }, look), "there");
});

test("a demo on the embedded chain waits for a busy machine, and not for what never comes", async (t) => {
  const slow = lookTwice(t, { tookMs: 60_000 });
  assert.equal(await until("all counts", { isEmbedded: true }, slow), "there");
  t.mock.timers.reset();
  const look = lookTwice(t, { tookMs: 130_000 });
  await assert.rejects(until("all counts", { isEmbedded: true }, look), {
    message: "it took too long until all counts",
  });
});
