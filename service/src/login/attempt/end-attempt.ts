import type { Attempt, AttemptFailure } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { deleteOpenLogin } from "../business/business-login-store.ts";
import type { LoginContext } from "../login-context.ts";
import { isBusinessScope } from "../authorization/scope.ts";

/** Ends an attempt that is still open, for the reason that its page then gives; one that is over stays as it is. */
export async function endAttempt(
  ctx: LoginContext,
  { id, request }: Pick<Attempt, "id" | "request">,
  failure: AttemptFailure,
): Promise<void> {
  const isEnded = isBusinessScope(request.scope)
    ? await endForBusiness(ctx, id, failure)
    : await store.failAttempt(ctx.db, id, failure);
  ctx.recent.forget(id);
  if (isEnded) ctx.metrics.logins.inc({ outcome: failure });
}

/**
 * Ends the login together with the ballot of the other members, if they were asked. As in every vote the ballot is locked
 * before the login. An approval under way holds the login and has yet to open its ballot, so the login alone is tried
 * first, in a transaction of its own, which waits for that approval.
 */
async function endForBusiness(
  ctx: LoginContext,
  id: string,
  failure: AttemptFailure,
): Promise<boolean> {
  if (await store.failUnasked(ctx.db, id, failure)) return true;
  return ctx.db.transaction(async (tx) => {
    await ctx.businesses.withdraw(tx, id);
    await deleteOpenLogin(tx, id);
    return store.failAttempt(tx, id, failure);
  });
}
