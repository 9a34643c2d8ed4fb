import { join } from "node:path";

import { applyEvent, type OrderEvent, type OrderState } from "@svc/merchant";

import { openDirectory, removeDurably, writeDurably } from "./durable-file.ts";
import { openWatches, type Watches } from "./watches.ts";

/**
 * What people shared with the shop. This shop keeps a file for each order and reads them only at its start: a second
 * process in the same directory would overwrite them. Yours would use its database.
 */
export interface Orders {
  /**
   * Processes an event; once the promise resolves, the event survives a power cut. A repeated event changes nothing.
   */
  take: (event: OrderEvent) => Promise<void>;
  /** Deletes what is known about an order. */
  forget: (order: OrderState) => Promise<void>;
  /** The newest order of this person, and of nobody else. */
  findOf: (user: string) => OrderState | null;
  /** By user. */
  watches: Pick<Watches, "versionOf" | "next">;
}

interface StoredOrder {
  state: OrderState;
  /** Ids of the events that were processed: a repeated event is not even examined. */
  eventIds: string[];
}

export async function openOrders(directory: string): Promise<Orders> {
  const stored = await openDirectory<StoredOrder>(directory);
  const orders = new Map(stored.map((order) => [order.state.referenceKey, order]));
  const watches = openWatches();
  let writing: Promise<void> = Promise.resolve();

  const take = async (event: OrderEvent): Promise<void> => {
    const known = orders.get(event.referenceKey);
    if (known?.eventIds.includes(event.eventId) === true) return;
    const state = applyEvent(known?.state ?? null, event);
    const order = { state, eventIds: [...(known?.eventIds ?? []), event.eventId] };
    await writeDurably(join(directory, `${event.referenceKey}.json`), JSON.stringify(order));
    orders.set(event.referenceKey, order);
    watches.wake(event.user);
  };

  const forget = async ({ referenceKey, user }: OrderState): Promise<void> => {
    await removeDurably(join(directory, `${referenceKey}.json`));
    orders.delete(referenceKey);
    watches.wake(user);
  };

  // One after the other: two events of one order must not overwrite each other.
  const inTurn = (write: () => Promise<void>): Promise<void> => {
    const written = writing.then(write);
    writing = written.catch(() => undefined);
    return written;
  };

  return {
    take: (event) => inTurn(() => take(event)),
    forget: (order) => inTurn(() => forget(order)),
    findOf: (user) => {
      const own = [...orders.values()].filter(({ state }) => state.user === user);
      const newestFirst = own.toSorted((one, other) => timeOf(other) - timeOf(one));
      return newestFirst[0]?.state ?? null;
    },
    watches,
  };
}

const timeOf = ({ state }: StoredOrder): number => state.current?.createdAt ?? 0;
