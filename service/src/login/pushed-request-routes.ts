import { Type } from "@fastify/type-provider-typebox";
import { type Http, useOAuthErrors } from "../platform/http.ts";
import { authenticateClientOnce } from "./client-authentication.ts";
import type { LoginContext } from "./login-context.ts";
import { pushRequest } from "./pushed-request.ts";
import { OAuthErrorBody } from "./token-schemas.ts";
import { clientCallOf } from "./token-routes.ts";

/** Judged one by one in `authorization-request.ts`, as at the authorization endpoint itself. */
const PushedForm = Type.Record(
  Type.String(),
  Type.Union([Type.String(), Type.Array(Type.String())]),
);
const PushedBody = Type.Object({ request_uri: Type.String(), expires_in: Type.Integer() });

/** `POST /oauth2/par` (RFC 9126); server to server, so it never answers another origin. */
export async function pushedRequestRoutes(ctx: LoginContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    useOAuthErrors(ctx, scope);
    scope.removeContentTypeParser("application/json");
    const schema = {
      body: PushedForm,
      response: { 201: PushedBody, 400: OAuthErrorBody, 401: OAuthErrorBody },
      consumes: ["application/x-www-form-urlencoded"],
      tags: ["login"],
      summary: "Push an authorization request (RFC 9126)",
    };
    scope.post("/oauth2/par", { schema }, async (request, reply) => {
      const client = await authenticateClientOnce(ctx, clientCallOf(ctx, request));
      const pushed = await pushRequest(ctx, client, request.body);
      return reply.code(201).headers({ "cache-control": "no-store" }).send(pushed);
    });
  });
}
