import type { Static } from "../../platform/http/schema.ts";
import { Type } from "../../platform/http/schema.ts";
import type { FastifyReply, FastifyRequest } from "fastify";
import { callerAddressOf } from "../../platform/http/client-address.ts";
import type { Http } from "../../platform/http/http.ts";
import { useOAuthErrors } from "../../platform/http/http-errors.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { type Publication, publish } from "../../platform/http/published-document.ts";
import { oauthRefusals } from "../../platform/http/refusals.ts";
import type { ClientCall } from "../client/client-authentication.ts";
import { allowClientOrigins, createRegisteredOrigins } from "./cors.ts";
import { discoveryDocument, introspectionPath, revocationPath } from "./discovery.ts";
import { introspect } from "./introspection.ts";
import { logoutRoutes } from "../session/logout-routes.ts";
import { revoke } from "./revocation.ts";
import type { TokenContext } from "../token-context.ts";
import { answerTokenCall } from "./token.ts";
import { tokenPath } from "./token-request.ts";
import {
  anyClient,
  IntrospectionBody,
  TokenBody,
  TokenForm,
  TokenNameForm,
  UserinfoBody,
  UserinfoForm,
} from "./token-schemas.ts";
import { readUserinfo, userinfoPath } from "./userinfo.ts";

const consumes = ["application/x-www-form-urlencoded"];
const tags = ["login"];
const bodyFailures = oauthRefusals({
  401: ["invalid_client"],
  413: ["invalid_request"],
  429: ["temporarily_unavailable"],
});
const failures = { ...oauthRefusals({ 400: ["invalid_request"] }), ...bodyFailures };
const tokenFailures = {
  ...oauthRefusals({
    400: [
      "invalid_request",
      "invalid_grant",
      "invalid_scope",
      "invalid_target",
      "unauthorized_client",
      "unsupported_grant_type",
      "invalid_dpop_proof",
    ],
  }),
  ...bodyFailures,
};
const userinfoFailures = oauthRefusals({
  400: ["invalid_request"],
  401: ["invalid_token", "invalid_dpop_proof"],
  403: ["insufficient_scope"],
});

/** Adds everything but the authorization endpoint: tokens, what is said about them, discovery, logout. */
export async function tokenRoutes(ctx: TokenContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    useOAuthErrors(ctx, scope);
    // Only forms (RFC 6749 section 4.1.3).
    scope.removeContentTypeParser("application/json");
    const paths = [tokenPath, revocationPath, userinfoPath];
    allowClientOrigins(ctx, scope, { paths, origins: createRegisteredOrigins(ctx) });
    tokenRoute(ctx, scope);
    introspectionRoute(ctx, scope);
    revocationRoute(ctx, scope);
    await scope.register(async (resource: Http) => userinfoRoutes(ctx, resource));
  });
  await http.register(async (scope: Http) => logoutRoutes(ctx, scope));
  documentRoutes(ctx, http);
}

/** How a client presents itself in this request. */
export function clientCallOf(ctx: TokenContext, request: FastifyRequest): ClientCall {
  return {
    form: request.body as Form,
    authorization: request.headers.authorization,
    address: callerAddressOf(ctx, request),
  };
}

/** The `DPoP` header. */
export function dpopOf(request: FastifyRequest): string | undefined {
  const header = request.headers["dpop"];
  return header === undefined ? undefined : String(header);
}

function tokenRoute(ctx: TokenContext, scope: Http): void {
  const summary = "Exchange a code or refresh token, or client credentials, for tokens";
  const schema = {
    body: TokenForm,
    response: { 200: TokenBody, ...tokenFailures },
    consumes,
    tags,
    security: anyClient,
    operationId: "exchangeToken",
    summary,
  };
  scope.post(tokenPath, { schema }, async (request, reply) => {
    const call = { ...clientCallOf(ctx, request), dpop: dpopOf(request) };
    const tokens = await answerTokenCall(ctx, call);
    return reply.header("pragma", "no-cache").send(tokens);
  });
}

function introspectionRoute(ctx: TokenContext, scope: Http): void {
  const summary = "Whether a token is good";
  const response = { 200: IntrospectionBody, ...failures };
  const operationId = "introspectToken";
  const schema = { body: TokenNameForm, response, consumes, tags, operationId, summary };
  scope.post(introspectionPath, { schema }, async (request, reply) => {
    const found = await introspect(ctx, clientCallOf(ctx, request));
    return reply.header("pragma", "no-cache").send(found as Static<typeof IntrospectionBody>);
  });
}

function revocationRoute(ctx: TokenContext, scope: Http): void {
  const summary = "Revoke a token and everything issued with it";
  const response = {
    200: Type.Null({ description: "The token is revoked, or was never one of this client's." }),
    ...failures,
  };
  const schema = {
    body: TokenNameForm,
    response,
    consumes,
    tags,
    security: anyClient,
    operationId: "revokeToken",
    summary,
  };
  scope.post(revocationPath, { schema }, async (request, reply) => {
    await revoke(ctx, clientCallOf(ctx, request));
    return (reply as FastifyReply).header("pragma", "no-cache").code(200).send();
  });
}

function userinfoRoutes(ctx: TokenContext, scope: Http): void {
  useOAuthErrors(ctx, scope, { challenge: "Bearer" });
  const summary = "Who the user behind an access token is";
  const response = { 200: UserinfoBody, ...userinfoFailures };
  const onQuery = { response, tags, operationId: "getUserinfo", summary };
  scope.get(userinfoPath, { schema: onQuery }, async (request, reply) =>
    reply.header("pragma", "no-cache").send(await userinfoOf(ctx, request)),
  );
  // The body is optional: the token may stand in the header (RFC 6750 section 2).
  const body = Type.Union([UserinfoForm, Type.Null()]);
  const onForm = {
    body,
    response: { ...response, ...oauthRefusals({ 413: ["invalid_request"] }) },
    consumes,
    tags,
    operationId: "getUserinfoByForm",
    summary,
  };
  scope.post(userinfoPath, { schema: onForm }, async (request, reply) =>
    reply.header("pragma", "no-cache").send(await userinfoOf(ctx, request)),
  );
}

async function userinfoOf(
  ctx: TokenContext,
  request: FastifyRequest,
): Promise<Static<typeof UserinfoBody>> {
  return readUserinfo(ctx, {
    method: request.method === "GET" ? "GET" : "POST",
    authorization: request.headers.authorization,
    dpop: dpopOf(request),
    form: (request.body ?? {}) as Form,
    query: request.query as Form,
  });
}

function documentRoutes(ctx: TokenContext, http: Http): void {
  const discovery = discoveryDocument(ctx.config);
  const documents: readonly Omit<Publication, "tag">[] = [
    {
      name: "openid-configuration",
      read: () => discovery,
      operationId: "getOpenidConfiguration",
      summary: "OpenID Connect Discovery",
    },
    {
      name: "oauth-authorization-server",
      read: () => discovery,
      operationId: "getAuthorizationServerMetadata",
      summary: "Authorization server metadata (RFC 8414)",
    },
    {
      name: "jwks.json",
      read: () => ctx.signingKeys.keySet("login"),
      operationId: "getJwks",
      summary: "Keys of id and access tokens",
    },
    {
      name: "wallet-jwks.json",
      read: () => ctx.signingKeys.keySet("wallet"),
      operationId: "getWalletJwks",
      summary: "Keys of request objects for wallets",
    },
  ];
  for (const document of documents) publish(http, { ...document, tag: "login" });
}
