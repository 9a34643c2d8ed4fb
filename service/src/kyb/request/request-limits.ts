import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refuseBeyond } from "../../platform/http/limit-refusal.ts";
import { lockDueAmong } from "../ballot/ballot-store.ts";
import type { KybContext } from "../kyb-context.ts";
import * as store from "./request-limits-store.ts";

/** The limits of one organization's requests to one business, of both kinds together (decisions section 6, Limits). */
const openMax = 5;
const perDayMax = 20;
const daySeconds = 86_400;
/** `Retry-After` while too many are open, since an open request may end at any time. */
const openRetrySeconds = 60;

/**
 * Refuses a request beyond the limits of its organization and business, in the transaction that makes it. Expired
 * requests that were not ended yet do not count. The caller has to end those that are returned, but only after it has
 * stored its own request: ending one locks the organization's ledger, which has to come last, or two such transactions
 * could deadlock.
 *
 * @returns the ids of expired ballots, locked, which the caller has to end
 * @throws {Problem} requester_blocked, rate_limited
 */
export async function checkRequestLimits(
  ctx: Pick<KybContext, "clock" | "metrics">,
  tx: Queryable,
  pair: store.Pair,
): Promise<string[]> {
  const now = ctx.clock.now();
  const since = now - daySeconds;
  const count = async () => store.countRequests(tx, pair, { since, count: perDayMax });
  let counted = await count();
  let overdue: string[] = [];
  if (counted.isBlocked) throw new Problem("requester_blocked");
  if (counted.open >= openMax) {
    const due = await lockDueAmong(tx, await store.findOpen(tx, pair), now);
    overdue = due.map(({ id }) => id);
    counted = await count();
  }
  if (counted.open - overdue.length >= openMax)
    refuseBeyond(ctx, "requests-open", {
      burst: openMax,
      message: `rate_limited: at most ${openMax} open requests to one business`,
      retryAfterSeconds: openRetrySeconds,
    });
  if (counted.firstOfLastAt !== null)
    refuseBeyond(ctx, "requests-day", {
      burst: perDayMax,
      perSecond: perDayMax / daySeconds,
      message: `rate_limited: at most ${perDayMax} requests to one business in 24 hours`,
      retryAfterSeconds: counted.firstOfLastAt - since,
    });
  return overdue;
}
