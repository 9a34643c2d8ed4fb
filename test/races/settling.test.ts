// Processes over one embedded chain: whoever signs, all of it settles at once.
import assert from "node:assert/strict";
import { EventEmitter, once } from "node:events";
import { test } from "node:test";
import {
  type ChainContext,
  chainJobs,
  type FinalHandlers,
  type FinalTransaction,
} from "../../service/src/chain/index.ts";
import { startJobs } from "../../service/src/platform/jobs.ts";
import { alarmsOf } from "../outbox-looks.ts";
import { patienceMs, until } from "../patience.ts";
import { openInstallation } from "../chain-processes.ts";

const hour = 3600;
const outboxChannel = "chain_outbox";

test("two processes settle on the embedded chain without waiting for a look at what is due, whichever has it", async () => {
  await using installation = await openInstallation(null);
  await using one = await installation.openProcess();
  await using two = await installation.openProcess();
  assert.equal(one.chain.chainId, two.chain.chainId);
  assert.deepEqual(one.chain.contracts, two.chain.contracts);
  const events = new EventEmitter();
  const handlers: FinalHandlers = {
    "test.settle": async (_tx, done: readonly FinalTransaction[]) => {
      for (const each of done) events.emit(each.subjectId, each);
    },
  };
  const start = (ctx: ChainContext): AsyncDisposable =>
    startJobs(
      ctx,
      chainJobs(ctx, handlers).map((job) => Object.assign(job, { everySeconds: hour })),
    );
  for (const worker of [one, two]) {
    await using jobs = start(worker.ctx);
    assert.ok(jobs);
    // The job subscribed earlier, so once this subscription works, the job's does too.
    await worker.ctx.notifications.subscribe(outboxChannel, () => undefined);
    for (let each = 0; each < 5; each += 1) {
      const subject = `${worker === one ? "one" : "two"}-${each}`;
      const settled = once(events, subject, { signal: AbortSignal.timeout(patienceMs) });
      await worker.queue(subject);
      const [done] = (await settled) as [FinalTransaction];
      assert.equal(done.status, "succeeded");
    }
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
