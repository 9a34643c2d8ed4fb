// Processes over one embedded chain: whoever signs, all of it settles at once.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test, type TestContext } from "node:test";
import {
  type ChainContext,
  chainJobs,
  type FinalTransaction,
} from "../../service/src/chain/index.ts";
import { startJobs } from "../../service/src/platform/jobs.ts";
import { alarmsOf } from "../outbox-looks.ts";
import { until } from "../patience.ts";
import { openInstallation } from "../chain-processes.ts";

/** Jobs whose pause begins from now on run when they are woken, and never because it is over. */
function keepJobsWaiting(t: TestContext): () => void {
  const setTimer = setTimeout;
  const set = (call: () => void, ms: number): unknown => setTimer(call, ms >= 1000 ? day : ms);
  const { mock } = t.mock.method(globalThis, "setTimeout", set as typeof setTimeout);
  return () => mock.restore();
}

const day = 86_400_000;

test("two processes settle on the embedded chain without waiting for a look at what is due, whichever has it", async (t) => {
  await using installation = await openInstallation(null);
  await using one = await installation.openProcess();
  await using two = await installation.openProcess();
  assert.equal(one.chain.chainId, two.chain.chainId);
  assert.deepEqual(one.chain.contracts, two.chain.contracts);
  const events = new EventEmitter();
  const start = (ctx: ChainContext): AsyncDisposable =>
    startJobs(
      ctx,
      chainJobs(ctx, {
        "test.settle": async (_tx, done: readonly FinalTransaction[]) => {
          for (const each of done) events.emit(each.subjectId, each);
        },
      }),
    );
  for (const worker of [one, two]) {
    await using jobs = start(worker.ctx);
    assert.ok(jobs);
    let goOn: (() => void) | undefined;
    for (let each = 0; each < 5; each += 1) {
      const subject = `${worker === one ? "one" : "two"}-${each}`;
      const settled = once(events, subject, { signal: AbortSignal.timeout(60_000) });
      await worker.queue(subject);
      const [done] = (await settled) as [FinalTransaction];
      assert.equal(done.status, "succeeded");
      // The first may come before the process listens.
      if (each === 0) goOn = keepJobsWaiting(t);
    }
    goOn?.();
  }
});

test("of two processes the one that hands over first takes along what the other signed before it", async () => {
  await using installation = await openInstallation(null);
  await using one = await installation.openProcess();
  await using two = await installation.openProcess();
  await one.queue("first");
  await one.workWith({
    async submit(raws) {
      await two.queue("second");
      await two.work();
      await one.chain.node.submit(raws);
    },
  });
  for (const process of [one, two]) assert.equal(await alarmsOf(process, "node_refused"), 0);
  const settled = (): string[] => [...one.done, ...two.done].map(({ subjectId }) => subjectId);
  await until("both are final", async () => {
    await two.work();
    return settled().length === 2 ? true : null;
  });
  assert.deepEqual(settled().toSorted(), ["first", "second"]);
});
