import { endedForLate } from "../../platform/clock.ts";
import type { Job } from "../../platform/jobs.ts";
import { purgeByPages, purgeInBatches } from "../../platform/database/purge.ts";
import { deliverLogouts } from "../session/back-channel.ts";
import { purgeDeliveries } from "../session/back-channel-store.ts";
import { purgeFamilies } from "./family-purge-store.ts";
import { ensureKeys } from "../keys/signing-keys.ts";
import type { TokenContext } from "../token-context.ts";
import { deleteUsedOnce } from "./used-once-store.ts";

/** Revoked families are kept for a day, for the investigation of a reuse. */
const revokedRetentionSeconds = 86_400;
/** Logouts are kept like logins (decisions section 8, Retention). */
const logoutRetentionSeconds = 30 * 86_400;

/** The jobs of the token side. */
export function tokenJobs(ctx: TokenContext): readonly Job[] {
  return [
    {
      name: "logout-delivery",
      everySeconds: 1,
      wakeOn: "logout",
      run: async (closing, nextWake) => void (await deliverLogouts(ctx, { closing, nextWake })),
    },
    { name: "refresh-successors", everySeconds: 2, run: async () => ctx.successors.sweep() },
    { name: "signing-keys", everySeconds: 15, run: async () => followKeys(ctx) },
    {
      name: "used-once",
      everySeconds: 60,
      run: async () => purgeUsedOnce(ctx),
    },
    {
      name: "refresh-successors-of-all",
      everySeconds: 600,
      run: async () => ctx.successors.sweepAll(),
    },
    { name: "token-families", everySeconds: 3_600, run: async () => purgeEndedFamilies(ctx) },
    {
      name: "logout-records",
      everySeconds: 3_600,
      run: async () => purgeLogouts(ctx),
    },
  ];
}

/** Makes the next keys in time, and reads all keys again in case a notification was lost. */
async function followKeys(ctx: TokenContext): Promise<void> {
  await ensureKeys(ctx);
  await ctx.signingKeys.refresh();
}

async function purgeLogouts(ctx: TokenContext): Promise<void> {
  const before = ctx.clock.now() - logoutRetentionSeconds;
  await purgeInBatches(async (limit) => purgeDeliveries(ctx.db, before, limit));
}

async function purgeUsedOnce(ctx: TokenContext): Promise<void> {
  const before = endedForLate(ctx.clock);
  await purgeInBatches(async (limit) => deleteUsedOnce(ctx.db, before, limit));
}

async function purgeEndedFamilies(ctx: TokenContext): Promise<void> {
  const now = ctx.clock.now();
  const purge = {
    now,
    revokedBefore: now - revokedRetentionSeconds,
    idleBefore: now - ctx.config.accessTokenLifetimeSeconds,
  };
  await purgeByPages(async (page) => purgeFamilies(ctx.db, { ...purge, ...page }));
}
