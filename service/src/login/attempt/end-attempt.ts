import type { Attempt, AttemptFailure } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { deleteOpenLogin } from "../business/business-login-store.ts";
import type { LoginContext } from "../login-context.ts";
import { isBusinessScope } from "../authorization/scope.ts";

type Ended = Pick<Attempt, "id" | "request">;

/** Ends an attempt that is still open; its page then shows the reason. One that is over stays as it is. */
export async function endAttempt(
  ctx: LoginContext,
  attempt: Ended,
  failure: AttemptFailure,
): Promise<void> {
  await end(ctx, attempt, { failure, fail: store.failAttempt });
}

/**
 * As {@link endAttempt}, but an approved attempt stays as well, since its wallet was told so.
 *
 * @returns whether it ended
 */
export async function endUndecided(
  ctx: LoginContext,
  attempt: Ended,
  failure: AttemptFailure,
): Promise<boolean> {
  return end(ctx, attempt, { failure, fail: store.failUndecided });
}

interface Ending {
  readonly failure: AttemptFailure;
  readonly fail: typeof store.failAttempt;
}

async function end(ctx: LoginContext, { id, request }: Ended, ending: Ending): Promise<boolean> {
  const isEnded = isBusinessScope(request.scope)
    ? await endForBusiness(ctx, id, ending)
    : await ending.fail(ctx.db, id, ending.failure);
  ctx.recent.forget(id);
  if (isEnded) ctx.metrics.logins.inc({ outcome: ending.failure });
  return isEnded;
}

/**
 * Ends the login together with the ballot of the other members, if they were asked. As in every vote, the ballot is
 * locked before the login. But an approval under way has locked the login and not opened its ballot yet, so first only
 * the login is tried, in a transaction of its own, which waits for that approval.
 */
async function endForBusiness(
  ctx: LoginContext,
  id: string,
  { failure, fail }: Ending,
): Promise<boolean> {
  if (await store.failUnasked(ctx.db, id, failure)) return true;
  return ctx.db.transaction(async (tx) => {
    await ctx.businesses.withdraw(tx, id);
    await deleteOpenLogin(tx, id);
    return fail(tx, id, failure);
  });
}
