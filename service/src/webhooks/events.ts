import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { ulid } from "../platform/ids.ts";
import { Type } from "../platform/http/schema.ts";
import { Problem } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { endpointIdOf } from "./endpoint.ts";
import { isLarge, type NewEvent, purgeTimeOf } from "./event.ts";
import * as store from "./event-store.ts";
import { cursorAfter, readPlace, type StreamPlace } from "./stream-page.ts";

export const eventBodyColumn: SealedColumn = {
  table: "webhook_event",
  idColumn: "id",
  column: "body_sealed",
};

/** An id for a new event: `evt_` and a ULID. */
export function newEventId(ctx: Pick<Ctx, "clock" | "random">): string {
  return `evt_${ulid(ctx.clock, ctx.random)}`;
}

/**
 * Announces events in the caller's transaction; their delivery begins when it commits. One statement for any number.
 *
 * @throws if a stream has an event with that sequence number already: then two callers have changed the same state
 */
export async function enqueueEvents(
  ctx: Pick<Ctx, "clock" | "seal">,
  tx: Queryable,
  events: readonly NewEvent[],
): Promise<void> {
  if (events.length === 0) return;
  const now = ctx.clock.now();
  const rows = events.map((event) => ({
    ...event,
    ...destinationOf(event),
    isLarge: isLarge(event),
    purgeAt: purgeTimeOf(event, now),
    body: event.isPersonal ? null : event.body,
    bodySealed: event.isPersonal ? sealBody(ctx, event) : null,
  }));
  await store.insertEvents(tx, rows, ctx.clock.nowMs());
}

/** URL and key of a KYC event; a KYB event has neither, they are looked up when it is sent. */
function destinationOf(event: NewEvent): {
  endpointId: string;
  keyId: string | null;
  url: string | null;
} {
  const { channel, clientDomainId } = event;
  const { keyId, url } = channel === "kyc" ? event : { keyId: null, url: null };
  return { endpointId: endpointIdOf({ channel, clientDomainId, url }), keyId, url };
}

/** An event as its owner sees it. */
export interface ListedEvent {
  readonly id: string;
  readonly sequence: number;
  readonly kind: string;
  /** Unix seconds, as all times here. */
  readonly createdAt: number;
  /** Of the first 2xx; null before. */
  readonly deliveredAt: number | null;
  readonly attempts: number;
  /** Null when no attempt is to come. */
  readonly nextAttemptAt: number | null;
  /** Byte for byte as it is sent; null once it was purged. */
  readonly body: string | null;
}

/** Bytes of the bodies on one page: an event with images has up to 8 MiB, and 100 of them would fill the memory. */
export const pageBytesMax = 8 * 1024 * 1024;

/** Description of lists of a stream's events, for the OpenAPI document. */
export const eventPagesHint =
  `For receivers that missed events: ask for those after the last one you have. A page holds at most ${pageBytesMax / 1024 ** 2} MiB` +
  " but at least one event, so it may be shorter than `limit`; only a page without `nextCursor` is the last.";

/** Which event it is. */
const nameMembers = {
  eventId: Type.String({ description: "The event's id: the same in every delivery." }),
  event: Type.String({ description: "What happened: the `event` of the body." }),
};

/** The members of an event in a list, except its sequence, whose name differs between the APIs. */
export const eventMembers = {
  ...nameMembers,
  createdAt: Type.Integer({ description: "When it happened, Unix seconds." }),
  attempts: Type.Integer({ description: "How many attempts to deliver it have ended." }),
  deliveredAt: Type.Optional(
    Type.Integer({ description: "When it was first answered 2xx, Unix seconds; absent before." }),
  ),
  nextAttemptAt: Type.Optional(
    Type.Integer({
      description: "When the next attempt is due, Unix seconds; absent if none is to come.",
    }),
  ),
  body: Type.Optional(
    Type.String({ description: "The body as it is sent; absent once its data was purged." }),
  ),
};

/** An event in the form of {@link eventMembers}. */
export function shownEvent(event: ListedEvent) {
  const { id, kind, createdAt, attempts, deliveredAt, nextAttemptAt, body } = event;
  return {
    eventId: id,
    event: kind,
    createdAt,
    attempts,
    ...(deliveredAt === null ? {} : { deliveredAt }),
    ...(nextAttemptAt === null ? {} : { nextAttemptAt }),
    ...(body === null ? {} : { body }),
  };
}

