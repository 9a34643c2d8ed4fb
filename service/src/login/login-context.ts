import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { RecentAttempts } from "./recent-attempts.ts";
import type { SigningKeys } from "./signing-keys.ts";

/** What the login slice works with. */
export interface LoginContext extends Ctx {
  readonly clients: Clients;
  readonly signingKeys: SigningKeys;
  readonly recent: RecentAttempts;
}
