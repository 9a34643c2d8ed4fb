import type { Ctx } from "../platform/context.ts";
import type { Job } from "../platform/jobs.ts";
import { recheckDomains } from "./client-domains.ts";

/** The jobs of this slice; every process runs them. */
export function accountJobs(ctx: Ctx): readonly Job[] {
  return [
    { name: "domain-proofs", everySeconds: 60, run: async (closing) => recheckAll(ctx, closing) },
  ];
}

/**
 * After days without a running process every domain is due, and each whose proof was last found a week ago is unverified
 * until its turn comes.
 */
async function recheckAll(ctx: Ctx, closing: AbortSignal): Promise<void> {
  for (let count = 1; count > 0 && !closing.aborted;) count = await recheckDomains(ctx);
}