/**
 * A page of a stream's events by sequence: no more than fit into {@link pageBytesMax}, but at least one.
 *
 * @param page.after the sequence after which the page begins; 0 for the first page
 * @param page.limit at most 100
 * @returns `nextCursor` if there are more
 */
export async function listEventsOf(
  ctx: Pick<Ctx, "db" | "clock" | "seal">,
  streamId: string,
  { after, limit }: { after: number; limit: number },
): Promise<{ events: ListedEvent[]; nextCursor?: string }> {
  const now = ctx.clock.now();
  const page = { after, limit: limit + 1, bytesMax: pageBytesMax };
  const rows = await store.listEvents(ctx.db, streamId, page);
  const events = rows.slice(0, limit).map((row) => listedOf(ctx, row, now));
  const last = events.at(-1);
  return last !== undefined && events.length < (rows[0]?.found ?? 0)
    ? { events, nextCursor: cursorAfter(last.sequence) }
    : { events };
}

function listedOf(ctx: Pick<Ctx, "seal">, row: store.ListedRow, now: number): ListedEvent {
  return {
    id: row.id,
    sequence: row.sequence,
    kind: row.kind,
    createdAt: row.createdAt,
    deliveredAt: row.deliveredAt,
    attempts: row.attempts,
    nextAttemptAt: row.dueAtMs === null ? null : Math.floor(row.dueAtMs / 1000),
    body: isOver(row, now) ? null : openBody(ctx, row),
  };
}

/** An event in a list over many streams. */
export interface PlacedEvent extends ListedEvent {
  readonly streamId: string;
}

/**
 * A page of the events for the KYB endpoint of a client domain, of all streams, newest first: no more than fit into
 * {@link pageBytesMax}, but at least one.
 *
 * @param page.before the id before which the page begins; null for the first page
 * @returns `hasMore` if there are older ones
 */
export async function listKybEvents(
  ctx: Pick<Ctx, "db" | "clock" | "seal">,
  filter: store.EventFilter,
  { before, limit }: { before: string | null; limit: number },
): Promise<{ events: PlacedEvent[]; hasMore: boolean }> {
  const now = ctx.clock.now();
  const page = { before, limit: limit + 1, bytesMax: pageBytesMax };
  const rows = await store.listKybEvents(ctx.db, filter, page);
  const shown = rows.slice(0, limit);
  const events = shown.map((row) => ({ ...listedOf(ctx, row, now), streamId: row.streamId }));
  return { events, hasMore: shown.length < (rows[0]?.found ?? 0) };
}

/** One attempt at an event, as its owner sees it. */
export interface ListedDelivery {
  readonly eventId: string;
  readonly seq: number;
  readonly event: string;
  /** From 1. */
  readonly attempt: number;
  /** When it began, Unix seconds. */
  readonly at: number;
  /** `refused`: any answer but a 2xx. `failed`: no answer; details would reveal our network. */
  readonly outcome: "delivered" | "refused" | "failed";
  /** HTTP status of the answer; absent without one, like the duration. */
  readonly status?: number;
  readonly durationMs?: number;
}

/** The members of an attempt in a list, except its sequence, whose name differs between the APIs. */
export const deliveryMembers = {
  ...nameMembers,
  attempt: Type.Integer({ description: "The number of the attempt at this event, from 1." }),
  at: Type.Integer({ description: "Unix seconds." }),
  outcome: Type.String({ description: "`delivered`, `refused` by its status, or `failed`." }),
  status: Type.Optional(Type.Integer({ description: "HTTP status of the answer." })),
  durationMs: Type.Optional(Type.Integer({ description: "Where there was an answer." })),
};

/**
 * A page of the attempts at a stream's events, by sequence and number. It may end between two attempts at one event.
 *
 * @param page.limit at most 100
 * @returns `nextCursor` if there are more
 */
export async function listDeliveriesOf(
  ctx: Pick<Ctx, "db">,
  streamId: string,
  { after, afterAttempt = null, limit }: StreamPlace & { limit: number },
): Promise<{ deliveries: ListedDelivery[]; nextCursor?: string }> {
  const place = { after, afterAttempt };
  const rows = await store.listAttempts(ctx.db, streamId, { ...place, limit: limit + 1 });
  return pageOfAttempts(rows, limit);
}

function pageOfAttempts(rows: readonly store.AttemptRow[], limit: number) {
  const deliveries = rows.slice(0, limit).map(deliveryOf);
  const last = deliveries.at(-1);
  return last !== undefined && rows.length > limit
    ? { deliveries, nextCursor: cursorAfter(last.seq, last.attempt) }
    : { deliveries };
}

