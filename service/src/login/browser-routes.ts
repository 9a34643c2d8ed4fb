import type { Http } from "../platform/http/http.ts";
import { pageRoutes, statusRoutes } from "./attempt/page-routes.ts";
import { sameDeviceRoutes } from "./attempt/same-device-routes.ts";
import type { StatusStreams } from "./attempt/status-stream.ts";
import { authorizeRoutes } from "./authorization/authorize-routes.ts";
import type { LoginContext } from "./login-context.ts";
import { assetRoutes } from "./page/asset-routes.ts";
import { showError } from "./page/page-replies.ts";

/** The routes that a browser meets while a person logs in. */
export async function browserRoutes(
  ctx: LoginContext,
  http: Http,
  streams: StatusStreams,
): Promise<void> {
  await http.register(async (scope: Http) => {
    // Every failure is a page: a redirect before the redirect URI is verified would make this an open redirector.
    scope.setErrorHandler((error, request, reply) => showError(ctx, { error, request, reply }));
    // Only forms (OpenID Connect Core section 3.1.2.1): a JSON body could carry values other than strings, and
    // `takeAnyForm` checks no types.
    scope.removeContentTypeParser("application/json");
    authorizeRoutes(ctx, scope);
    pageRoutes(ctx, scope);
    sameDeviceRoutes(ctx, scope);
  });
  await http.register(async (scope: Http) => statusRoutes(ctx, scope, streams));
  assetRoutes(http);
}
