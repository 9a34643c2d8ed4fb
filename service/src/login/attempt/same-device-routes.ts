import { signatureCharactersMax } from "@svc/protocol";
import type { Http } from "../../platform/http/http.ts";
import { invalidRequest, Problem } from "../../platform/http/problems.ts";
import { type Static, Type } from "../../platform/http/schema.ts";
import { readBusinessPart } from "../business/business-part.ts";
import type { LoginContext } from "../login-context.ts";
import { browserOf, leave } from "../page/page-replies.ts";
import { pagePathOf } from "./attempt.ts";
import { finishLogin } from "./finish.ts";
import { LoginParams } from "./page-routes.ts";
import { refuseOnSameDevice, type Returned, returnOnSameDevice } from "./same-device.ts";
import { WalletRefusal } from "./wallet-refusal.ts";

const Whole = Type.String({ pattern: "^(0|[1-9][0-9]{0,14})$" });
const ReturnQuery = Type.Object({
  signature: Type.Optional(Type.String({ maxLength: signatureCharactersMax })),
  session: Type.Optional(Type.String({ maxLength: 100 })),
  svcID: Type.Optional(Type.String({ maxLength: 100 })),
  business: Type.Optional(Type.String({ maxLength: 100 })),
  epoch: Type.Optional(Whole),
  validUntil: Type.Optional(Whole),
  approval: Type.Optional(Type.String({ maxLength: 200 })),
  error: Type.Optional(WalletRefusal),
});

/** The business that the wallet's link names; undefined if it names none, or not every part of it. */
function businessOf({
  business: address,
  epoch,
  validUntil,
  approval,
}: Static<typeof ReturnQuery>): Returned["business"] {
  if (address === undefined || epoch === undefined) return undefined;
  if (validUntil === undefined || approval === undefined) return undefined;
  return readBusinessPart({
    address,
    epoch: Number(epoch),
    validUntil: Number(validUntil),
    approval,
  });
}

/**
 * Where the wallet sends the browser on the same device. Once its answer is consumed, the browser is redirected to the
 * bare address, which carries no signature. That redirect is absolute: programs that stand in for a browser compare it
 * with `conn`, or parse it without a base.
 */
export function sameDeviceRoutes(ctx: LoginContext, scope: Http): void {
  const { baseUrl } = ctx.config;
  scope.get(
    "/w/b/:loginId",
    { schema: { params: LoginParams, querystring: ReturnQuery, hide: true } },
    async (request, reply) => {
      const { loginId } = request.params;
      const { signature, session, svcID, error } = request.query;
      const browser = browserOf(ctx, request);
      if (error !== undefined) {
        if (session !== loginId) throw new Problem("login_not_found");
        return leave(reply, await refuseOnSameDevice(ctx, loginId, browser));
      }
      if (signature === undefined && session === undefined && svcID === undefined) {
        const released = await finishLogin(ctx, loginId, { browser, channel: "app-link" });
        return leave(reply, released.location, released.cookies);
      }
      if (signature === undefined || session === undefined || svcID === undefined)
        throw invalidRequest("signature, session and svcID are required together");
      const outcome = await returnOnSameDevice(ctx, loginId, {
        returned: { signature, session, svcID, business: businessOf(request.query) },
        browser,
      });
      const next = outcome === "waiting" ? pagePathOf(loginId) : `/w/b/${loginId}`;
      return leave(reply, `${baseUrl}${next}`);
    },
  );
}
