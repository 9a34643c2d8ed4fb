import assert from "node:assert/strict";
import { test } from "node:test";
import { digits, loginId, openFakeBroker } from "../test/fake-broker.ts";
import { walletOf } from "../test/test-wallet.ts";

await using broker = await openFakeBroker();
const path = `/w/l/${loginId}`;

/** Approves a login whose answers are lost, or replaced by one with that status, after the broker has taken them. */
async function approve(faults: (number | "lost")[]): Promise<unknown> {
  broker.reset();
  const faulty: typeof fetch = async (url, init) => {
    const answer = await fetch(url, init);
    const fault = answer.url.endsWith(path) ? faults.shift() : undefined;
    if (fault === "lost") throw new TypeError("the connection broke");
    return fault === undefined ? answer : new Response("{}", { status: fault });
  };
  const wallet = await walletOf("alice", [broker.url], { fetch: faulty });
  const outcome = await wallet.approve(broker.qrLink(), { code: digits });
  return outcome.kind === "delivered" && outcome.status;
}

await test("an answer that a broker cannot take, or may have taken, is sent again as it was, four times in all", async (t) => {
  const pausesMs: number[] = [];
  const plain = globalThis.setTimeout;
  const hurry = (done: (...given: unknown[]) => void, ms: number, ...given: unknown[]): unknown => {
    // Those of the platform's own fetch have more to pass on.
    if (ms < 1000 || given.length > 0) return plain(done, ms, ...given);
    pausesMs.push(ms);
    return queueMicrotask(done);
  };
  t.mock.method(globalThis, "setTimeout", hurry as typeof setTimeout);
  assert.equal(await approve([503, "lost"]), 200);
  const [first, ...more] = broker.received.filter((each) => each.path === path);
  assert.deepEqual(more, [first, first]);
  assert.equal(await approve([503, 503, 503, 503]), 503);
  assert.equal(await approve([500]), 500, "that is no fault that passes");
  assert.deepEqual(pausesMs, [1000, 2000, 1000, 2000, 4000]);
});
