export {
  enqueueEvents,
  type ListedEvent,
  listEventsOf,
  type NewEvent,
  newEventId,
  redeliverEvents,
  webhookSealedColumns,
} from "./events.ts";
export { webhookJobs } from "./jobs.ts";
export { Sender, type WebhooksContext } from "./sender.ts";
