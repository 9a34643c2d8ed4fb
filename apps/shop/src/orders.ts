import { mkdir, readdir, readFile, rm } from "node:fs/promises";
import { join } from "node:path";

import { applyEvent, type OrderEvent, type OrderState } from "@svc/merchant";

import { removeDurably, writeDurably } from "./durable-file.ts";
import { openWatches } from "./watches.ts";

/**
 * What people shared with the shop. This shop keeps a file for each order, and knows only the events that it took
 * itself: a second process in the same directory would write over them. Yours would use its database.
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
  /** Another number after each change of this person's orders. */
  versionOf: (user: string) => number;
  /** Resolves at the next change of this person's orders, or after `timeoutMs`. */
  nextChange: (user: string, timeoutMs: number) => Promise<void>;
}

interface StoredOrder {
  state: OrderState;
  /** Ids of the events that were processed: a repeated event is not even examined. */
  eventIds: string[];
}

/**
 * Opens the orders of a directory, which is created if it is missing. Only the shop's own system user can read it: the
 * values are in these files.
 */
export async function openOrders(directory: string): Promise<Orders> {
  await mkdir(directory, { recursive: true, mode: 0o700 });
  const orders = await readOrders(directory);
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
    versionOf: watches.versionOf,
    nextChange: watches.next,
  };
}

const timeOf = ({ state }: StoredOrder): number => state.current?.createdAt ?? 0;

async function readOrders(directory: string): Promise<Map<string, StoredOrder>> {
  const orders = new Map<string, StoredOrder>();
  for (const name of await readdir(directory)) {
    const path = join(directory, name);
    // A write that was interrupted; its event will be sent again.
    if (name.endsWith(".new")) await rm(path);
    if (!name.endsWith(".json")) continue;
    const order = JSON.parse(await readFile(path, "utf8")) as StoredOrder;
    orders.set(order.state.referenceKey, order);
  }
  return orders;
}
