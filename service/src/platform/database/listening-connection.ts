import { Client } from "pg";
import type { Db } from "./db.ts";
import { withSessionOptions } from "./session-settings.ts";
import * as store from "./notification-store.ts";

/** One connection that listens, replaced by another when it is lost. */
export interface ListeningConnection {
  /**
   * Resolves once the channel is listened to. If the connection is lost just then, the next one listens to it before
   * {@link Hearing.onGap} is called.
   */
  listen(channel: string): Promise<void>;
  /** Whether no other process listens; false where that is not known. */
  isAlone(): boolean;
  close(): Promise<void>;
}

/** The callbacks of a listening connection. */
export interface Hearing {
  /** The channels that a new connection listens to. */
  readonly channels: () => Iterable<string>;
  readonly hear: (message: store.Notification) => void;
  /** Another connection listens now; what was notified in between is lost. */
  readonly onGap: () => void;
  /** Called with lost connections. */
  readonly onFault: (error: unknown) => void;
  /** How often the connection has to answer, and within what time; 30 s except in tests. */
  readonly askEveryMs?: number;
}

const reconnectMs = 1000;
const connectWithinMs = 10_000;
/** A connection whose other end has vanished is as silent as one on which nothing happens, so it is probed. */
const askEveryMsDefault = 30_000;

/** Whether other processes listen. Each announces its arrival; that one has left is noticed at the next count. */
interface Company {
  isAlone(): boolean;
  /** Somebody has arrived, or may have arrived unheard. */
  doubt(): void;
  count(client: Client): Promise<void>;
}

function watchCompany(): Company {
  let isAlone = false;
  let doubts = 0;
  return {
    isAlone: () => isAlone,
    doubt: () => {
      doubts += 1;
      isAlone = false;
    },
    count: async (client) => {
      // A connection that does not answer hears of no arrivals.
      isAlone = false;
      const before = doubts;
      const count = await store.countListeners(client);
      isAlone = count === 1 && doubts === before;
    },
  };
}

function clientOf(db: Db, hearing: Hearing, company: Company): Client {
  const client = new Client({
    ...withSessionOptions(db.connectionString),
    keepAlive: true,
    connectionTimeoutMillis: connectWithinMs,
    query_timeout: hearing.askEveryMs ?? askEveryMsDefault,
  });
  client.on("error", hearing.onFault);
  client.on("notification", ({ channel, payload = "" }) => {
    if (channel === store.arrivalChannel) company.doubt();
    else hearing.hear({ channel, payload });
  });
  return client;
}

/** Listens to every channel, or ends the connection. */
async function beginListening(client: Client, { channels, onFault }: Hearing): Promise<void> {
  try {
    for (const channel of [store.arrivalChannel, ...channels()])
      await store.listen(client, channel);
    await store.joinListeners(client);
  } catch (error) {
    client.end().catch(onFault);
    throw error;
  }
}

/** One task at a time, because a client does not accept a second statement while the first is under way. */
function inTurn(): (task: () => Promise<void>) => Promise<void> {
  let last: Promise<void> = Promise.resolve();
  return async (task) => {
    const ended = last.then(task);
    last = ended.catch(() => undefined);
    return ended;
  };
}

/** @throws if the database cannot be reached the first time */
export async function openListeningConnection(
  db: Db,
  hearing: Hearing,
): Promise<ListeningConnection> {
  const { onFault, onGap, askEveryMs = askEveryMsDefault } = hearing;
  const company = watchCompany();
  let client: Client | null = null;
  /**
   * A connection that is being ended for a fault. Tasks that still wait for their turn on it are skipped: the next
   * connection listens to every channel.
   */
  let faulty: Client | null = null;
  let timer: NodeJS.Timeout | undefined;
  let isClosed = false;

  const connect = async (): Promise<void> => {
    const next = clientOf(db, hearing, company);
    next.on("end", () => {
      // If connecting fails, the promise rejects, and this event may come while the next attempt is under way.
      if (client === next) reconnectLater();
    });
    await next.connect();
    if (isClosed) return next.end();
    client = next;
    await turns(async () => beginListening(next, hearing));
    await ask();
  };
  const reconnectLater = (): void => {
    client = null;
    company.doubt();
    if (isClosed) return;
    clearTimeout(timer);
    timer = setTimeout(() => {
      connect().then(onGap, (error: unknown) => {
        onFault(error);
        reconnectLater();
      });
    }, reconnectMs);
  };
  const turns = inTurn();
  /** Runs a task on the connection, and ends the connection if it fails: the next one listens to every channel. */
  const onClient = async (work: (current: Client) => Promise<void>): Promise<void> =>
    turns(async () => {
      const current = client;
      if (current === null || current === faulty) return;
      try {
        await work(current);
      } catch (error) {
        if (isClosed) return;
        onFault(error);
        faulty = current;
        current.end().catch(onFault);
      }
    });
  /** The count also shows whether the connection still answers. */
  const ask = async (): Promise<void> => onClient(async (current) => company.count(current));
  const asking = setInterval(() => void ask(), askEveryMs).unref();
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
  const listen = async (channel: string): Promise<void> =>
    onClient(async (current) => store.listen(current, channel));
  return { listen, isAlone: () => company.isAlone(), close };
}
