import { attestationKeyChannel } from "./release/attestation-key-store.ts";
import { createDeferred, type Deferred } from "../platform/deferred.ts";
import { alarmWhileAway } from "../chain/index.ts";
import type { Job } from "../platform/jobs.ts";
import { expireBallots, purgeBallots } from "./ballot/ballots.ts";
import { watchWallets } from "./business/chain-watch.ts";
import { announceDataRefusals } from "./request/data-requests.ts";
import { type DueKind, runDueKinds } from "./due-runs.ts";
import { readDue } from "./due-store.ts";
import { forgetLapsed, lapseFoundings } from "./business/founding.ts";
import { purgeProposals } from "./business/governance.ts";
import { purgeIdempotencyKeys } from "./idempotency.ts";
import type { KybContext } from "./kyb-context.ts";
import { purgeOffers } from "./offer/offers.ts";
import { purgeReleases, releaseApproved } from "./release/releases.ts";
import { finishRemovals } from "./business/removal.ts";
import { followChain, lookAtOpen } from "./business/roster.ts";
import { rosterChannel } from "./business/roster-store.ts";
import { mendRecordings } from "./request/signature-request-ballots.ts";
import { announceSignatureRefusals, purgeDocuments } from "./request/signature-requests.ts";
import { finishMoves, stopBusinesses } from "./business/standing.ts";

/** The jobs of this slice; every process runs them. */
export function kybJobs(ctx: KybContext): Job[] {
  const deferred = createDeferred(ctx.clock);
  return [
    ...(ctx.config.chain === "off" ? [] : chainJobs(ctx)),
    { name: "kyb-foundings", everySeconds: 5, run: async () => lapseFoundings(ctx) },
    { name: "kyb-lapsed", everySeconds: 3600, run: async () => forgetLapsed(ctx) },
    { name: "kyb-proposals", everySeconds: 3600, run: async () => purgeProposals(ctx) },
    {
      name: "kyb-standing",
      everySeconds: 5,
      wakeOn: rosterChannel,
      run: async () => {
        await stopBusinesses(ctx);
        await finishMoves(ctx);
      },
    },
    {
      name: "attestation-keys",
      everySeconds: 15,
      wakeOn: attestationKeyChannel,
      run: async () => ctx.attestationKeys.rotate(),
    },
    ...requestJobs(ctx, deferred),
    { name: "kyb-due", everySeconds: 1, run: async (closing) => runDue(ctx, deferred, closing) },
    { name: "kyb-ballots", everySeconds: 3600, run: async () => purgeBallots(ctx) },
    { name: "kyb-idempotency", everySeconds: 3600, run: async () => purgeIdempotencyKeys(ctx) },
  ];
}

/** Jobs that release, and that purge requests and offers. */
function requestJobs(ctx: KybContext, deferred: Deferred): Job[] {
  return [
    {
      name: "kyb-releases",
      everySeconds: 60,
      wakeOn: "kyb_release",
      run: async () => releaseApproved(ctx, deferred),
    },
    { name: "kyb-documents", everySeconds: 3600, run: async () => purgeDocuments(ctx) },
    { name: "kyb-offers", everySeconds: 3600, run: async () => purgeOffers(ctx) },
    { name: "kyb-release-retention", everySeconds: 3600, run: async () => purgeReleases(ctx) },
  ];
}

/** Jobs that mirror businesses from the chain. */
function chainJobs(ctx: KybContext): Job[] {
  return [
    {
      name: "kyb-roster",
      everySeconds: 1,
      wakeOn: rosterChannel,
      run: async () => alarmWhileAway(ctx, async () => followChain(ctx)),
    },
    {
      name: "kyb-watch",
      everySeconds: 5,
      run: async () => alarmWhileAway(ctx, async () => watchWallets(ctx)),
    },
    { name: "kyb-roster-sweep", everySeconds: 600, run: async () => lookAtOpen(ctx) },
  ];
}

/** Does the work that becomes due at a time, instead of by an event. */
async function runDue(ctx: KybContext, deferred: Deferred, closing: AbortSignal): Promise<void> {
  const hasChain = ctx.config.chain !== "off";
  const kinds: readonly DueKind[] = [
    { isDue: (due) => due.ballots, run: async () => expireBallots(ctx) },
    { isDue: (due) => due.approvals, run: async () => releaseApproved(ctx, deferred) },
    { isDue: (due) => due.dataRefusals, run: async () => announceDataRefusals(ctx) },
    { isDue: (due) => due.signatureRefusals, run: async () => announceSignatureRefusals(ctx) },
    {
      isDue: (due) => due.failedRecordings && hasChain,
      run: async () => alarmWhileAway(ctx, async () => mendRecordings(ctx)),
    },
    { isDue: (due) => due.removals && hasChain, run: async () => finishRemovals(ctx) },
  ];
  await runDueKinds(async () => readDue(ctx.db, ctx.clock.now()), kinds, closing);
}
