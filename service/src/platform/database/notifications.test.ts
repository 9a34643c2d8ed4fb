import assert from "node:assert/strict";
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { after, test, type TestContext } from "node:test";
import { advisoryLocks } from "./advisory-locks.ts";
import { openDb, sql } from "./db.ts";
import { openNotifications, type Notifications } from "./notifications.ts";
import { openTestDatabase } from "./test-database.ts";
import { holdTimers } from "../../../../test/held-timers.ts";
import { until } from "../../../../test/patience.ts";

const database = await openTestDatabase();
const db = openDb({ ...database.connection, connections: 2 });
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});

const notify = async (channel: string, payload: string): Promise<unknown> =>
  db.query(sql`select pg_notify(${channel}, ${payload})`);

interface Inbox {
  readonly handler: (payload: string) => void;
  /** The next payload, in the order of arrival. */
  next(): Promise<string>;
}

function openInbox(): Inbox {
  const kept: string[] = [];
  const waiting: ((payload: string) => void)[] = [];
  return {
    handler(payload) {
      const resolve = waiting.shift();
      if (resolve === undefined) kept.push(payload);
      else resolve(payload);
    },
    async next() {
      const first = kept.shift();
      if (first !== undefined) return first;
      return new Promise((resolve) => void waiting.push(resolve));
    },
  };
}

async function open(faults: unknown[] = [], askEveryMs?: number): Promise<Notifications> {
  const options = askEveryMs === undefined ? {} : { askEveryMs };
  return openNotifications(db, { onFault: (error) => faults.push(error), ...options });
}

/** Ends the listening connections of this database as a restart would. */
async function breakListeners(): Promise<void> {
  await db.query(sql`
    select pg_terminate_backend(pid, 5000) from pg_locks
    where locktype = 'advisory' and objid = ${advisoryLocks.listeners} and pid in (
      select pid from pg_stat_activity where datname = current_database())`);
}

test("a notification reaches every subscriber of its channel with its payload", async () => {
  await using notifications = await open();
  const [one, two, other] = [openInbox(), openInbox(), openInbox()];
  await notifications.subscribe("login", one.handler);
  await notifications.subscribe("login", two.handler);
  await notifications.subscribe("other", other.handler);
  await notify("login", "id 1");
  await notify("other", "id 2");
  assert.deepEqual(await Promise.all([one.next(), two.next(), other.next()]), [
    "id 1",
    "id 1",
    "id 2",
  ]);
});

test("a subscription that ended hears nothing more", async () => {
  await using notifications = await open();
  const [ended, kept] = [openInbox(), openInbox()];
  const unsubscribe = await notifications.subscribe("login", ended.handler);
  await notifications.subscribe("login", kept.handler);
  unsubscribe();
  await notify("login", "id 1");
  assert.equal(await kept.next(), "id 1");
  ended.handler("nothing came before this");
  assert.equal(await ended.next(), "nothing came before this");
});

test("a handler that fails is reported and hinders no other", async () => {
  const faults: unknown[] = [];
  await using notifications = await open(faults);
  const inbox = openInbox();
  await notifications.subscribe("login", () => {
    throw new Error("handler");
  });
  await notifications.subscribe("login", async () => Promise.reject(new Error("later")));
  await notifications.subscribe("login", inbox.handler);
  await notify("login", "id 1");
  assert.equal(await inbox.next(), "id 1");
  await notify("login", "id 2");
  assert.equal(await inbox.next(), "id 2");
  assert.ok(faults.length >= 2);
});

test("after a lost connection every handler hears of the gap, and then of what follows", async () => {
  const faults: unknown[] = [];
  await using notifications = await open(faults);
  const [login, clock] = [openInbox(), openInbox()];
  await notifications.subscribe("login", login.handler);
  await notifications.subscribe("clock", clock.handler);
  await breakListeners();
  await notify("login", "lost");
  assert.deepEqual(await Promise.all([login.next(), clock.next()]), ["", ""]);
  await notify("login", "id 1");
  assert.equal(await login.next(), "id 1");
  assert.ok(faults.length > 0);
});

