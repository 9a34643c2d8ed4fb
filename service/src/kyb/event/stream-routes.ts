import { Type } from "../../platform/http/schema.ts";
import { type ApiKey, apiKeyOf } from "../../accounts/index.ts";
import type { Http } from "../../platform/http/http.ts";
import { pageBody, pageParameters, readLimit } from "../../platform/http/list-page.ts";
import type { Reason } from "../../platform/http/problems.ts";
import { refusals } from "../../platform/http/refusals.ts";
import {
  afterSequence,
  deliveryMembers,
  eventMembers,
  eventPagesHint,
  type ListedEvent,
  listDeliveriesOf,
  listEventsOf,
  readPlace,
  redeliverEvents,
  shownEvent,
  streamCursor,
} from "../../webhooks/index.ts";
import { kybBodyReasons } from "../entitlement.ts";
import { idempotently } from "../idempotency.ts";
import type { KybContext } from "../kyb-context.ts";
import { RequestParams } from "../member-schemas.ts";

/** What the routes of events need to know of a kind of request. */
export interface Stream {
  /** The path of the requests, such as `/api/v1/kyb/data-requests`. */
  readonly path: string;
  /** The name of their records in generated clients: `DataRequest`. */
  readonly type: string;
  /** The refusals of its routes before they examine the request. */
  readonly reasons: readonly Reason[];
  /** Checks that the request is the caller's. @throws {Problem} request_not_found */
  readonly check: (key: ApiKey, id: string) => Promise<void>;
}

const eventPage = {
  after_seq: afterSequence("Begin after the event with this `seq`. Default: 0."),
  ...pageParameters,
  cursor: streamCursor,
};

const deliveryPage = {
  ...eventPage,
  after_attempt: afterSequence(
    "Begin after this `attempt` at the event `after_seq`. Default: after all attempts at that event.",
  ),
};

const seq = Type.Integer({ description: "Counts the events of one stream, from 1." });

/** The members of an event in a list. */
export const listedEvent = { seq, ...eventMembers };

export const listedDelivery = Type.Object(
  { seq, ...deliveryMembers },
  { title: "RequestDelivery" },
);

/** Adds the routes for the events of a kind of request: the list, attempts, and resending. */
export function streamRoutes(ctx: KybContext, scope: Http, stream: Stream): void {
  eventsRoute(ctx, scope, stream);
  deliveriesRoute(ctx, scope, stream);
  redeliverRoute(ctx, scope, stream);
}

function eventsRoute(ctx: KybContext, scope: Http, { path, type, reasons, check }: Stream): void {
  scope.get(
    `${path}/:id/events`,
    {
      config: { largeAnswerOf: (request) => apiKeyOf(request).clientDomainId },
      schema: {
        operationId: `list${type}Events`,
        summary: "List the events of a request, oldest first",
        description: eventPagesHint,
        tags: ["kyb"],
        params: RequestParams,
        querystring: Type.Object(eventPage, { additionalProperties: false }),
        response: {
          200: pageBody(Type.Object(listedEvent, { title: "RequestEvent" }), {
            description: "The events, in the order of their sequence.",
          }),
          ...refusals("malformed_request", ...reasons, "request_not_found"),
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      await check(apiKeyOf(request), id);
      const { after_seq: given, cursor } = request.query;
      const { after } = readPlace({ after: given, cursor });
      const limit = readLimit(request.query);
      const { events, ...next } = await listEventsOf(ctx, id, { after, limit });
      return { items: events.map(numbered), ...next };
    },
  );
}

/** An event in the form of {@link listedEvent}. */
export const numbered = (event: ListedEvent) => ({ seq: event.sequence, ...shownEvent(event) });

function deliveriesRoute(
  ctx: KybContext,
  scope: Http,
  { path, type, reasons, check }: Stream,
): void {
  scope.get(
    `${path}/:id/deliveries`,
    {
      schema: {
        operationId: `list${type}Deliveries`,
        summary: "List the attempts to deliver the events of a request",
        tags: ["kyb"],
        params: RequestParams,
        querystring: Type.Object(deliveryPage, { additionalProperties: false }),
        response: {
          200: pageBody(listedDelivery, { description: "The attempts, in order." }),
          ...refusals("malformed_request", ...reasons, "request_not_found"),
        },
      },
    },
    async (request) => {
      const { id } = request.params;
      await check(apiKeyOf(request), id);
      const { after_seq: after, after_attempt: afterAttempt, cursor } = request.query;
      const place = readPlace({ after, afterAttempt, cursor });
      const limit = readLimit(request.query);
      const { deliveries, ...next } = await listDeliveriesOf(ctx, id, { ...place, limit });
      return { items: deliveries, ...next };
    },
  );
}

/** The answer to a resend. */
export const redelivered = Type.Object(
  {
    count: Type.Integer({
      description: "How many events are sent again: all but those whose body was purged.",
    }),
  },
  { description: "The events are being sent again." },
);

const RedeliverBody = Type.Optional(
  Type.Object(
    {
      eventId: Type.Optional(
        Type.String({ maxLength: 100, description: "The event to send again. Default: all." }),
      ),
    },
    { additionalProperties: false },
  ),
);

function redeliverRoute(
  ctx: KybContext,
  scope: Http,
  { path, type, reasons, check }: Stream,
): void {
  scope.post(
    `${path}/:id/redeliver`,
    {
      schema: {
        operationId: `redeliver${type}Events`,
        summary: "Send the events of a request again",
        tags: ["kyb"],
        params: RequestParams,
        body: RedeliverBody,
        response: {
          200: redelivered,
          ...refusals(
            ...kybBodyReasons,
            ...reasons,
            "request_not_found",
            "event_not_found",
            "idempotency_key_conflict",
            "payload_expired",
          ),
        },
      },
    },
    async (request, reply) => {
      const { id } = request.params;
      await check(apiKeyOf(request), id);
      const eventId = request.body?.eventId;
      return idempotently(ctx, { request, reply }, async (tx) => {
        const of = { streamId: id, ...(eventId === undefined ? {} : { eventId }) };
        return { status: 200, body: { count: await redeliverEvents(ctx, tx, of) } };
      });
    },
  );
}
