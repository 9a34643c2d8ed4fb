import type { Ctx } from "../platform/context.ts";
import { Problem } from "../platform/problems.ts";
import type { SealedColumn } from "../platform/sealed-columns.ts";
import { bodyPlace } from "./event.ts";
import * as store from "./store.ts";

export { enqueueEvents, type NewEvent, newEventId } from "./event.ts";
export { webhookJobs } from "./jobs.ts";
export { openSender, type Sender, type WebhooksContext } from "./sender.ts";

/** What this slice keeps sealed. */
export const webhookSealedColumns: readonly SealedColumn[] = [
  { table: "webhook_event", idColumn: "id", column: "body_sealed" },
  { table: "webhook_attempt", idColumn: "id", column: "response_sealed" },
];

/** An event as the owner of its receiver sees it. */
export type EventShown = Omit<store.ListedEvent, "bodySealed">;

/** Events of a stream after a sequence number, in their order; the body is null once it was purged. */
export async function listEventsOf(
  ctx: Pick<Ctx, "db" | "seal">,
  streamId: string,
  page: { after: number; limit: number },
): Promise<EventShown[]> {
  const events = await store.listEvents(ctx.db, streamId, page);
  return events.map(({ bodySealed, ...event }) => ({
    ...event,
    body: bodySealed === null ? event.body : ctx.seal.open(bodySealed, bodyPlace(event.id)).toString(),
  }));
}

/**
 * Sends events of a stream again, the given one or all whose body is still there; the schedule starts anew.
 *
 * @returns how many
 * @throws {Problem} event_not_found; payload_expired where the one that was asked for was purged
 */
export async function redeliverEvents(
  ctx: Pick<Ctx, "db" | "clock">,
  given: { streamId: string; eventId?: string },
): Promise<number> {
  const { streamId, eventId = null } = given;
  const asked = { streamId, eventId, now: ctx.clock.now() };
  const { found, sent } = await store.resend(ctx.db, asked);
  if (found === 0) throw new Problem("event_not_found");
  if (sent === 0) throw new Problem("payload_expired");
  return sent;
}
