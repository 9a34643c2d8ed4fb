import type { Ctx } from "../platform/context.ts";
import type { Job } from "../platform/jobs.ts";
import { purgeByPages, purgeInBatches } from "../platform/database/purge.ts";
import { purgePushed } from "./authorization/pushed-request-store.ts";
import * as store from "./retention-store.ts";

const daySeconds = 86_400;
/** Attempts and sessions are kept 30 days (decisions section 8, Retention). */
const retentionSeconds = 30 * daySeconds;

/** Removes what is past its retention. */
export async function purgeLogins(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const now = ctx.clock.now();
  const before = now - retentionSeconds;
  await purgeInBatches(async (limit) => store.purgeAttempts(ctx.db, before, limit));
  await purgeByPages(async (page) => store.purgeSessions(ctx.db, { now, before, ...page }));
}

/**
 * Ranges of `created_at`, Unix seconds, that cover all logins that are still kept: a day each, the first from 0 for
 * what awaits its purge, the last a day into the future. One statement over all of them would exceed the statement
 * timeout.
 */
export function daysOfLogins(now: number): { from: number; before: number }[] {
  const starts: number[] = [0];
  for (let at = now - retentionSeconds; at <= now; at += daySeconds) starts.push(at);
  return starts.map((from, at) => ({ from, before: starts[at + 1] ?? now + daySeconds }));
}

export function retentionJobs(ctx: Pick<Ctx, "db" | "clock">): readonly Job[] {
  return [
    { name: "login-retention", everySeconds: 3600, run: async () => purgeLogins(ctx) },
    { name: "pushed-requests", everySeconds: 60, run: async () => purgePushedRequests(ctx) },
  ];
}

async function purgePushedRequests(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const now = ctx.clock.now();
  await purgeInBatches(async (limit) => purgePushed(ctx.db, now, limit));
}
