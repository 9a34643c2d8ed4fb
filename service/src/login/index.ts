import type { Ctx } from "../platform/context.ts";
import type { Clients } from "../accounts/index.ts";
import type { Http } from "../platform/http.ts";
import { authorizeRoutes } from "./authorize-routes.ts";
import type { LoginContext } from "./login-context.ts";
import { openLoginFeed } from "./login-feed.ts";
import { endLogin, listLogins } from "./login-list.ts";
import { createRecentAttempts } from "./recent-attempts.ts";
import { openSigningKeys } from "./signing-keys.ts";
import { createStatusStreams } from "./status-stream.ts";
import { loginWalletRoutes } from "./wallet-routes.ts";

export { endLogin, listLogins, loginWalletRoutes };
export type { LoginContext };

/** Opens what the login slice keeps in memory: signing keys and recent attempts, both read again when they change. */
export async function openLogin(ctx: Ctx & { readonly clients: Clients }): Promise<LoginContext> {
  return { ...ctx, signingKeys: await openSigningKeys(ctx), recent: createRecentAttempts() };
}

/** Adds the routes of browsers, and ends their status streams before the server closes. */
export async function addBrowserRoutes(ctx: LoginContext, http: Http): Promise<void> {
  const feed = await openLoginFeed(ctx);
  const streams = createStatusStreams(ctx, feed);
  await authorizeRoutes(ctx, http, streams);
  http.addHook("preClose", async () => {
    streams.close();
    feed.close();
  });
}
