import type { Clients } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import type { Http } from "../platform/http/http.ts";
import type { Job } from "../platform/jobs.ts";
import { browserRoutes } from "./browser-routes.ts";
import type { BusinessDirectory } from "./business/business-directory.ts";
import type { LoginContext, SignatureVerifier } from "./login-context.ts";
import { openLoginFeed } from "./attempt/login-feed.ts";
import { endLogin, listLogins } from "./session/login-list.ts";
import { pushedRequestRoutes } from "./authorization/pushed-request-routes.ts";
import { createRecentAttempts } from "./attempt/recent-attempts.ts";
import { retentionJobs } from "./retention.ts";
import { createLiveClaims } from "./token/live-claims.ts";
import { createRefreshSuccessors } from "./token/refresh-successors.ts";
import { ensureKeys, openSigningKeys } from "./keys/signing-keys.ts";
import { createStatusStreams } from "./attempt/status-stream.ts";
import { tokenJobs } from "./token/token-jobs.ts";
import { tokenRoutes } from "./token/token-routes.ts";
import { loginWalletRoutes } from "./attempt/wallet-routes.ts";

export { endLogin, listLogins, type LoginContext, loginWalletRoutes, tokenRoutes };
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

/** Opens what the slice keeps in memory: signing keys, recent attempts; all of it is read again when it changes. */
export async function openLogin(
  ctx: Ctx &
    SignatureVerifier & { readonly clients: Clients; readonly businesses: BusinessDirectory },
): Promise<LoginContext> {
  await ensureKeys(ctx);
  return {
    ...ctx,
    signingKeys: await openSigningKeys(ctx),
    recent: createRecentAttempts(),
    successors: createRefreshSuccessors(ctx),
    findLiveClaims: createLiveClaims(ctx),
  };
}

/** Adds the routes of browsers, and ends their status streams before the server closes. */
export async function addBrowserRoutes(ctx: LoginContext, http: Http): Promise<void> {
  const feed = await openLoginFeed(ctx);
  const streams = createStatusStreams(ctx, feed);
  await browserRoutes(ctx, http, streams);
  await pushedRequestRoutes(ctx, http);
  http.addHook("preClose", async () => {
    streams.close();
    feed.close();
  });
}

export function loginJobs(ctx: LoginContext): readonly Job[] {
  return [...tokenJobs(ctx), ...retentionJobs(ctx)];
}
