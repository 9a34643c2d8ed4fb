import { readAddress } from "../platform/http/address-input.ts";
import { Type, UserText } from "../platform/http/schema.ts";
import { apiKeyOf } from "../accounts/index.ts";
import type { Http } from "../platform/http/http.ts";
import { parseUuid } from "../platform/ids.ts";
import {
  pageBody,
  pageOf,
  pageParameters,
  readLimit,
  readPage,
} from "../platform/http/list-page.ts";
import { invalidRequest } from "../platform/http/problems.ts";
import { envelope, envelopeBody } from "../platform/http/envelope.ts";
import { bodyReasons, keyReasons, refusals } from "../platform/http/refusals.ts";
import {
  afterSequence,
  deliveryMembers,
  eventMembers,
  eventPagesHint,
  listDeliveriesOf,
  type ListedEvent,
  listEventsOf,
  readPlace,
  shownEvent,
  streamCursor,
} from "../webhooks/index.ts";
import type { KycContext } from "./kyc-context.ts";
import { statuses } from "./order.ts";
import type { Order } from "./order-row.ts";
import * as store from "./order-store.ts";
import { getCurrentOrder, listCurrentOrders, redeliverOrder } from "./orders.ts";
import { receiptRoute } from "./receipt-routes.ts";
import {
  attemptNumber,
  expirationTime,
  keyMember,
  keyText,
  orderStatus,
  referenceText,
  statusOf,
} from "./order-schema.ts";

/** Everything that only reads orders, and the resend of their events. */
export function readRoutes(ctx: KycContext, scope: Http): void {
  statusRoute(ctx, scope);
  historyRoute(ctx, scope);
  listRoute(ctx, scope);
  eventsRoute(ctx, scope);
  deliveriesRoute(ctx, scope);
  redeliverRoute(ctx, scope);
  receiptRoute(ctx, scope);
}

const keyQuery = Type.Object(keyMember);
const readReasons = ["invalid_request", ...keyReasons, "order_not_found"] as const;

function statusRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/status",
    {
      schema: {
        operationId: "getOrderStatus",
        summary: "Get the status of an order",
        tags: ["kyc"],
        querystring: keyQuery,
        response: {
          200: envelopeBody(orderStatus, "The current status of the order."),
          ...refusals(...readReasons),
        },
      },
    },
    async (request) => {
      const order = await getCurrentOrder(ctx, apiKeyOf(request), request.query.referenceKey);
      return envelope(statusOf(order), "status has been sent successfully");
    },
  );
}

/** An order can be asked for and cancelled without end. */
const statusesMax = 1000;

const statusHistory = Type.Object(
  {
    allStatuses: Type.Array(orderStatus, {
      description: "One entry for each status that each attempt reached.",
    }),
  },
  { description: "The history of the order." },
);

function historyRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/all-statuses",
    {
      schema: {
        operationId: "listOrderStatuses",
        summary: "List every status that an order reached",
        description: `The statuses of all attempts, oldest first; if there are more than ${statusesMax}, only the newest ${statusesMax}. \`events\` lists all.`,
        tags: ["kyc"],
        querystring: keyQuery,
        response: {
          200: envelopeBody(statusHistory, "The history."),
          ...refusals(...readReasons),
        },
      },
    },
    async (request) => {
      const order = await getCurrentOrder(ctx, apiKeyOf(request), request.query.referenceKey);
      const history = await store.listHistory(ctx.db, order.id, statusesMax);
      return envelope({ allStatuses: history.map(statusOf) }, "all statuses has sent successfully");
    },
  );
}

const listedOrder = Type.Object(
  {
    referenceKey: keyText,
    reference: Type.Optional(referenceText),
    attempt: attemptNumber,
    user: UserText,
    fields: Type.Array(Type.String(), { description: "Names that the user must share." }),
    optionalFields: Type.Optional(
      Type.Array(Type.String(), {
        description: "Names that the user may withhold; absent if there is none.",
      }),
    ),
    expiration: expirationTime,
    scannedAt: Type.Optional(
      Type.Integer({ description: "When a wallet first opened this attempt, Unix seconds." }),
    ),
    ...orderStatus.properties,
  },
  { title: "Order" },
);

const listQuery = Type.Object({
  status: Type.Optional(
    Type.String({ maxLength: 20, description: "Only orders that have this status now." }),
  ),
  user: Type.Optional(Type.String({ maxLength: 100, description: "Only orders to this user." })),
  ...pageParameters,
});

function listRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/orders",
    {
      schema: {
        operationId: "listOrders",
        summary: "List the orders of the client domain, newest first",
        tags: ["kyc"],
        querystring: listQuery,
        response: {
          200: envelopeBody(
            pageBody(listedOrder, { description: "Orders in their newest attempt." }),
            "A page of orders.",
          ),
          ...refusals("invalid_request", ...keyReasons),
        },
      },
    },
    async (request) => {
      const { clientDomainId } = apiKeyOf(request);
      const { limit, before } = readPage(request.query, parseUuid);
      const filter = { clientDomainId, ...readFilter(request.query) };
      const rows = await listCurrentOrders(ctx, filter, { before, limit: limit + 1 });
      return envelope(pageOf(rows, limit, listedOf), "orders have been sent successfully");
    },
  );
}

