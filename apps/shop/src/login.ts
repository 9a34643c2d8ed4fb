import { MerchantError, type Login, type Merchant } from "@svc/merchant";

import type { Cookies } from "./cookies.ts";
import type { Sessions } from "./sessions.ts";
import { redirect, type Reply, type Visit } from "./web.ts";

/** What the shop works with. */
export interface Desk {
  url: string;
  merchant: Merchant;
  now: () => number;
  sessions: Sessions;
  cookies: Cookies;
  onFault: (error: unknown) => void;
}

/** "Log in": off to the broker. What the callback needs to know is kept in a sealed cookie of this browser. */
export async function startLogin({ merchant, cookies }: Desk, visit: Visit): Promise<Reply> {
  const { url, ...pending } = await merchant.login.start();
  return redirect(url, cookies.rememberLogin(visit.cookies, pending));
}

/** The broker sent the browser back: check everything, then open a session under a new id. */
export async function finishLogin(
  { merchant, cookies, sessions }: Desk,
  visit: Visit,
): Promise<Reply> {
  const pending = cookies.recallLogin(visit.cookies, visit.url.searchParams.get("state"));
  if (pending === null) throw new MerchantError("state_mismatch");
  const login = await merchant.login.finish(visit.url, pending);
  sessions.close(cookies.sessionId(visit.cookies));
  const home = login.business === undefined ? "/" : "/company";
  return redirect(home, [cookies.session(sessions.open(login)), cookies.forgetLogin(pending)]);
}

/** Who is logged in here; null for a guest. */
export function currentLogin({ cookies, sessions }: Desk, visit: Visit): Login | null {
  return sessions.find(cookies.sessionId(visit.cookies));
}

/** "Refresh": new tokens for the same person. */
export async function refreshLogin(desk: Desk, visit: Visit): Promise<Reply> {
  const login = currentLogin(desk, visit);
  if (login?.refreshToken !== undefined) await renewTokens(desk, visit, login);
  return redirect("/");
}

/** The old refresh token is used up, so the new one replaces it. */
async function renewTokens(
  { merchant, cookies, sessions }: Desk,
  visit: Visit,
  login: Login,
): Promise<Login> {
  const id = cookies.sessionId(visit.cookies);
  const { refreshToken, subject } = login;
  const known = sessions.find(id);
  // Another page has renewed them meanwhile: the broker would take a second use for theft, and end the login.
  if (known !== null && known !== login) return known;
  try {
    if (refreshToken === undefined) throw new MerchantError("grant_refused");
    const fresh = await merchant.login.refresh(refreshToken, { subject });
    sessions.renew(id, fresh);
    return fresh;
  } catch (error) {
    // The person ended this login in the wallet, or it is too old: here it ends, too.
    if (isRefused(error)) sessions.close(id);
    throw error;
  }
}

/**
 * Who acts here for a company, according to the broker at this moment: a member may have left since the login, and then
 * its tokens are no longer valid. Null for a guest and for a person alone.
 */
export async function currentMember(desk: Desk, visit: Visit): Promise<Login | null> {
  const login = currentLogin(desk, visit);
  if (login?.business === undefined) return null;
  try {
    await desk.merchant.login.userinfo(login.accessToken, { subject: login.subject });
    return login;
  } catch (error) {
    if (!isRefused(error)) throw error;
  }
  try {
    // Perhaps only the access token's hour is over.
    return await renewTokens(desk, visit, login);
  } catch (error) {
    if (!isRefused(error)) throw error;
    return null;
  }
}

const refusals = new Set([
  "access_token_refused",
  "grant_refused",
  "subject_changed",
  "token_refused",
]);

function isRefused(error: unknown): boolean {
  return error instanceof MerchantError && refusals.has(error.code);
}

/**
 * "Log out": here at once, then at the broker. A guest here may still be logged in there, if an earlier press was not
 * answered or our session ended first. Without an id token the broker asks whoever is logged in there.
 */
export async function logOut(desk: Desk, visit: Visit): Promise<Reply> {
  const { merchant, cookies, sessions, url } = desk;
  const login = currentLogin(desk, visit);
  sessions.close(cookies.sessionId(visit.cookies));
  const forgotten = [cookies.endSession()];
  try {
    if (login?.refreshToken !== undefined) await merchant.login.revoke(login.refreshToken);
    const target = await merchant.login.logoutUrl({
      ...(login !== null && { idToken: login.idToken }),
      postLogoutRedirectUri: `${url}/`,
    });
    return redirect(target, forgotten);
  } catch (error) {
    // The broker cannot be reached: the person is logged out here all the same.
    desk.onFault(error);
    return redirect("/", forgotten);
  }
}

/** The login ended elsewhere, in the wallet for instance: the broker tells us, and we end the sessions it names. */
export async function logOutByBroker(
  { merchant, sessions, now }: Desk,
  visit: Visit,
): Promise<Reply> {
  const form = await visit.form();
  try {
    const token = form.get("logout_token") ?? "";
    sessions.closeAll(await merchant.login.verifyLogoutToken(token, { now: now() }));
    return { status: 200 };
  } catch (error) {
    if (!(error instanceof MerchantError) || error.code !== "token_refused") throw error;
    return {
      status: 400,
      headers: { "content-type": "application/json" },
      body: '{"error":"invalid_request"}',
    };
  }
}
