import type { Client } from "../../accounts/index.ts";
import { type Attempt, restartsMax, sameDeviceLink } from "../attempt/attempt.ts";
import { pageSteps } from "../attempt/rotating-code.ts";
import type { LoginContext } from "../login-context.ts";
import { isStaticCodeOver } from "../attempt/claim.ts";
import { backLocation, type LoginState, stateOf } from "../attempt/login-state.ts";
import { type Locale, pickLocale } from "../../platform/http/pick-locale.ts";
import { isBusinessScope } from "../authorization/scope.ts";

/** Everything that the page of a login shows. Texts that others wrote are escaped only when the page is rendered. */
export interface LoginView {
  readonly loginId: string;
  readonly clientName: string;
  /** The verified domain, or null: then the page says in words that nobody has checked it. */
  readonly clientDomain: string | null;
  readonly scopes: readonly string[];
  readonly locale: Locale;
  readonly nowMs: number;
  /** Unix seconds. */
  readonly expiresAt: number;
  /** `BASE_URL` without a slash at its end. */
  readonly base: string;
  /** One code for the whole login instead of a new one every step (decisions section 2, rule 8). */
  readonly isStatic: boolean;
  /** The single code is too old to be claimed; a login for a business stays open for longer. */
  readonly isCodeOver: boolean;
  /** Step of `macs[0]`; the others follow. A static code has one mac, of step 0. */
  readonly firstStep: number;
  readonly macs: readonly string[];
  readonly sameDeviceLink: string;
  readonly state: LoginState;
  /** The client's redirect URI with `error=access_denied`. */
  readonly backUrl: string;
  readonly isBusiness: boolean;
  /**
   * The client accepts no login by QR code (`acr`), so the page shows no code: every wallet that scans it would be
   * refused.
   */
  readonly isSameDeviceOnly: boolean;
  /** The same request may be started again. */
  readonly canRestart: boolean;
}

/** Everything that the page of an attempt shows. */
export function viewOf(
  ctx: LoginContext,
  { attempt, client }: { attempt: Attempt; client: Client },
  acceptLanguage: string | undefined,
): LoginView {
  const { firstStep, macs } = pageSteps(ctx.keys.hmac("login-code"), attempt);
  return {
    loginId: attempt.id,
    clientName: client.name,
    clientDomain: client.domain,
    scopes: attempt.request.scope.split(" "),
    locale: pickLocale(attempt.request.uiLocales, acceptLanguage),
    nowMs: ctx.clock.nowMs(),
    expiresAt: attempt.expiresAt,
    base: ctx.config.baseUrl,
    isStatic: attempt.isStatic,
    isCodeOver: attempt.isStatic && isStaticCodeOver(ctx, attempt),
    firstStep,
    macs,
    sameDeviceLink: sameDeviceLink(ctx.config.baseUrl, attempt.id),
    state: stateOf(ctx, attempt),
    backUrl: backLocation(ctx, attempt),
    isBusiness: isBusinessScope(attempt.request.scope),
    isSameDeviceOnly: attempt.request.acrMinimum === "urn:svc:acr:same-device",
    canRestart: attempt.restarts < restartsMax,
  };
}
