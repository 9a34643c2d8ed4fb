import type { AttemptFailure } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import type { LoginContext } from "./login-context.ts";

/** Ends an attempt that is still open, for the reason that its page then gives; one that is over stays as it is. */
export async function endAttempt(
  ctx: LoginContext,
  loginId: string,
  failure: AttemptFailure,
): Promise<void> {
  const isEnded = await store.failAttempt(ctx.db, loginId, failure);
  ctx.recent.forget(loginId);
  if (isEnded) ctx.metrics.logins.inc({ outcome: failure });
}