test("who subscribes while the connection is lost hears of what follows", async () => {
  await using notifications = await open();
  const [before, during] = [openInbox(), openInbox()];
  await notifications.subscribe("login", before.handler);
  await breakListeners();
  await notifications.subscribe("during", during.handler);
  assert.equal(await before.next(), "");
  await notify("during", "id 1");
  const heard = await during.next();
  assert.equal(heard === "" ? await during.next() : heard, "id 1");
});

/** Statements that the database is asked while something happens. */
async function callsOf(work: () => Promise<unknown>): Promise<number> {
  const before = db.callsTotal;
  await work();
  return db.callsTotal - before;
}

test("what a process announces reaches its own subscribers without the database where no other listens", async () => {
  await using notifications = await open();
  const inbox = openInbox();
  await notifications.subscribe("login", inbox.handler);
  const calls = await callsOf(async () => {
    notifications.announce("login", "id 1");
    assert.equal(await inbox.next(), "id 1");
  });
  assert.equal(calls, 0);
});

test("what one of two processes announces reaches both, once each and in order, by few statements", async () => {
  await using first = await open();
  const [near, far] = [openInbox(), openInbox()];
  await first.subscribe("login", near.handler);
  await using second = await open();
  await second.subscribe("login", far.handler);
  // What is notified after the second one's arrival is heard after it.
  await notify("login", "both listen");
  await Promise.all([near.next(), far.next()]);
  const ids = Array.from({ length: 20 }, (_, at) => `id ${at}`);
  const calls = await callsOf(async () => {
    for (const id of ids) first.announce("login", id);
    for (const id of ids) assert.deepEqual(await Promise.all([near.next(), far.next()]), [id, id]);
  });
  assert.equal(calls, 1);
});

test("a process that is left by the others asks the database no more", async () => {
  await using first = await open([], 2_000);
  const second = await open();
  const inbox = openInbox();
  await first.subscribe("login", inbox.handler);
  await notify("login", "both listen");
  await inbox.next();
  const announcing = async (): Promise<void> => {
    first.announce("login", "id 1");
    await inbox.next();
  };
  assert.equal(await callsOf(announcing), 1);
  await second.close();
  await until("it knows that it is alone", async () =>
    (await callsOf(announcing)) === 0 ? true : null,
  );
});

test("a process whose listening connection is lost announces to the others", async () => {
  await using first = await open();
  const [near, far] = [openInbox(), openInbox()];
  await first.subscribe("login", near.handler);
  await breakListeners();
  await using second = await open();
  await second.subscribe("login", far.handler);
  first.announce("login", "id 1");
  assert.equal(await far.next(), "id 1");
  assert.equal(await near.next(), "", "its own subscribers hear of the gap");
});

test("an announcement that the database does not take is reported, and fails nobody", async () => {
  const faults: unknown[] = [];
  const far = openDb({ ...database.connection, connections: 1 });
  await using first = await openNotifications(far, { onFault: (error) => faults.push(error) });
  await using second = await open();
  await second.subscribe("login", () => undefined);
  const inbox = openInbox();
  await first.subscribe("login", inbox.handler);
  await notify("login", "both listen");
  await inbox.next();
  await far.close();
  first.announce("login", "id 1");
  await until("it is reported", async () => (faults.length > 0 ? true : null));
});

/** The timers of this process that begin from now on and are neither over nor cleared: others end at any moment. */
function watchTimers(t: TestContext): ReadonlySet<unknown> {
  const left = new Set<unknown>();
  for (const kind of ["Timeout", "Interval"] as const) {
    const [set, clear] = [globalThis[`set${kind}`], globalThis[`clear${kind}`]];
    t.mock.method(globalThis, `set${kind}`, ((work: () => void, ms: number) => {
      const timer = set(() => {
        if (kind === "Timeout") left.delete(timer);
        work();
      }, ms);
      left.add(timer);
      return timer;
    }) as never);
    t.mock.method(globalThis, `clear${kind}`, (timer: NodeJS.Timeout) => {
      left.delete(timer);
      clear(timer);
    });
  }
  return left;
}

