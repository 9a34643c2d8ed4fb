import type { RecentAttempts } from "./recent-attempts.ts";
import type { TokenContext } from "./token-context.ts";

/** What the authorization side of login works with. */
export interface LoginContext extends TokenContext {
  readonly recent: RecentAttempts;
}
