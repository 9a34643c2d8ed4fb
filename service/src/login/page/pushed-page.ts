import type { Client } from "../../accounts/index.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { Problem } from "../../platform/http/problems.ts";
import type { Attempt } from "../attempt/attempt.ts";
import { firstValueOf } from "../authorization/authorization-request.ts";
import type { BrowserCall } from "../attempt/new-attempt.ts";
import { getBrowserAttempt } from "../attempt/browser-attempt.ts";
import { heldLoginIds } from "../attempt/browser-cookies.ts";
import type { LoginContext } from "../login-context.ts";
import { pushedIdOf } from "../authorization/pushed-request.ts";

/** The most logins of one browser that are examined, since cookies are easy to make up. */
const loginsMax = 8;

/**
 * The login that this browser started with a pushed request that has been used up since, so that a page that is
 * reloaded continues (RFC 9126 section 4). Null for any other browser.
 */
export async function findPushedPage(
  ctx: LoginContext,
  given: Form,
  browser: BrowserCall,
): Promise<{ attempt: Attempt; client: Client } | null> {
  const pushedId = pushedIdOf(firstValueOf(given, "request_uri") ?? "");
  if (pushedId === null) return null;
  for (const loginId of heldLoginIds(ctx.config, browser.cookieHeader).slice(0, loginsMax)) {
    const found = await getBrowserAttempt(ctx, loginId, browser).catch(nullWhereRefused);
    const isMeant =
      found?.attempt.request.pushedId === pushedId && found.client.id === given["client_id"];
    if (isMeant) return found;
  }
  return null;
}

function nullWhereRefused(error: unknown): null {
  if (error instanceof Problem) return null;
  throw error;
}
