import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";

import { applyEvent, type OrderEvent, type OrderState } from "@svc/merchant";

/** What people shared with the shop. This one keeps a file for each order; yours does so in its database. */
export interface Orders {
  /** Takes an event in; once it resolves, the event survives a power cut. A repeated one changes nothing. */
  take: (event: OrderEvent) => Promise<void>;
  /** The newest order of this person; of nobody else. */
  findOf: (user: string) => OrderState | null;
  /** How often the orders of this person have changed since the shop opened. */
  versionOf: (user: string) => number;
  /** Resolves at the next change of this person's orders, or after `timeoutMs`. */
  nextChange: (user: string, timeoutMs: number) => Promise<void>;
}

interface StoredOrder {
  state: OrderState;
  /** Of the events that were taken in: a repeated one is not even looked at. */
  eventIds: string[];
}

/**
 * Opens the orders of a directory, which is made when it is missing. Only the shop's own system user can read it: the
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
    await writeOrder(directory, order);
    orders.set(event.referenceKey, order);
    watches.wake(event.user);
  };

  return {
    take: (event) => {
      // One after the other: two events of one order must not overwrite each other.
      const taken = writing.then(() => take(event));
      writing = taken.catch(() => undefined);
      return taken;
    },
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
    // A write that was cut off; its event comes again.
    if (name.endsWith(".new")) await rm(path);
    if (!name.endsWith(".json")) continue;
    const order = JSON.parse(await readFile(path, "utf8")) as StoredOrder;
    orders.set(order.state.referenceKey, order);
  }
  return orders;
}

/** Writes beside the file, makes sure that it is on the disk, and only then takes the old one's place. */
async function writeOrder(directory: string, order: StoredOrder): Promise<void> {
  const path = join(directory, `${order.state.referenceKey}.json`);
  const file = await open(`${path}.new`, "w", 0o600);
  try {
    await file.writeFile(JSON.stringify(order));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(`${path}.new`, path);
  const parent = await open(directory, "r");
  try {
    await parent.sync();
  } finally {
    await parent.close();
  }
}

/** Pages that wait at once; more get their answer at once, and ask again. */
const waitingMax = 1000;

function openWatches() {
  const versions = new Map<string, number>();
  const waiting = new Map<string, Set<() => void>>();
  let count = 0;
  return {
    versionOf: (user: string) => versions.get(user) ?? 0,
    wake: (user: string) => {
      versions.set(user, (versions.get(user) ?? 0) + 1);
      for (const go of waiting.get(user) ?? []) go();
    },
    next: async (user: string, timeoutMs: number) => {
      if (count >= waitingMax) return;
      count += 1;
      const { promise, resolve } = Promise.withResolvers<void>();
      const own = waiting.get(user) ?? new Set();
      waiting.set(user, own.add(resolve));
      const timer = setTimeout(resolve, timeoutMs).unref();
      try {
        await promise;
      } finally {
        clearTimeout(timer);
        own.delete(resolve);
        if (own.size === 0 && waiting.get(user) === own) waiting.delete(user);
        count -= 1;
      }
    },
  };
}
