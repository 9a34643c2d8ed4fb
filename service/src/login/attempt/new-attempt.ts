import type { Random } from "../../platform/context.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { randomId } from "../../platform/ids.ts";
import type { AuthorizationRequest } from "../authorization/authorization-request.ts";
import { isBusinessScope } from "../authorization/scope.ts";
import { businessLoginSeconds } from "../business/business-login.ts";
import type { LoginContext } from "../login-context.ts";
import type { Attempt } from "./attempt.ts";
import { attemptCookies } from "./browser-cookies.ts";

/** The parts of a browser's call that matter to a login. */
export interface BrowserCall {
  readonly cookieHeader: string | undefined;
  /** The address it calls from, seen through the trusted proxies. */
  readonly address: string;
  /** The network of that address, see `networkOf`. */
  readonly network: string;
}

/** How long an attempt's cookie outlives the time in which its code can be fetched. */
const cookieSlackSeconds = 600;

/** The members of an attempt that nothing has happened to yet. */
export const blankAttempt = {
  status: "waiting",
  failure: null,
  isStatic: false,
  isContested: false,
  channel: null,
  sessionText: null,
  connection: null,
  claimedBy: null,
  claimSha256: null,
  digits: null,
  requestObject: null,
  acr: null,
  business: null,
  gatheringSince: null,
} as const satisfies Partial<Attempt>;

interface Restart {
  readonly replacedId?: string;
  readonly random?: Pick<Random, "bytes">;
}

type Fresh = Pick<Attempt, "id" | "browserSha256" | "browserNetwork" | "createdAt" | "expiresAt">;

/**
 * Id, browser secret and lifetime of a new attempt; the secret leaves only in the cookie.
 *
 * @param asked.replacedId the login that it is the restart of, whose cookie the caller ends
 * @param asked.random where id and secret come from
 */
export function newAttempt(
  ctx: LoginContext,
  browser: BrowserCall,
  { scope, replacedId, random = ctx.random }: Pick<AuthorizationRequest, "scope"> & Restart,
): { attempt: Fresh; cookies: string[] } {
  const now = ctx.clock.now();
  const loginId = randomId(random, 16);
  const secret = random.bytes(32).toString("base64url");
  const lifetimeSeconds = isBusinessScope(scope)
    ? businessLoginSeconds
    : ctx.config.loginLifetimeSeconds;
  return {
    attempt: {
      id: loginId,
      browserSha256: sha256(secret),
      browserNetwork: browser.network,
      createdAt: now,
      expiresAt: now + lifetimeSeconds,
    },
    cookies: attemptCookies(ctx.config, browser.cookieHeader, {
      loginId,
      secret,
      createdAt: now,
      // An approval in the last second extends the attempt by the lifetime of another page.
      lifetimeSeconds: lifetimeSeconds + ctx.config.loginLifetimeSeconds + cookieSlackSeconds,
      ...(replacedId === undefined ? {} : { replacedId }),
    }),
  };
}
