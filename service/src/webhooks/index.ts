import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { attemptAnswerColumn } from "./attempt.ts";
import { endpointSecretColumn } from "./endpoint-secret.ts";
import { eventBodyColumn } from "./events.ts";

export {
  enqueueEvents,
  listKybEvents,
  type ListedEvent,
  deliveryMembers,
  eventMembers,
  eventPagesHint,
  listDeliveriesOf,
  listDeliveriesOfEvent,
  listEventsOf,
  moveEvents,
  newEventId,
  redeliverEvents,
  shownEvent,
} from "./events.ts";
export { afterSequence, readPlace, streamCursor } from "./stream-page.ts";
export type { NewEvent } from "./event.ts";
export { findKybEvent } from "./event-store.ts";
export {
  getEndpoint,
  hasEndpoint,
  reactivateEndpoint,
  registerEndpoint,
  rotateSecret,
  takeTestPlace,
} from "./endpoints.ts";
export { webhookJobs } from "./jobs.ts";
export { forgetStreams } from "./retention.ts";
export { reportStream } from "./stream-report.ts";
export { Sender } from "./sender.ts";
export type { WebhooksContext } from "./webhooks-context.ts";

/** The sealed columns of this slice. */
export const webhookSealedColumns: readonly SealedColumn[] = [
  eventBodyColumn,
  attemptAnswerColumn,
  endpointSecretColumn,
];
