export {
  enqueueEvents,
  listKybEvents,
  type ListedEvent,
  listDeliveriesOf,
  listEventsOf,
  moveEvents,
  type NewEvent,
  newEventId,
  redeliverEvents,
  webhookSealedColumns,
} from "./events.ts";
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
export { forgetStreams } from "./retention-store.ts";
export { Sender, type WebhooksContext } from "./sender.ts";
