import fastify, { type FastifySchema, type RouteOptions } from "fastify";
import type { Ctx } from "../context.ts";
import type { Http } from "./http.ts";
import { lazySchemas } from "./lazy-schemas.ts";
import { nameTypes } from "./named-types.ts";
import { asGeneratorsReadIt } from "./openapi-for-generators.ts";
import type { OAuthCode, Reason } from "./problems.ts";
import { routeTags } from "./route-tags.ts";
import { Type } from "./schema.ts";
import { describeWebhooks, webhookTag, type WebhookAbout } from "./webhook-document.ts";

/** Answers that are given before a route is found or runs, and so are not listed at any route. */
export const answersOfAnyRoute =
  "In addition to the answers listed, any route may answer 500 and 503, and any path 404, or 405 with `Allow`. A request that cannot be read gets 400 `malformed_request`; one whose body has a `Content-Encoding` gets 415; one that arrives too slowly gets 408 `request_timeout`; one with too long an address and header lines gets 431 `headers_too_large`.";

/**
 * Serves `/openapi.json`: every route that is added from now on, from the schemas that check its requests, and every
 * event that they add to `http.webhooks`.
 */
export function describeRoutes(http: Http, ctx: Pick<Ctx, "config">): void {
  const routes: RouteOptions[] = [];
  const webhooks: WebhookAbout[] = [];
  http.decorate("webhooks", webhooks);
  http.addHook("onRoute", (route) => {
    routes.push(route);
  });
  // A buffer, which all connections share while they read; of a string, each would have a copy.
  let document: Promise<Buffer> | undefined;
  const write = async (): Promise<Buffer> =>
    Buffer.from(await writeDocument({ routes, webhooks, baseUrl: ctx.config.baseUrl }));
  http.get(
    "/openapi.json",
    { exposeHeadRoute: true, schema: { hide: true } },
    async (_request, reply) => {
      document ??= write().catch((error: unknown) => {
        document = undefined;
        throw error;
      });
      return reply
        .type("application/json")
        .header("cache-control", "public, max-age=300")
        .send(await document);
    },
  );
}

const handler = (): void => undefined;

/** How a caller authenticates (service document, Authentication). */
const securitySchemes = {
  key: {
    type: "apiKey",
    in: "header",
    name: "Authorization",
    description:
      'An API key, or below `/api/v1/issuer` an issuer\'s key, without `Bearer`. A 401 answer has the challenge `ApiKey realm="svc"`.',
  },
  oauthClient: {
    type: "http",
    scheme: "basic",
    description:
      "A client's id and secret. Clients that use another method authenticate in the form.",
  },
  accessToken: { type: "http", scheme: "bearer", description: "The access token of a login." },
  walletSession: { type: "http", scheme: "bearer", description: "The token of `POST /w/session`." },
} as const;

/** The refusals that show that a route authenticates its callers. */
const schemeOfRefusal = {
  apikey_missing: "key",
  invalid_client: "oauthClient",
  invalid_token: "accessToken",
  wallet_session_required: "walletSession",
} as const satisfies Partial<Record<Reason | OAuthCode, keyof typeof securitySchemes>>;

const idempotencyKey = Type.String({
  minLength: 1,
  maxLength: 255,
  pattern: "^[!-~]+$",
  description:
    "1 to 255 visible ASCII characters. For 24 hours, a repeat of the call with the same key gets the same answer; a call that changes nothing is always answered anew.",
});

const dpopProof = Type.String({
  description:
    "A DPoP proof (RFC 9449), signed with ES256 or RS256. Tokens issued with a proof are bound to its key; such a token is accepted only with a proof, and with `DPoP` instead of `Bearer` in `Authorization`.",
});

/** Adds who may call a route and which headers it reads: both follow from its refusals, unless its schema says so. */
function withCaller(schema: FastifySchema): FastifySchema {
  const refuses = refusedBy(schema);
  const named = Object.entries(schemeOfRefusal).find(([refusal]) => refuses(refusal));
  const key = refuses("idempotency_key_required") ? idempotencyKey : Type.Optional(idempotencyKey);
  const headers = {
    ...(refuses("idempotency_key_conflict") ? { "idempotency-key": key } : {}),
    ...(refuses("invalid_dpop_proof") ? { dpop: Type.Optional(dpopProof) } : {}),
  };
  return {
    security: named === undefined ? [] : [{ [named[1]]: [] }],
    ...(Object.keys(headers).length === 0 ? {} : { headers: Type.Object(headers) }),
    ...schema,
  };
}

/** Whether a refusal of the route names this reason; the descriptions of its other answers do not count. */
function refusedBy({ response }: FastifySchema): (reason: string) => boolean {
  const answers = Object.entries((response ?? {}) as Record<string, { description?: string }>);
  const told = answers
    .filter(([status]) => /^[45]/.test(status))
    .map(([, { description = "" }]) => description);
  return (reason) => told.some((text) => text.includes(`\`${reason}\``));
}

/**
 * The generator is loaded only when somebody asks for the document: it takes memory and time, and most processes are
 * never asked.
 */
async function writeDocument(given: {
  routes: readonly RouteOptions[];
  webhooks: readonly WebhookAbout[];
  baseUrl: string;
}): Promise<string> {
  const { routes, webhooks, baseUrl } = given;
  const { default: swagger } = await import("@fastify/swagger");
  const catalogue = fastify({
    schemaController: { compilersFactory: lazySchemas },
    exposeHeadRoutes: false,
  });
  await catalogue.register(swagger, {
    openapi: {
      openapi: "3.1.0",
      info: {
        title: "svc",
        version: "1",
        description: `Hosted identity broker: login, verified fields, business identity. ${answersOfAnyRoute}`,
      },
      servers: [{ url: baseUrl }],
      tags: [
        ...Object.entries(routeTags).map(([name, { description }]) => ({ name, description })),
        webhookTag,
      ],
      components: { securitySchemes },
    },
  });
  for (const { method: methods, url, schema = {} } of routes)
    for (const method of [methods].flat())
      catalogue.route({
        method,
        url,
        schema: withCaller(schema),
        handler,
      });
  await catalogue.ready();
  const document = { ...catalogue.swagger(), webhooks: describeWebhooks(webhooks) };
  return JSON.stringify(nameTypes(document), asGeneratorsReadIt);
}
