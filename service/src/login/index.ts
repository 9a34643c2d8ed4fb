import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import type { Job } from "../platform/jobs.ts";
import { browserRoutes } from "./browser-routes.ts";
import type { BusinessDirectory } from "./business/business-directory.ts";
import type { LoginContext as BaseContext, SignatureVerifier } from "./login-context.ts";
import { openLoginFeed } from "./attempt/login-feed.ts";
import { endLogin, listLogins } from "./session/login-list.ts";
import { pushedRequestRoutes } from "./authorization/pushed-request-routes.ts";
import { createRecentAttempts } from "./attempt/recent-attempts.ts";
import { retentionJobs } from "./retention.ts";
import { openLiveClaims } from "./token/live-claims.ts";
import { createRefreshSuccessors, type RefreshSuccessors } from "./token/refresh-successors.ts";
import { ensureKeys, openSigningKeys } from "./keys/signing-keys.ts";
import { createStatusStreams } from "./attempt/status-stream.ts";
import { tokenJobs } from "./token/token-jobs.ts";
import { tokenRoutes } from "./token/token-routes.ts";
import { loginWalletRoutes } from "./attempt/wallet-routes.ts";

export { endLogin, listLogins, loginWalletRoutes };
export {
  businessLoginRules,
  endBusinessLogins,
  renewBusinessDomain,
} from "./business/business-login.ts";
export { listSigningKeys, revokeSigningKey, rotateSigningKey } from "./keys/manage-signing-keys.ts";
export { deleteUser } from "./user-deletion.ts";
export { reportLogins } from "./user-report.ts";
export { listLoggedIn, logOutUser } from "./user-logout.ts";
export { keyPurposes } from "./keys/signing-key.ts";
export { limitContractSignatures } from "./contract-signature-limits.ts";
export { signRequestObject } from "./attempt/request-object.ts";
export { signingKeyColumn } from "./keys/signing-keys.ts";

/** The login slice of one process. */
export type Login = BaseContext & { readonly successors: RefreshSuccessors };

/** Opens what the slice keeps in memory: signing keys, recent attempts; all of it is read again when it changes. */
export async function openLogin(
  ctx: Ctx &
    SignatureVerifier & { readonly clients: Clients; readonly businesses: BusinessDirectory },
): Promise<Login> {
  await ensureKeys(ctx);
  return {
    ...ctx,
    signingKeys: await openSigningKeys(ctx),
    recent: createRecentAttempts(),
    successors: createRefreshSuccessors(ctx),
    ...openLiveClaims(ctx),
  };
}

/** Adds the routes of browsers, and ends their status streams before the server closes. */
export async function addBrowserRoutes(ctx: Login, http: Http): Promise<void> {
  const feed = await openLoginFeed(ctx);
  const streams = createStatusStreams(ctx, feed);
  await browserRoutes(ctx, http, streams);
  await pushedRequestRoutes(ctx, http);
  http.addHook("preClose", async () => {
    streams.close();
    feed.close();
  });
}

export async function addTokenRoutes(ctx: Login, http: Http): Promise<void> {
  await tokenRoutes(ctx, http, { successors: ctx.successors });
}

export function loginJobs(ctx: Login): readonly Job[] {
  return [...tokenJobs(ctx, ctx.successors), ...retentionJobs(ctx)];
}
