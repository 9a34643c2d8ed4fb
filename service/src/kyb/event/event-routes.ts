import type { ApiKey } from "../../accounts/index.ts";
import type { Http } from "../../platform/http/http.ts";
import { parseUlid } from "../../platform/ids.ts";
import { pageBody, pageParameters, readPage } from "../../platform/http/list-page.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { Type } from "../../platform/http/schema.ts";
import { findKybEvent, listKybEvents, redeliverEvents } from "../../webhooks/index.ts";
import { callerOf, callerReasons, kybBodyReasons, requireEntitlement } from "../caller.ts";
import { type KybEventKind, kybEventKinds } from "./events.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { listedEvent, numbered, redelivered } from "./stream-routes.ts";

const path = "/api/v1/kyb/events";

/** The events of a client domain, including those that belong to no request: a list, and resending one of them. */
export async function eventRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    listRoute(ctx, scope);
    redeliverRoute(ctx, scope);
  });
}

/**
 * Events of requests are listed only for keys that may make such requests, as the routes of each request require too.
 */
function kindsOf({ entitlements }: ApiKey): KybEventKind[] {
  return kybEventKinds.filter((kind) => {
    if (kind.startsWith("kyb.data_request.")) return entitlements.has("kyb:data-request");
    return !kind.startsWith("kyb.signature_request.") || entitlements.has("kyb:signature");
  });
}

function listRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    path,
    {
      config: { largeAnswerOf: (request) => callerOf(request).clientDomainId },
      schema: {
        summary: "The events of this client domain",
        description:
          "Those of requests where you may make such requests. A page holds at most 8 MiB of them, and one at least, so" +
          " it may be shorter than `limit`: only a page without `nextCursor` is the end.",
        tags: ["kyb"],
        querystring: Type.Object(
          {
            type: Type.Optional(Type.Union(kybEventKinds.map((kind) => Type.Literal(kind)))),
            status: Type.Optional(
              Type.Union([Type.Literal("delivered"), Type.Literal("undelivered")], {
                description:
                  "`undelivered`: on its way, held, or given up, which has no `nextAttemptAt`.",
              }),
            ),
            ...pageParameters,
          },
          { additionalProperties: false },
        ),
        response: {
          200: pageBody(Type.Object({ ...listedEvent, streamId: Type.String() }), {
            description: "Newest first.",
          }),
          ...refusals("malformed_request", ...callerReasons),
        },
      },
    },
    async (request) => {
      const { type, status } = request.query;
      const key = callerOf(request);
      const { clientDomainId } = key;
      const kinds = kindsOf(key).filter((kind) => type === undefined || kind === type);
      const isDelivered = status === undefined ? null : status === "delivered";
      const { events, hasMore } = await listKybEvents(
        ctx,
        { clientDomainId, kinds, isDelivered },
        readPage(request.query, parseUlid),
      );
      const items = events.map((event) => ({ ...numbered(event), streamId: event.streamId }));
      const last = events.at(-1);
      return { items, ...(hasMore && last !== undefined ? { nextCursor: last.id } : {}) };
    },
  );
}

function redeliverRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/:id/redeliver`,
    {
      schema: {
        summary: "Send an event again",
        tags: ["kyb"],
        params: Type.Object({ id: Type.String() }),
        body: Type.Optional(Type.Object({}, { additionalProperties: false })),
        response: {
          200: redelivered,
          ...refusals(
            ...kybBodyReasons,
            ...callerReasons,
            "event_not_found",
            "idempotency_key_conflict",
            "payload_expired",
          ),
        },
      },
    },
    async (request, reply) => {
      const key = callerOf(request);
      const { id: eventId } = request.params;
      const { clientDomainId } = key;
      const found = await findKybEvent(ctx.db, { id: eventId, clientDomainId });
      if (found === null || !kindsOf(key).some((kind) => kind === found.kind))
        throw new Problem("event_not_found");
      const { streamId } = found;
      return idempotently(ctx, { request, reply }, async (tx) => ({
        status: 200,
        body: { count: await redeliverEvents(ctx, tx, { streamId, eventId }) },
      }));
    },
  );
}