/** @throws {Problem} invalid_request */
function readFilter(query: {
  status?: string;
  user?: string;
}): Pick<store.OrderFilter, "status" | "user"> {
  const user = query.user === undefined ? null : readAddress("user", query.user);
  const status = statuses.find((each) => each === query.status) ?? null;
  if (query.status !== undefined && status === null)
    throw invalidRequest(`status must be one of ${statuses.join(", ")}`);
  return { status, user };
}

function listedOf(order: Order) {
  return {
    referenceKey: order.referenceKey,
    ...(order.reference === null ? {} : { reference: order.reference }),
    attempt: order.attempt,
    user: order.user,
    fields: [...order.required],
    ...(order.optional.length === 0 ? {} : { optionalFields: [...order.optional] }),
    expiration: order.expiration,
    ...(order.scannedAt === null ? {} : { scannedAt: order.scannedAt }),
    ...statusOf(order),
  };
}

const eventNumber = Type.Integer({ description: "Counts the events of one order, from 1." });
const listedEvent = Type.Object(
  { sequence: eventNumber, ...eventMembers },
  { title: "OrderEvent" },
);

/** As {@link listedEvent} says. */
const numbered = (event: ListedEvent) => ({ sequence: event.sequence, ...shownEvent(event) });

const eventsQuery = Type.Object({
  ...keyMember,
  after: afterSequence("Begin after the event with this `sequence`. Default: 0."),
  ...pageParameters,
  cursor: streamCursor,
});

function eventsRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/events",
    {
      config: { largeAnswerOf: (request) => apiKeyOf(request).clientDomainId },
      schema: {
        operationId: "listOrderEvents",
        summary: "List the events of an order, oldest first",
        description: eventPagesHint,
        tags: ["kyc"],
        querystring: eventsQuery,
        response: {
          200: envelopeBody(
            pageBody(listedEvent, { description: "Events of all attempts." }),
            "A page of events.",
          ),
          ...refusals(...readReasons),
        },
      },
    },
    async (request) => {
      const { referenceKey, after: given, cursor } = request.query;
      const { after } = readPlace({ after: given, cursor });
      const order = await getCurrentOrder(ctx, apiKeyOf(request), referenceKey);
      const limit = readLimit(request.query);
      const { events, ...next } = await listEventsOf(ctx, order.id, { after, limit });
      const data = { items: events.map(numbered), ...next };
      return envelope(data, "events have been sent successfully");
    },
  );
}

const listedDelivery = Type.Object(
  { sequence: eventNumber, ...deliveryMembers },
  { title: "OrderDelivery" },
);

const deliveriesQuery = Type.Object({
  ...eventsQuery.properties,
  afterAttempt: afterSequence(
    "Begin after this `attempt` at the event `after`. Default: after all attempts at that event.",
  ),
});

function deliveriesRoute(ctx: KycContext, scope: Http): void {
  scope.get(
    "/api/v2/kyc/deliveries",
    {
      schema: {
        operationId: "listOrderDeliveries",
        summary: "List the attempts to deliver the events of an order",
        tags: ["kyc"],
        querystring: deliveriesQuery,
        response: {
          200: envelopeBody(
            pageBody(listedDelivery, { description: "Attempts by `sequence` and number." }),
            "A page of attempts.",
          ),
          ...refusals(...readReasons),
        },
      },
    },
    async (request) => {
      const { referenceKey, after, afterAttempt, cursor } = request.query;
      const place = readPlace({ after, afterAttempt, cursor });
      const order = await getCurrentOrder(ctx, apiKeyOf(request), referenceKey);
      const page = { ...place, limit: readLimit(request.query) };
      const { deliveries, ...next } = await listDeliveriesOf(ctx, order.id, page);
      const items = deliveries.map(({ seq: sequence, ...attempt }) =>
        Object.assign(attempt, { sequence }),
      );
      return envelope({ items, ...next }, "deliveries have been sent successfully");
    },
  );
}

const redeliverBody = Type.Object({
  ...keyMember,
  eventId: Type.Optional(
    Type.String({ maxLength: 100, description: "The event to send again. Default: every event." }),
  ),
});

const resentBody = Type.Object(
  { count: Type.Integer({ description: "How many events are on their way." }) },
  { description: "What is sent again." },
);

function redeliverRoute(ctx: KycContext, scope: Http): void {
  scope.post(
    "/api/v2/kyc/redeliver",
    {
      schema: {
        operationId: "redeliverOrderEvents",
        summary: "Send the events of an order again",
        tags: ["kyc"],
        body: redeliverBody,
        response: {
          200: envelopeBody(resentBody, "The events are being sent again."),
          ...refusals(
            ...bodyReasons,
            ...keyReasons,
            "order_not_found",
            "event_not_found",
            "payload_expired",
          ),
        },
      },
    },
    async (request) => {
      const count = await redeliverOrder(ctx, apiKeyOf(request), request.body);
      return envelope({ count }, "events are being sent again");
    },
  );
}
