import type { Queryable } from "../../platform/database/db.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refuseBeyond } from "../../platform/rate-limit.ts";
import { expireAmong } from "../ballot/ballots.ts";
import type { KybContext } from "../kyb-context.ts";
import * as store from "./request-limits-store.ts";

/** Requests of one organization to one business, data and signatures together (decisions section 6, Limits). */
const openMax = 5;
const perDayMax = 20;
const daySeconds = 86_400;
/** `Retry-After` while too many are open, since an open request may end at any time. */
const openRetrySeconds = 60;

/**
 * Refuses a request beyond the limits of its organization and business, in the transaction that makes it.
 *
 * @throws {Problem} requester_blocked, rate_limited
 */
export async function checkRequestLimits(
  ctx: KybContext,
  tx: Queryable,
  pair: store.Pair,
): Promise<void> {
  const since = ctx.clock.now() - daySeconds;
  const count = async () => store.countRequests(tx, pair, { since, count: perDayMax });
  let counted = await count();
  if (counted.isBlocked) throw new Problem("requester_blocked");
  if (counted.open >= openMax) {
    // The time of some may be over, and nobody has said so yet.
    await expireAmong(ctx, tx, await store.findOpen(tx, pair));
    counted = await count();
  }
  if (counted.open >= openMax)
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
}
