import type { Client } from "../../accounts/index.ts";
import { type Attempt, restartsMax, sameDeviceLink } from "../attempt/attempt.ts";
import { pageSteps } from "../attempt/rotating-code.ts";
import type { LoginContext } from "../login-context.ts";
import { isStaticCodeOver } from "../attempt/claim.ts";
import { backLocation, stateOf } from "../attempt/login-state.ts";
import { type LoginView, pickLocale } from "./pages.ts";
import { isBusinessScope } from "../authorization/scope.ts";

/** Everything that the page of an attempt shows. */
export function viewOf(
  ctx: LoginContext,
  { attempt, client }: { attempt: Attempt; client: Client },
  acceptLanguage: string | undefined,
): LoginView {
  const state = stateOf(ctx, attempt);
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
    state,
    contested: attempt.isContested,
    backUrl: backLocation(ctx, attempt),
    isBusiness: isBusinessScope(attempt.request.scope),
    isSameDeviceOnly: attempt.request.acrMinimum === "urn:svc:acr:same-device",
    canRestart: attempt.restarts < restartsMax,
  };
}
