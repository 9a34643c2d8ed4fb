import type { Address, FieldName, Info } from "@svc/protocol";

import { MerchantError } from "./merchant-error.ts";
import type { OrderStatus } from "./order-status.ts";
import type { DataInvalidated, DataTransferred, OrderEvent, StatusUpdated } from "./order-event.ts";

/** A status of an order's history. */
export interface StatusEntry extends OrderStatus {
  sequence: number;
  attempt: number;
}

/** A triple that was delivered. */
export interface ReceivedInfo extends Info {
  attempt: number;
  /** The sequence of the event that brought it. */
  sequence: number;
}

/**
 * What is known about one order: plain data, to be stored as JSON. It is personal data, because it holds the values.
 */
export interface OrderState {
  referenceKey: string;
  user: Address;
  livemode: boolean;
  /** The newest status that an event reported; null until there is one. */
  current: StatusEntry | null;
  /** All statuses that events reported, oldest first. */
  history: readonly StatusEntry[];
  /** The newest triple of each field, sorted by field. */
  infos: readonly ReceivedInfo[];
  /** Fields that were invalidated, each with the newest attempt whose triple was reported as no longer valid. */
  invalidations: Readonly<Partial<Record<FieldName, number>>>;
}

/**
 * Adds an event to what is known about its order. Events may come late, repeated and in any order: the state depends
 * only on which events have come. An older event (by `sequence`, which continues across attempts) never replaces what a
 * newer one reported, but its status still joins the history. A repeated event changes nothing.
 *
 * @param state null before the first event
 * @throws {MerchantError} event_misplaced for an event of another order
 */
export function applyEvent(state: OrderState | null, event: OrderEvent): OrderState {
  const known = state ?? begin(event);
  const isOfOrder =
    known.referenceKey === event.referenceKey &&
    known.user === event.user &&
    known.livemode === event.livemode;
  if (!isOfOrder) throw new MerchantError("event_misplaced");
  if (event.event === "status.updated") return addStatus(known, event);
  if (event.event === "data.transferred") return addInfos(known, event);
  return addInvalidations(known, event);
}

/**
 * The triples that were not invalidated; invalidating the triple of an earlier attempt leaves that of a later one. Ask
 * `valid` before you rely on one.
 */
export function standingInfos({ infos, invalidations }: OrderState): ReceivedInfo[] {
  return infos.filter(({ field, attempt }) => attempt > (invalidations[field] ?? 0));
}

function begin({ referenceKey, user, livemode }: OrderEvent): OrderState {
  return {
    referenceKey,
    user,
    livemode,
    current: null,
    history: [],
    infos: [],
    invalidations: {},
  };
}

function addStatus(state: OrderState, event: StatusUpdated): OrderState {
  const { sequence, attempt, status, createdAt } = event;
  const { initiatedTxHash, confirmTxHash, failureReason } = event;
  const entry: StatusEntry = {
    sequence,
    attempt,
    status,
    createdAt,
    ...(initiatedTxHash !== undefined && { initiatedTxHash }),
    ...(confirmTxHash !== undefined && { confirmTxHash }),
    ...(failureReason !== undefined && { failureReason }),
  };
  if (state.history.some((each) => each.sequence === sequence)) return state;
  const history = [...state.history, entry].toSorted((one, other) => one.sequence - other.sequence);
  return { ...state, history, current: history.at(-1) ?? null };
}

function addInfos(state: OrderState, event: DataTransferred): OrderState {
  const { attempt, sequence } = event;
  const newest = new Map(state.infos.map((info) => [info.field, info]));
  for (const { field, data, pepper } of event.infos) {
    const earlier = newest.get(field);
    if (earlier === undefined || earlier.sequence < sequence)
      newest.set(field, { field, data, pepper, attempt, sequence });
  }
  const infos = [...newest.values()].toSorted((one, other) => (one.field < other.field ? -1 : 1));
  return { ...state, infos };
}

function addInvalidations(state: OrderState, event: DataInvalidated): OrderState {
  const newest = { ...state.invalidations };
  for (const field of event.fields) newest[field] = Math.max(newest[field] ?? 0, event.attempt);
  // Sorted, so that equal states are serialised to equal texts.
  const sorted = Object.entries(newest).toSorted(([one], [other]) => (one < other ? -1 : 1));
  return { ...state, invalidations: Object.fromEntries(sorted) };
}
