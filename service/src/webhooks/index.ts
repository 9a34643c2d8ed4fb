export {
  enqueueEvents,
  listKybEvents,
  type ListedEvent,
  deliveryMembers,
  eventMembers,
  eventPagesHint,
  listDeliveriesOf,
  listEventsOf,
  moveEvents,
  newEventId,
  redeliverEvents,
  webhookSealedColumns,
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
export { Sender } from "./sender.ts";
export type { WebhooksContext } from "./webhooks-context.ts";
