import type { Client } from "../../accounts/index.ts";
import type { Random } from "../../platform/context.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import { Problem } from "../../platform/http/problems.ts";
import { type Attempt, restartsMax } from "./attempt.ts";
import * as store from "./attempt-store.ts";
import { type BrowserCall, newAttempt } from "./new-attempt.ts";
import {
  attemptSecretHash,
  restartedAttemptCookie,
  secondPressSeconds,
} from "./browser-cookies.ts";
import { getClient, readAttempt } from "./read-attempt.ts";
import { endAttempt } from "./end-attempt.ts";
import type { LoginContext } from "../login-context.ts";
import { backLocation } from "./login-state.ts";

/** The attempt and its client, for the browser that started it. @throws {Problem} login_not_found for any other */
export async function getBrowserAttempt(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<{ attempt: Attempt; client: Client }> {
  const attempt = await readAttempt(ctx, loginId);
  if (!isStartedBy(ctx, attempt, browser)) throw new Problem("login_not_found");
  return { attempt, client: await getClient(ctx, attempt) };
}

/** Whether the browser holds the cookie that it got when it started the login. */
export function isStartedBy(
  ctx: LoginContext,
  attempt: Pick<Attempt, "id" | "browserSha256">,
  browser: BrowserCall,
): boolean {
  const held = attemptSecretHash(ctx.config, browser.cookieHeader, attempt.id);
  return held !== null && equalBytes(held, attempt.browserSha256);
}

/**
 * Switches the page to a single code without scripts, for good; if it is too late for that, the page says what
 * happened.
 *
 * @throws {Problem} login_not_found
 */
export async function showStaticCode(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<void> {
  await getBrowserAttempt(ctx, loginId, browser);
  await store.makeStatic(ctx.db, loginId, ctx.clock.now());
  ctx.recent.forget(loginId);
}

/**
 * Restarts the same request as a new login. Pressing the button twice leads to one login, and both answers set its
 * cookie, because browsers drop the answer to the first press.
 *
 * @returns null if the login was finished, refused, or restarted too often
 * @throws {Problem} login_not_found
 */
export async function restartLogin(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<{ loginId: string; cookies: readonly string[] } | null> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  const { scope } = attempt.request;
  const random = randomOfSuccessor(ctx, attempt);
  const fresh = newAttempt(ctx, browser, { scope, replacedId: loginId, random });
  const next = { ...fresh.attempt, restartsMax };
  const isRestarted = await store.restartAttempt(ctx.db, attempt.id, next);
  ctx.recent.forget(loginId);
  // A failed login was counted when it failed.
  if (isRestarted && attempt.status !== "failed") ctx.metrics.logins.inc({ outcome: "restarted" });
  if (!isRestarted && !(await isJustMade(ctx, next.id))) return null;
  const left = restartedAttemptCookie(ctx.config, browser.cookieHeader, loginId);
  // A browser that has the cookie keeps it unchanged: the new login may be finished by now, which marked its cookie as
  // the first to be evicted.
  const made = isStartedBy(ctx, next, browser) ? [] : fresh.cookies;
  return { loginId: next.id, cookies: [...made, left] };
}

/**
 * Random bytes for the restarted login: unpredictable to others, and the same whenever this login's browser restarts
 * it.
 */
function randomOfSuccessor(
  ctx: LoginContext,
  { id, browserSha256 }: Attempt,
): Pick<Random, "bytes"> {
  let drawn = 0;
  return {
    bytes(length) {
      drawn += 1;
      const content = `${id} ${browserSha256.toString("base64url")} ${drawn}`;
      return ctx.keys.mac("login-restart", content).subarray(0, length);
    },
  };
}

async function isJustMade(ctx: LoginContext, loginId: string): Promise<boolean> {
  const made = await store.findAttempt(ctx.db, loginId);
  return made !== null && ctx.clock.now() - made.createdAt < secondPressSeconds;
}

/**
 * The person gives up while other members are being asked; their ballot ends too.
 *
 * @returns where to go, or null for a login that waits for no members
 */
export async function giveUpGathering(
  ctx: LoginContext,
  loginId: string,
  browser: BrowserCall,
): Promise<string | null> {
  const { attempt } = await getBrowserAttempt(ctx, loginId, browser);
  if (attempt.status !== "gathering") return null;
  await endAttempt(ctx, attempt, "declined");
  return backLocation(ctx, attempt);
}
