import { uuidv7 } from "../../platform/ids.ts";
import { Problem } from "../../platform/http/problems.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { makeCode } from "../token/authorization-code.ts";
import { type Channel, codeLocation, isTimeOver, pagePathOf } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import type { BrowserCall } from "./new-attempt.ts";
import { getBrowserAttempt } from "./browser-attempt.ts";
import {
  attemptSecretHash,
  finishedAttemptCookie,
  sessionCookie,
  sessionSecretHash,
} from "./browser-cookies.ts";
import type { LoginContext } from "../login-context.ts";

export interface Released {
  readonly location: string;
  readonly cookies: readonly string[];
}

/**
 * Releases the code to the browser that started the login, once.
 *
 * @throws {Problem} login_not_found, login_over (also where the client lost its redirect URI, or was disabled), not_claimed
 * (while nobody has approved)
 */
export async function finishLogin(
  ctx: LoginContext,
  loginId: string,
  { browser, channel }: { browser: BrowserCall; channel: Channel },
): Promise<Released> {
  const browserSha256 = attemptSecretHash(ctx.config, browser.cookieHeader, loginId);
  if (browserSha256 === null) throw new Problem("login_not_found");
  const now = ctx.clock.now();
  const code = makeCode(ctx.random, loginId);
  const session = {
    id: uuidv7(ctx.clock, ctx.random),
    secret: ctx.random.bytes(32).toString("base64url"),
  };
  const request = await store.finishAttempt(ctx.db, loginId, {
    now,
    browserSha256,
    channel,
    codeSha256: code.sha256,
    codeExpiresAt: now + ctx.config.codeLifetimeSeconds,
    sessionId: session.id,
    sessionSecretSha256: sha256(session.secret),
    presentedSecretSha256: sessionSecretHash(ctx.config, browser.cookieHeader),
    sessionIdleSeconds: ctx.config.sessionIdleSeconds,
    sessionAbsoluteSeconds: ctx.config.sessionAbsoluteSeconds,
  });
  ctx.recent.forget(loginId);
  if (request === null) return refuseFinish(ctx, loginId, { browser, channel });
  ctx.metrics.logins.inc({ outcome: "finished" });
  return {
    location: codeLocation(request, ctx.config.baseUrl, code.text),
    // The attempt's cookie lives a little longer: a form that was sent twice still finds its page, which leads on.
    cookies: [
      sessionCookie(ctx.config, session.secret),
      finishedAttemptCookie(ctx.config, browser.cookieHeader, loginId),
    ],
  };
}

async function refuseFinish(
  ctx: LoginContext,
  loginId: string,
  { browser, channel }: { browser: BrowserCall; channel: Channel },
): Promise<Released> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.status === "gathering" && channel === "app-link")
    return { location: pagePathOf(loginId), cookies: [] };
  if (attempt.channel !== null && attempt.channel !== channel) throw new Problem("wrong_channel");
  const isOpen =
    ["waiting", "claimed", "gathering"].includes(attempt.status) &&
    !isTimeOver(attempt, ctx.clock.now());
  if (isOpen) throw new Problem("not_claimed", { message: "this login is not approved yet" });
  throw new Problem("login_over");
}
