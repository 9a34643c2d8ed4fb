import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { NoMembers, Type } from "../../platform/http/schema.ts";
import type { Http } from "../../platform/http/http.ts";
import { refusals } from "../../platform/http/refusals.ts";
import {
  getEndpoint,
  reactivateEndpoint,
  registerEndpoint,
  rotateSecret,
  takeTestPlace,
} from "../../webhooks/index.ts";
import { callerReasons, kybBodyReasons, requireEntitlement } from "../entitlement.ts";
import { announce } from "./events.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";

const path = "/api/v1/kyb/webhook-endpoint";
const changeReasons = [...kybBodyReasons, ...callerReasons, "idempotency_key_conflict"] as const;
const recordMembers = {
  url: Type.String({ description: "The https URL to which all events of businesses are sent." }),
  secretVersion: Type.Integer({
    description: "The version of the newest secret; it only increases.",
  }),
  active: Type.Boolean({
    description:
      "False while the endpoint is in quarantine: events are held until it is reactivated.",
  }),
  createdAt: Type.Integer({ description: "Unix seconds." }),
};
const testEventId = Type.String({ description: "The id of the test event, as in its `event_id`." });
const endpointRecord = Type.Object(recordMembers, {
  title: "WebhookEndpoint",
  description: "The endpoint.",
});
const recordWithSecret = Type.Object(
  {
    ...recordMembers,
    secret: Type.String({
      description:
        "64 hex digits; shown again only to a repeat of the call with the same `Idempotency-Key`.",
    }),
  },
  { title: "WebhookEndpointWithSecret", description: "The endpoint with its new secret." },
);

/**
 * Records in the audit trail who changed the endpoint: a URL that was set with a stolen key stays after the key was
 * revoked, and must be found. Only its host is recorded, since the URL may contain a secret.
 */
async function recordChange(
  ctx: KybContext,
  tx: Queryable,
  { key, verb, url }: { key: ApiKey; verb: string; url?: string },
): Promise<void> {
  await ctx.audit.record(tx, {
    actor: `api-key:${key.id}`,
    action: `webhook-endpoint.${verb}`,
    subject: key.clientDomainId,
    ...(url === undefined ? {} : { details: { host: new URL(url).host } }),
  });
}

/** The KYB webhook endpoint of a client domain (service document, Endpoints; decisions section 6). */
export async function endpointRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    registerRoute(ctx, scope);
    getRoute(ctx, scope);
    rotateRoute(ctx, scope);
    reactivateRoute(ctx, scope);
    testRoute(ctx, scope);
  });
}

function registerRoute(ctx: KybContext, scope: Http): void {
  scope.put(
    path,
    {
      schema: {
        operationId: "registerWebhookEndpoint",
        summary: "Register or replace the webhook endpoint",
        description:
          "Earlier secrets end at once. A quarantine ends too: held events are sent to the new address.",
        tags: ["kyb"],
        body: Type.Object(
          {
            url: Type.String({
              description: "An https URL with a public host, without userinfo and fragment.",
            }),
          },
          { additionalProperties: false },
        ),
        response: { 200: recordWithSecret, ...refusals(...changeReasons) },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      const given = { clientDomainId: key.clientDomainId, url: request.body.url };
      return idempotently(ctx, { request, reply }, async (tx) => {
        const body = await registerEndpoint(ctx, tx, given);
        await recordChange(ctx, tx, { key, verb: "register", url: body.url });
        return { status: 200, body };
      });
    },
  );
}

function getRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    path,
    {
      schema: {
        operationId: "getWebhookEndpoint",
        summary: "Get the webhook endpoint",
        tags: ["kyb"],
        response: {
          200: endpointRecord,
          ...refusals(...callerReasons, "endpoint_not_found"),
        },
      },
    },
    async (request) => {
      return getEndpoint(ctx.db, apiKeyOf(request).clientDomainId);
    },
  );
}

const RotateBody = Type.Optional(
  Type.Object(
    {
      immediate: Type.Optional(
        Type.Boolean({
          description: "End the old secret now instead of in 24 hours. Default: false.",
        }),
      ),
    },
    { additionalProperties: false },
  ),
);

function rotateRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/rotate-secret`,
    {
      schema: {
        operationId: "rotateWebhookSecret",
        summary: "Create a new secret for the webhook endpoint",
        description:
          "For 24 hours, deliveries carry the signatures of both secrets, the new one first.",
        tags: ["kyb"],
        body: RotateBody,
        response: { 200: recordWithSecret, ...refusals(...changeReasons, "no_webhook_endpoint") },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      const { clientDomainId } = key;
      const immediate = request.body?.immediate === true;
      return idempotently(ctx, { request, reply }, async (tx) => {
        const body = await rotateSecret(ctx, tx, { clientDomainId, immediate });
        await recordChange(ctx, tx, { key, verb: "rotate-secret" });
        return { status: 200, body };
      });
    },
  );
}

function reactivateRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/reactivate`,
    {
      schema: {
        operationId: "reactivateWebhookEndpoint",
        summary: "End the quarantine of the webhook endpoint",
        description: "Held events are sent, oldest first, and slowly until the first 2xx answer.",
        tags: ["kyb"],
        body: NoMembers,
        response: {
          200: endpointRecord,
          ...refusals(...changeReasons, "no_webhook_endpoint", "endpoint_not_quarantined"),
        },
      },
    },
    async (request, reply) => {
      const key = apiKeyOf(request);
      return idempotently(ctx, { request, reply }, async (tx) => {
        const body = await reactivateEndpoint(ctx, tx, key.clientDomainId);
        await recordChange(ctx, tx, { key, verb: "reactivate" });
        return { status: 200, body };
      });
    },
  );
}

function testRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/test`,
    {
      schema: {
        operationId: "sendTestEvent",
        summary: "Send a test event",
        description: "`kyb.endpoint.test` is signed and delivered like every event.",
        tags: ["kyb"],
        body: NoMembers,
        response: {
          201: Type.Object({ eventId: testEventId }, { description: "The event is on its way." }),
          200: Type.Object({ eventId: testEventId }, { description: "The call is a repeat." }),
          ...refusals(...changeReasons, "no_webhook_endpoint"),
        },
      },
    },
    async (request, reply) => {
      const { clientDomainId, environment } = apiKeyOf(request);
      return idempotently(ctx, { request, reply }, async (tx) => {
        const place = await takeTestPlace(tx, clientDomainId);
        const [eventId = ""] = await announce(ctx, tx, [
          { clientDomainId, environment, ...place, event: "kyb.endpoint.test", data: {} },
        ]);
        return { status: 201, body: { eventId } };
      });
    },
  );
}
