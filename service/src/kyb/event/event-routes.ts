import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import type { Http } from "../../platform/http/http.ts";
import { parseUlid } from "../../platform/ids.ts";
import { pageBody, pageParameters, readLimit, readPage } from "../../platform/http/list-page.ts";
import { Problem } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import { NoMembers, Type } from "../../platform/http/schema.ts";
import {
  findKybEvent,
  listDeliveriesOfEvent,
  listKybEvents,
  redeliverEvents,
  streamCursor,
} from "../../webhooks/index.ts";
import { callerReasons, kybBodyReasons, requireEntitlement } from "../entitlement.ts";
import { type KybEventKind, kybEventKinds } from "./events.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { idParams } from "../member-schemas.ts";
import { listedDelivery, listedEvent, numbered, redelivered } from "./stream-routes.ts";

const path = "/api/v1/kyb/events";
const EventParams = idParams("The `eventId`.");

/** The events of a client domain, including those without a request: the list, attempts, and resending. */
export async function eventRoutes(ctx: KybContext, http: Http): Promise<void> {
  await http.register(async (scope: Http) => {
    requireEntitlement(ctx, scope, "kyb:read");
    listRoute(ctx, scope);
    deliveriesRoute(ctx, scope);
    redeliverRoute(ctx, scope);
  });
}

/** The kinds of events that a key may see: those of requests only if it may make such requests. */
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
      config: { largeAnswerOf: (request) => apiKeyOf(request).clientDomainId },
      schema: {
        operationId: "listEvents",
        summary: "List the events of this client domain",
        description:
          "Events of requests are listed only if you may make such requests. A page holds at most 8 MiB but at least one event, so" +
          " it may be shorter than `limit`; only a page without `nextCursor` is the last.",
        tags: ["kyb"],
        querystring: Type.Object(
          {
            type: Type.Optional(
              Type.Union(
                kybEventKinds.map((kind) => Type.Literal(kind)),
                { description: "Only events of this kind. Default: all." },
              ),
            ),
            status: Type.Optional(
              Type.Union([Type.Literal("delivered"), Type.Literal("undelivered")], {
                description:
                  "`undelivered` events are on their way, held, or given up; those given up have no `nextAttemptAt`.",
              }),
            ),
            ...pageParameters,
          },
          { additionalProperties: false },
        ),
        response: {
          200: pageBody(
            Type.Object(
              {
                ...listedEvent,
                streamId: Type.String({
                  description:
                    "The request that the event belongs to; tests and moves have streams of their own.",
                }),
              },
              { title: "BusinessEvent" },
            ),
            {
              description: "Newest first.",
            },
          ),
          ...refusals("malformed_request", ...callerReasons),
        },
      },
    },
    async (request) => {
      const { type, status } = request.query;
      const key = apiKeyOf(request);
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

/** The event of this id, if its kind is one that the caller may see. @throws {Problem} event_not_found */
async function findEvent(ctx: KybContext, key: ApiKey, id: string) {
  const found = await findKybEvent(ctx.db, { id, clientDomainId: key.clientDomainId });
  if (found === null || !kindsOf(key).some((kind) => kind === found.kind))
    throw new Problem("event_not_found");
  return found;
}

function deliveriesRoute(ctx: KybContext, scope: Http): void {
  scope.get(
    `${path}/:id/deliveries`,
    {
      schema: {
        operationId: "listEventDeliveries",
        summary: "List the attempts to deliver an event",
        description: "This includes test events and moves, which belong to no request.",
        tags: ["kyb"],
        params: EventParams,
        querystring: Type.Object(
          { ...pageParameters, cursor: streamCursor },
          { additionalProperties: false },
        ),
        response: {
          200: pageBody(listedDelivery, { description: "The attempts, in order." }),
          ...refusals("malformed_request", ...callerReasons, "event_not_found"),
        },
      },
    },
    async (request) => {
      const event = await findEvent(ctx, apiKeyOf(request), request.params.id);
      const page = { cursor: request.query.cursor, limit: readLimit(request.query) };
      const { deliveries, ...next } = await listDeliveriesOfEvent(ctx, event, page);
      return { items: deliveries, ...next };
    },
  );
}

function redeliverRoute(ctx: KybContext, scope: Http): void {
  scope.post(
    `${path}/:id/redeliver`,
    {
      schema: {
        operationId: "redeliverEvent",
        summary: "Send an event again",
        tags: ["kyb"],
        params: EventParams,
        body: NoMembers,
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
      const { id: eventId } = request.params;
      const { streamId } = await findEvent(ctx, apiKeyOf(request), eventId);
      return idempotently(ctx, { request, reply }, async (tx) => ({
        status: 200,
        body: { count: await redeliverEvents(ctx, tx, { streamId, eventId }) },
      }));
    },
  );
}
