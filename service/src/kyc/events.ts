// The bodies of webhooks about orders (decisions section 7, KYC). A body is fixed when it is written.
import type { Ctx } from "../platform/context.ts";
import { newEventId, type NewEvent } from "../webhooks/index.ts";
import type { CommonData, InvalidData, StatusData, TransferData } from "./event-schemas.ts";
import type { Order } from "./order-row.ts";
import { statusOf } from "./order-schema.ts";

/** How long data may wait for its receiver (decisions section 5, Purge). */
const dataLifetimeSeconds = 7 * 86_400;

type EventContext = Pick<Ctx, "clock" | "random">;

/** Announces the order's present status. */
export function statusUpdated(ctx: EventContext, order: Order): NewEvent {
  return eventOf(ctx, order, {
    kind: "status.updated",
    data: {
      ...commonOf(order),
      fields: [...order.required, ...order.optional],
      ...statusOf(order),
      expiration: order.expiration,
    } satisfies StatusData,
  });
}

/** Hands over what the user released. @param infos Base64 of the JSON array of triples */
export function dataTransferred(ctx: EventContext, order: Order, infos: string): NewEvent {
  return eventOf(ctx, order, {
    kind: "data.transferred",
    isPersonal: true,
    data: {
      ...commonOf(order),
      infos,
      expiration: order.expiration,
      ...(order.initiatedTxHash === null ? {} : { initiatedTxHash: order.initiatedTxHash }),
    } satisfies TransferData,
  });
}

/**
 * Announces that delivered fields no longer hold: revoked, withdrawn, of a distrusted issuer, or of a deleted user.
 *
 * @param fields concrete names
 */
export function dataInvalidated(
  ctx: EventContext,
  order: Order,
  fields: readonly string[],
): NewEvent {
  return eventOf(ctx, order, {
    kind: "data.invalidated",
    data: { ...commonOf(order), fields: [...fields] } satisfies InvalidData,
  });
}

function commonOf(order: Order): CommonData {
  return {
    referenceKey: order.referenceKey,
    ...(order.reference === null ? {} : { reference: order.reference }),
    attempt: order.attempt,
    user: order.user,
  };
}

function eventOf(
  ctx: EventContext,
  order: Order,
  { kind, data, isPersonal = false }: { kind: string; data: object; isPersonal?: boolean },
): NewEvent {
  const id = newEventId(ctx);
  const now = ctx.clock.now();
  const { sequence } = order;
  const livemode = order.environment === "live";
  return {
    id,
    streamId: order.id,
    sequence,
    kind,
    channel: "kyc",
    clientDomainId: order.clientDomainId,
    keyId: order.packageId,
    url: order.callback,
    body: JSON.stringify({ event: kind, event_id: id, sequence, timestamp: now, livemode, data }),
    isPersonal,
    payloadExpiresAt: isPersonal ? now + dataLifetimeSeconds : null,
  };
}
