export {
  enqueueEvents,
  type ListedEvent,
  listEventsOf,
  type NewEvent,
  newEventId,
  redeliverEvents,
  webhookSealedColumns,
} from "./events.ts";
