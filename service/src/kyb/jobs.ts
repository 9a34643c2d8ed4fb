import type { Job } from "../platform/jobs.ts";
import { expireBallots, purgeBallots } from "./ballots.ts";
import { purgeIdempotencyKeys } from "./idempotency.ts";
import type { KybContext } from "./kyb-context.ts";

/** The jobs of this slice; every process runs them. */
export function kybJobs(ctx: KybContext): Job[] {
  return [
    { name: "kyb-expiry", everySeconds: 1, run: async () => expireBallots(ctx) },
    { name: "kyb-ballots", everySeconds: 3600, run: async () => purgeBallots(ctx) },
    { name: "kyb-idempotency", everySeconds: 3600, run: async () => purgeIdempotencyKeys(ctx) },
  ];
}
