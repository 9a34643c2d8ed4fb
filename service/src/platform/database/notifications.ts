import { Client } from "pg";
import type { Db } from "./db.ts";
import { listen } from "./notification-store.ts";

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
  close(): Promise<void>;
}

const reconnectMs = 1000;
const connectWithinMs = 10_000;
/** A connection whose other end has vanished is as silent as one on which nothing happens, so it is probed. */
const askEveryMsDefault = 30_000;

type Handlers = Map<string, Set<NotificationHandler>>;

export interface NotificationOptions {
  /** Called with handler failures and lost connections. */
  onFault: (error: unknown) => void;
  /** How often the connection has to answer, and within what time; 30 s except in tests. */
  askEveryMs?: number;
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

function clientOf(
  db: Db,
  handlers: Handlers,
  { onFault, askEveryMs = askEveryMsDefault }: NotificationOptions,
): Client {
  const client = new Client({
    ...db.connectionString,
    keepAlive: true,
    connectionTimeoutMillis: connectWithinMs,
    query_timeout: askEveryMs,
  });
  client.on("error", onFault);
  client.on("notification", ({ channel, payload = "" }) =>
    dispatch(handlers, { channel, payload }, onFault),
  );
  return client;
}

/** Ends a connection that cannot listen. */
async function listenToAll(
  client: Client,
  handlers: Handlers,
  { onFault }: NotificationOptions,
): Promise<void> {
  try {
    for (const channel of handlers.keys()) await listen(client, channel);
  } catch (error) {
    client.end().catch(onFault);
    throw error;
  }
}

/** One statement at a time, because a client does not accept a second one while the first is under way. */
function inTurn(listenTo: (channel: string) => Promise<void>): typeof listenTo {
  let last: Promise<void> = Promise.resolve();
  return async (channel) => {
    last = last.then(async () => listenTo(channel));
    return last;
  };
}

/** Listens again, which changes nothing, to see whether the connection still answers. */
function keepAsking(
  handlers: Handlers,
  listenTo: (channel: string) => Promise<void>,
  { askEveryMs = askEveryMsDefault }: NotificationOptions,
): NodeJS.Timeout {
  const ask = (): void => {
    const [channel] = handlers.keys();
    if (channel !== undefined) void listenTo(channel);
  };
  return setInterval(ask, askEveryMs).unref();
}

/** For a process that ends before anything could change: nothing is ever heard, and no connection is needed. */
export const noNotifications: Notifications = {
  subscribe: async () => () => undefined,
  close: async () => undefined,
  [Symbol.asyncDispose]: async () => undefined,
};

/** Opens the listening connection; throws when the database cannot be reached the first time. */
export async function openNotifications(
  db: Db,
  options: NotificationOptions,
): Promise<Notifications> {
  const handlers: Handlers = new Map();
  let client: Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const connect = async (): Promise<void> => {
    const next = clientOf(db, handlers, options);
    next.on("end", () => {
      // A failed attempt may end after the next one succeeded.
      if (client === next || client === null) reconnectLater();
    });
    await next.connect();
    if (isClosed) return next.end();
    client = next;
    await listenToAll(next, handlers, options);
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
  /** If anything prevents this connection from listening, the next one listens to every channel. */
  const listenInTurn = inTurn(async (channel) => {
    const current = client;
    if (current === null) return;
    try {
      await listen(current, channel);
    } catch (error) {
      if (isClosed) return;
      options.onFault(error);
      current.end().catch(options.onFault);
    }
  });
  const asking = keepAsking(handlers, listenInTurn, options);
  const close = async (): Promise<void> => {
    isClosed = true;
    clearTimeout(timer);
    clearInterval(asking);
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
      await listenInTurn(channel);
      return () => handlers.get(channel)?.delete(handler);
    },
    close,
    [Symbol.asyncDispose]: close,
  };
}
