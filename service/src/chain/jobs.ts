import { purgeInBatches } from "../platform/database/purge.ts";
import type { Job } from "../platform/jobs.ts";
import type { ChainContext } from "./context.ts";
import { NodeAway, RpcError } from "./node.ts";
import { type FinalHandlers, workOutbox } from "./outbox.ts";
import * as store from "./transaction-store.ts";

/** How long the bytes of a final transaction are kept, to send them again after a deep reorganisation. */
const bytesSeconds = 7 * 86_400;
const day = 86_400;

/** The jobs of this slice; none in a process without a chain. */
export function chainJobs(ctx: ChainContext, handlers: FinalHandlers): Job[] {
  if (ctx.config.chain === "off") return [];
  return [
    {
      name: "chain-outbox",
      everySeconds: 1,
      wakeOn: "chain_outbox",
      run: async () => alarmWhileAway(ctx, async () => workOutbox(ctx, handlers)),
    },
    {
      name: "chain-bytes",
      everySeconds: day,
      run: async () => purgeBytes(ctx),
    },
  ];
}

async function purgeBytes({ db, clock }: ChainContext): Promise<void> {
  const before = clock.now() - bytesSeconds;
  await purgeInBatches(async (limit) => store.forgetBytes(db, before, limit));
}

/**
 * Runs a job that calls the chain's node. If the node is away or refuses a call, this raises an alarm and does not fail
 * the job: what it had to do stays due.
 */
export async function alarmWhileAway(ctx: ChainContext, run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (error) {
    const faults: readonly unknown[] = error instanceof AggregateError ? error.errors : [error];
    if (faults.every((fault) => fault instanceof RpcError))
      ctx.chain.metrics.raise("node_refused", { err: faults[0] });
    else if (error instanceof NodeAway) ctx.chain.metrics.raise("node_unreachable", { err: error });
    else throw error;
  }
}
