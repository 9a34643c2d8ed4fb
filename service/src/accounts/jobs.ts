import type { Ctx } from "../platform/context.ts";
import type { Job } from "../platform/jobs.ts";
import { recheckDomains } from "./client-domains.ts";

/** The jobs of this slice; every process runs them. */
export function accountJobs(ctx: Ctx): readonly Job[] {
  return [
    { name: "domain-proofs", everySeconds: 60, run: async () => void (await recheckDomains(ctx)) },
  ];
}