test("a database that cannot be reached at the start is told, and not tried again", async (t) => {
  const faults: unknown[] = [];
  await using gone = openDb({ ...database.connection, database: "absent", connections: 1 });
  const opening = openNotifications(gone, { onFault: (error) => faults.push(error) });
  await assert.rejects(opening, /absent/);
  const timers = watchTimers(t);
  await assert.rejects(openNotifications(gone, { onFault: () => undefined }), /absent/);
  assert.deepEqual([...timers], []);
});

test("closing while the connection is lost leaves no connection behind", async () => {
  const notifications = await open();
  await notifications.subscribe("login", () => undefined);
  await breakListeners();
  await notifications.close();
  const [row] = await db.query<{ count: number }>(sql`
    select count(*) as count from pg_stat_activity
    where datname = current_database() and (query like 'listen %' or query like '%pg_locks%') and pid <> pg_backend_pid()`);
  assert.equal(row?.count, 0);
});

interface Proxy extends AsyncDisposable {
  readonly port: number;
  /** Connections that are open, numbered from 0 in the order in which they began. */
  readonly alive: ReadonlySet<number>;
}

/** A proxy in front of the database. Messages of a connection may be dropped, or answered instead. */
async function openProxy(
  passes: (connection: number, chunk: Buffer) => boolean | Buffer,
): Promise<Proxy> {
  const { host, port } = database.connection;
  const alive = new Set<number>();
  let count = 0;
  const server = createServer((near) => {
    const far = connect(`${host}/.s.PGSQL.${port}`);
    const number = count;
    count += 1;
    alive.add(number);
    far.on("data", (chunk: Buffer) => passes(number, chunk) === true && near.write(chunk));
    near.on("data", (chunk: Buffer) => {
      const answer = passes(number, chunk);
      if (answer === true) far.write(chunk);
      else if (answer !== false) near.write(answer);
    });
    near.on("close", () => alive.delete(number));
    for (const side of [near, far])
      side
        .on("error", () => undefined)
        .on("close", () => [near, far].map((each) => each.destroy()));
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  return {
    port: (server.address() as AddressInfo).port,
    alive,
    [Symbol.asyncDispose]: async () => void server.close(),
  };
}

const askEveryMs = 2_000;

/** Listens through a proxy, to a database that is asked every 2 s; the time to answer passes only if the test says so. */
async function openBehind(
  proxy: Proxy,
  stack: AsyncDisposableStack,
  onFault: (error: unknown) => void = () => undefined,
): Promise<Notifications> {
  const there = { ...database.connection, host: "127.0.0.1", port: proxy.port, connections: 1 };
  const far = stack.use(openDb(there));
  return stack.use(await openNotifications(far, { onFault, askEveryMs }));
}

test("a connection whose other end vanished without a word is given up, and its gap is announced", async () => {
  let isLost = false;
  await using stack = new AsyncDisposableStack();
  const bound = stack.use(holdTimers(askEveryMs));
  const unanswered = Promise.withResolvers<void>();
  const proxy = stack.use(
    await openProxy((connection) => {
      if (!isLost || connection !== 0) return true;
      unanswered.resolve();
      return false;
    }),
  );
  const notifications = await openBehind(proxy, stack);
  const inbox = openInbox();
  await notifications.subscribe("login", inbox.handler);
  isLost = true;
  await unanswered.promise;
  bound.pass();
  assert.equal(await inbox.next(), "", "what was told meanwhile is lost");
  await notify("login", "id 1");
  assert.equal(await inbox.next(), "id 1");
});

/** What a statement is answered that took too long (PostgreSQL documentation, Message Formats: ErrorResponse, ReadyForQuery). */
const cancelled = Buffer.concat([
  Buffer.from("E\0\0\0\x1dSERROR\0C57014\0Mcancelled\0\0", "latin1"),
  Buffer.from("Z\0\0\0\x05I", "latin1"),
]);

test("a new connection that cannot listen is ended, and another is opened", async () => {
  await using stack = new AsyncDisposableStack();
  stack.use(holdTimers(askEveryMs));
  const proxy = stack.use(
    await openProxy((connection, chunk) =>
      connection === 1 && chunk.includes("listen") ? cancelled : true,
    ),
  );
  const notifications = await openBehind(proxy, stack);
  const inbox = openInbox();
  await notifications.subscribe("login", inbox.handler);
  await breakListeners();
  assert.equal(await inbox.next(), "");
  assert.deepEqual([...proxy.alive], [2]);
  await notify("login", "id 1");
  assert.equal(await inbox.next(), "id 1");
});

const channelOf = (at: number): string => `channel_${at}`;

test("a connection that fails is ended once, however many wait to listen on it, and the next serves them all", async () => {
  const faults: unknown[] = [];
  await using stack = new AsyncDisposableStack();
  stack.use(holdTimers(askEveryMs));
  const proxy = stack.use(
    await openProxy((connection, chunk) =>
      connection === 0 && chunk.includes("channel_0") ? cancelled : true,
    ),
  );
  const notifications = await openBehind(proxy, stack, (error) => faults.push(error));
  const inboxes = Array.from({ length: 12 }, openInbox);
  await Promise.all(
    inboxes.map(async ({ handler }, at) => notifications.subscribe(channelOf(at), handler)),
  );
  assert.equal(faults.length, 1, String(faults));
  for (const inbox of inboxes) assert.equal(await inbox.next(), "");
  await Promise.all(inboxes.map(async (_, at) => notify(channelOf(at), `id ${at}`)));
  for (const [at, inbox] of inboxes.entries()) assert.equal(await inbox.next(), `id ${at}`);
});

test("a failed attempt to listen that ends late leads to no second connection beside the next", async (t) => {
  const sockets = new Map<number, Socket>();
  const { host, port } = database.connection;
  const hasEnded = Promise.withResolvers<void>();
  const server = createServer({ allowHalfOpen: true }, (near) => {
    const number = sockets.size;
    sockets.set(number, near);
    const far = connect(`${host}/.s.PGSQL.${port}`);
    far.pipe(near, { end: false });
    near.on("data", (chunk: Buffer) => {
      if (number === 1 && chunk.includes("listen")) near.write(cancelled);
      else void (number === 2 ? hasEnded.promise : Promise.resolve()).then(() => far.write(chunk));
      // The attempt before ends while this one is under way.
      if (number === 2) sockets.get(1)?.end(hasEnded.resolve);
    });
    near.on("end", () => far.end());
    for (const side of [near, far]) side.on("error", () => undefined);
    far.on("close", () => number !== 1 && near.end());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  t.after(() => server.close());
  const there = {
    ...database.connection,
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    connections: 1,
  };
  await using far = openDb(there);
  const timers = t.mock.method(globalThis, "setTimeout");
  await using notifications = await openNotifications(far, { onFault: () => undefined });
  const inbox = openInbox();
  await notifications.subscribe("login", inbox.handler);
  await breakListeners();
  assert.equal(await inbox.next(), "");
  await notify("login", "id 1");
  assert.equal(await inbox.next(), "id 1");
  const attempts = timers.mock.calls.filter(({ arguments: [, ms] }) => ms === 1_000);
  assert.equal(attempts.length, 2, "after the loss, and after the attempt that failed");
});

test("a process that asks whether it is alone, and hears no answer, announces to the others", async () => {
  let isLost = false;
  await using stack = new AsyncDisposableStack();
  stack.use(holdTimers(askEveryMs));
  const proxy = stack.use(await openProxy((connection) => !(isLost && connection === 0)));
  const there = { ...database.connection, host: "127.0.0.1", port: proxy.port, connections: 1 };
  const far = stack.use(openDb(there));
  const faults: unknown[] = [];
  const options = { onFault: (error: unknown) => void faults.push(error), askEveryMs };
  const first = stack.use(await openNotifications(far, options));
  isLost = true;
  const second = stack.use(await open());
  const inbox = openInbox();
  await second.subscribe("login", inbox.handler);
  const heard = inbox.next();
  let isHeard = false;
  void heard.then(() => (isHeard = true));
  await until("the other hears of it", async () => {
    first.announce("login", "id 1");
    return isHeard ? true : null;
  });
  assert.deepEqual(faults, [], "before the connection is given up");
});