/**
 * A page of the attempts at one event.
 *
 * @param page.cursor of the previous page; undefined for the first page
 * @throws {Problem} invalid_request for a cursor that is not ours
 */
export async function listDeliveriesOfEvent(
  ctx: Pick<Ctx, "db">,
  { streamId, sequence }: { streamId: string; sequence: number },
  { cursor, limit }: { cursor: string | undefined; limit: number },
): Promise<{ deliveries: ListedDelivery[]; nextCursor?: string }> {
  const { afterAttempt } = readPlace({ cursor, after: undefined });
  const page = { after: sequence, afterAttempt: afterAttempt ?? 0, limit: limit + 1 };
  const rows = await store.listAttempts(ctx.db, streamId, page);
  return pageOfAttempts(
    rows.filter((row) => row.sequence === sequence),
    limit,
  );
}

function deliveryOf(row: store.AttemptRow): ListedDelivery {
  const { eventId, sequence: seq, kind: event, number: attempt, status } = row;
  const begun = { eventId, seq, event, attempt, at: Math.floor(row.begunAtMs / 1000) };
  // No duration: it would reveal the kind of failure that the outcome hides.
  if (status === null) return { ...begun, outcome: "failed" };
  const outcome = row.outcome === "delivered" ? "delivered" : "refused";
  return { ...begun, outcome, status, durationMs: row.durationMs };
}

/** Which events to send again, and where. */
interface Resend {
  readonly streamId: string;
  /** The one event to send; by default all events of the stream that still have a body. */
  readonly eventId?: string;
  /** For KYC: the present callback. Personal data still goes to the URL whose host the user was shown. */
  readonly url?: string;
}

/**
 * Sends events of a stream again in the caller's transaction, in order, each with a new run of the schedule. If an
 * attempt is under way, that run begins only after it has failed. An event that is held stays held. Both kinds are
 * counted.
 *
 * @returns how many events are on their way
 * @throws {Problem} event_not_found; payload_expired if all of their bodies were purged
 */
export async function redeliverEvents(
  ctx: Pick<Ctx, "clock">,
  tx: Queryable,
  { streamId, eventId, url: urlNow }: Resend,
): Promise<number> {
  const given = { streamId, eventId: eventId ?? null, now: ctx.clock.now() };
  await store.lockDeliveries(tx, given);
  const found = await store.listResendable(tx, given);
  if (found.length === 0) throw new Problem("event_not_found");
  const sendable = found.filter((each) => each.isSendable);
  if (sendable.length === 0) throw new Problem("payload_expired");
  const rows = sendable.map(({ id, channel, clientDomainId, ...row }) => {
    const url = row.isPersonal ? row.url : (urlNow ?? row.url);
    return { id, url, endpointId: endpointIdOf({ channel, clientDomainId, url }) };
  });
  await store.requeueEvents(tx, rows, ctx.clock.nowMs());
  return sendable.length;
}

/**
 * Redirects the undelivered events of an order to another URL in the caller's transaction. They are due at once, in
 * order; an attempt under way does not count, and is made again. Events with personal data stay with the URL that they
 * have.
 */
export async function moveEvents(
  ctx: Pick<Ctx, "clock">,
  tx: Queryable,
  to: { streamId: string; clientDomainId: string; url: string },
): Promise<void> {
  const { streamId, clientDomainId, url } = to;
  const endpointId = endpointIdOf({ channel: "kyc", clientDomainId, url });
  await store.moveEvents(tx, { streamId, url, endpointId }, ctx.clock.nowMs());
}

/** The body of an event with personal data, sealed as it is stored. */
export function sealBody(
  ctx: Pick<Ctx, "seal">,
  { id, body }: { id: string; body: string },
): Buffer {
  return ctx.seal.seal(Buffer.from(body), placeIn(eventBodyColumn, id));
}

/** The body of an event that has not been purged. @throws {SealBroken} */
export function openBody(
  ctx: Pick<Ctx, "seal">,
  row: { id: string; body: string | null; bodySealed: Buffer | null },
): string {
  if (row.body !== null) return row.body;
  if (row.bodySealed === null) throw new Error(`the event ${row.id} has no body`);
  return ctx.seal.open(row.bodySealed, placeIn(eventBodyColumn, row.id)).toString();
}

function isOver(row: { purgeAt: number | null }, now: number): boolean {
  return row.purgeAt === null || row.purgeAt <= now;
}
