import { Client } from "pg";
import type { Db } from "./db.ts";
import { listen } from "./notification-store.ts";

/** Called with the payload, or with "" after a gap in which notifications may have been lost. */
export type NotificationHandler = (payload: string) => void | Promise<void>;

/**
 * Push between processes by LISTEN/NOTIFY over one connection. A notification is a hint: whoever depends on one also
 * polls. After a reconnect every handler is called once with an empty payload.
 */
export interface Notifications extends AsyncDisposable {
  /**
   * Listens from the moment the promise resolves or, where the connection was lost, from the next one on, after that
   * one's empty payload. It yields the function that ends the subscription.
   */
  subscribe(channel: string, handler: NotificationHandler): Promise<() => void>;
  close(): Promise<void>;
}

const reconnectMs = 1000;
const connectWithinMs = 10_000;

type Handlers = Map<string, Set<NotificationHandler>>;

export interface NotificationOptions {
  /** Told of handler failures and lost connections. */
  onFault: (error: unknown) => void;
}

function dispatch(
  handlers: Handlers,
  message: { channel: string; payload: string },
  onFault: (error: unknown) => void,
): void {
  for (const handler of handlers.get(message.channel) ?? []) {
    Promise.try(handler, message.payload).catch(onFault);
  }
}

function clientOf(db: Db, handlers: Handlers, { onFault }: NotificationOptions): Client {
  const client = new Client({
    ...db.connectionString,
    keepAlive: true,
    connectionTimeoutMillis: connectWithinMs,
  });
  client.on("error", onFault);
  client.on("notification", ({ channel, payload = "" }) =>
    dispatch(handlers, { channel, payload }, onFault),
  );
  return client;
}

/** Opens the listening connection; throws when the database cannot be reached the first time. */
export async function openNotifications(
  db: Db,
  options: NotificationOptions,
): Promise<Notifications> {
  const handlers: Handlers = new Map();
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;
  let listening: Promise<void> = Promise.resolve();

  const connect = async (): Promise<void> => {
    const next = clientOf(db, handlers, options);
    next.on("end", () => {
      // A failed attempt may end after the next one succeeded.
      if (client === next || client === null) reconnectLater();
    });
    await next.connect();
    if (isClosed) return next.end();
    client = next;
    for (const channel of handlers.keys()) await listen(next, channel);
  };
  const reconnectLater = (): void => {
    client = null;
    if (isClosed) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      connect().then(announceGap, (error: unknown) => {
        options.onFault(error);
        reconnectLater();
      });
    }, reconnectMs);
  };
  const announceGap = (): void => {
    for (const channel of handlers.keys())
      dispatch(handlers, { channel, payload: "" }, options.onFault);
  };
  /** Whatever keeps this connection from listening, the next one listens to every channel. */
  const listenNow = async (channel: string): Promise<void> => {
    const current = client;
    if (current === null) return;
    try {
      await listen(current, channel);
    } catch (error) {
      if (isClosed) return;
      options.onFault(error);
      current.end().catch(options.onFault);
    }
  };
  const close = async (): Promise<void> => {
    isClosed = true;
    clearTimeout(timer);
    await client?.end();
  };

  try {
    await connect();
  } catch (error) {
    await close();
    throw error;
  }
  return {
    async subscribe(channel, handler) {
      const known = handlers.get(channel) ?? new Set();
      handlers.set(channel, known.add(handler));
      // One statement at a time: a client does not take a second one while the first is under way.
      listening = listening.then(async () => listenNow(channel));
      await listening;
      return () => handlers.get(channel)?.delete(handler);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
