import { createBatcher } from "./batching.ts";
import type { Db } from "./db.ts";
import { type Hearing, openListeningConnection } from "./listening-connection.ts";
import { type Notification, notifyAll } from "./notification-store.ts";

/** Called with the payload, or with "" after a gap in which notifications may have been lost. */
export type NotificationHandler = (payload: string) => void | Promise<void>;

/**
 * Push between processes by LISTEN/NOTIFY over one connection. A notification is only a hint: code that depends on one
 * also polls. After a reconnect every handler is called once with an empty payload.
 */
export interface Notifications extends AsyncDisposable {
  /**
   * Listens from the moment the promise resolves; if the connection is lost just then, from the next connection on,
   * after its empty payload. Resolves to the function that ends the subscription.
   */
  subscribe(channel: string, handler: NotificationHandler): Promise<() => void>;
  /**
   * Tells the subscribers of all processes of a change that was committed. For frequent changes: a transaction that
   * notifies holds a lock of the whole database until its commit is on disk, so no two of them share a flush
   * (`PreCommit_Notify` in PostgreSQL's `async.c`). If no other process listens, the database is not asked. If this
   * process is killed first, nobody is told.
   */
  announce(channel: string, payload: string): void;
  close(): Promise<void>;
}

type Handlers = Map<string, Set<NotificationHandler>>;

/** `onFault` is also called for handlers that failed, and for announcements that the database did not take. */
export type NotificationOptions = Pick<Hearing, "onFault" | "askEveryMs">;

function dispatch(
  handlers: Handlers,
  message: Notification,
  onFault: (error: unknown) => void,
): void {
  for (const handler of handlers.get(message.channel) ?? []) {
    Promise.try(handler, message.payload).catch(onFault);
  }
}

/** For a process that ends soon: it hears nothing, and needs no connection. */
export const noNotifications: Notifications = {
  subscribe: async () => () => undefined,
  announce: () => {
    throw new Error("a process that does not listen notifies in its own statements");
  },
  close: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Opens the listening connection. @throws if the database cannot be reached the first time */
export async function openNotifications(
  db: Db,
  options: NotificationOptions,
): Promise<Notifications> {
  const handlers: Handlers = new Map();
  const tell = (message: Notification): void => dispatch(handlers, message, options.onFault);
  const connection = await openListeningConnection(db, {
    ...options,
    channels: () => handlers.keys(),
    hear: tell,
    onGap: () => {
      for (const channel of handlers.keys()) tell({ channel, payload: "" });
    },
  });
  const notify = createBatcher<Notification, true>(async (all) => {
    await notifyAll(db, all);
    return all.map(() => true);
  });
  return {
    async subscribe(channel, handler) {
      const known = handlers.get(channel) ?? new Set();
      handlers.set(channel, known.add(handler));
      await connection.listen(channel);
      return () => handlers.get(channel)?.delete(handler);
    },
    announce(channel, payload) {
      if (connection.isAlone()) tell({ channel, payload });
      else notify({ channel, payload }).catch(options.onFault);
    },
    close: async () => connection.close(),
    [Symbol.asyncDispose]: async () => connection.close(),
  };
}
