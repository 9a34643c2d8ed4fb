import { setTimeout as delay } from "node:timers/promises";
import {
  Pool,
  types as pgTypes,
  type CustomTypesConfig,
  type PoolClient,
  type PoolConfig,
} from "pg";
import { sha256 } from "../cryptography/sha256.ts";
import { deadlockState, isOutdated, isUseless, sqlState } from "./database-fault.ts";
import { type ColumnTypes, PreparedQuery } from "./prepared-query.ts";
import { statementTimeoutSeconds, withSessionOptions } from "./session-settings.ts";

/** A statement written with {@link sql}: its text never holds a value, so it is prepared once per connection by name. */
export interface Statement {
  readonly name: string;
  readonly text: string;
  readonly values: readonly unknown[];
}

export interface Queryable {
  /** Runs one statement and returns its rows. Integers of 8 bytes come as numbers; cast money to text and read it as bigint. */
  query<Row extends object>(statement: Statement): Promise<Row[]>;
}

/**
 * A single statement is a transaction of its own. If PostgreSQL aborts it to end a deadlock, it runs again, at most
 * three times in all. It also runs again if a migration of the next version changed the columns of its table.
 */
export interface Db extends Queryable, AsyncDisposable {
  /**
   * Runs `work` in one transaction (read committed); rolls back and throws if `work` throws, or if it swallowed the
   * error of a statement. It runs again for the reasons above, so `work` must change nothing but the database.
   */
  transaction<T>(work: (tx: Queryable) => Promise<T>): Promise<T>;
  /**
   * Round trips so far: statements, and ends of transactions. A transaction begins with its first statement. Tests count
   * calls per operation with it.
   */
  readonly callsTotal: number;
  /**
   * Commits of {@link Db.transaction} sent so far. After an outage, it is not known whether the last one took effect.
   */
  readonly commitsTotal: number;
  readonly connectionString: PoolConfig;
  close(): Promise<void>;
}

/** Text of a statement that several statements share; {@link columns} makes it. */
class SharedText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/**
 * Writes the columns that several statements select, as a constant of their store. It takes no values, so none can
 * become text.
 */
export function columns(strings: TemplateStringsArray): SharedText {
  return new SharedText(strings.join(""));
}

interface Prepared {
  readonly name: string;
  readonly text: string;
  /** Values that became part of the text instead of parameters. */
  readonly shared: ReadonlySet<unknown>;
}

const prepared = new WeakMap<TemplateStringsArray, Prepared>();

function prepare(strings: TemplateStringsArray, values: readonly unknown[]): Prepared {
  const known = prepared.get(strings);
  if (known !== undefined) return known;
  const shared = new Set<unknown>();
  let parameters = 0;
  const text = strings.reduce((joined, part, index) => {
    const value = values[index - 1];
    if (!(value instanceof SharedText)) return `${joined}$${(parameters += 1)}${part}`;
    shared.add(value);
    return `${joined}${value.text}${part}`;
  });
  const made = { name: nameOfText(text), text, shared };
  prepared.set(strings, made);
  return made;
}

/** The name under which connections know a prepared statement. */
export function nameOfText(text: string): string {
  return sha256(text).toString("hex").slice(0, 32);
}

/**
 * Writes a named prepared statement. Every `${value}` becomes a parameter, never text; only {@link columns} are text,
 * and a place in a statement always takes the same ones.
 *
 * A statement is planned once per connection, perhaps while its table is empty, and anew when PostgreSQL has analyzed the
 * table, which it does after a tenth of it has changed. If a statement finds its row by an id and its text also names the
 * status of a partial index, a plan that was made while nothing had that status may read all that has it until then.
 * Pass the status as a value there: then the partial index does not fit, and the id is all there is to go by.
 */
export function sql(strings: TemplateStringsArray, ...values: unknown[]): Statement {
  const { name, text, shared } = prepare(strings, values);
  const parameters = shared.size === 0 ? values : values.filter((value) => !shared.has(value));
  return { name, text, values: parameters };
}

const int8Oid = 20;
const byteaOid = 17;
const byteaArrayOid = 1001;
type Parse = (text: string) => unknown;
const getTypeParser = pgTypes.getTypeParser as (oid: number, format?: string) => Parse;
const readBytes = getTypeParser(byteaOid) as (text: string) => Buffer;
const readByteArray = getTypeParser(byteaArrayOid) as (text: string) => (Buffer | null)[];

/**
 * Node cuts small buffers from a shared block of 64 KiB, all of which lives as long as any of them: a hash of 32 bytes in
 * a row that is remembered would take two thousand times its size.
 */
function ownBytes(bytes: Buffer): Buffer {
  const own = Buffer.allocUnsafeSlow(bytes.length);
  bytes.copy(own);
  return own;
}

const ownParsers: ReadonlyMap<number, Parse> = new Map<number, Parse>([
  // Seconds, counters and ids of 8 bytes stay far below 2^53 here.
  [int8Oid, Number],
  [byteaOid, (text) => ownBytes(readBytes(text))],
  [
    byteaArrayOid,
    (text) => readByteArray(text).map((each) => (each === null ? null : ownBytes(each))),
  ],
]);

const types: CustomTypesConfig & ColumnTypes = {
  getTypeParser: (oid: number, format?: "text" | "binary") =>
    ownParsers.get(oid) ?? getTypeParser(oid, format),
};

/**
 * Pool and client also accept queries that write their own messages, but the driver's types declare only one argument.
 */
interface Submitting {
  query<Row extends object>(
    query: PreparedQuery<Row>,
    values: undefined,
    callback: (error: unknown, done?: PreparedQuery<Row>) => void,
  ): void;
}

async function runPrepared<Row extends object>(
  on: Pool | PoolClient,
  query: PreparedQuery<Row>,
): Promise<Row[]> {
  const { promise, resolve, reject } = Promise.withResolvers<Row[]>();
  (on as unknown as Submitting).query(query, undefined, (error) => {
    if (error === null || error === undefined) resolve(query.rows);
    else reject(error instanceof Error ? error : new Error("a statement failed"));
  });
  try {
    return await promise;
  } catch (error) {
    // The error's own stack leads to the socket; what helps to find the fault is the stack that leads to the statement.
    if (error instanceof Error) Error.captureStackTrace(error);
    throw error;
  }
}

const deadlockTriesMax = 3;
/**
 * Long enough for the session that waited to wake up and proceed: nothing else would prevent this side from locking the
 * same row again.
 */
const deadlockPauseMs = 20;

class Rehearsed<T> extends Error {
  readonly found: T;

  constructor(found: T) {
    super("rehearsed");
    this.found = found;
  }
}

/** Runs `work` in a transaction that is always rolled back. @returns what `work` returned */
export async function rehearse<T>(db: Db, work: (tx: Queryable) => Promise<T>): Promise<T> {
  try {
    return await db.transaction(async (tx) => {
      throw new Rehearsed(await work(tx));
    });
  } catch (error) {
    if (error instanceof Rehearsed) return error.found as T;
    throw error;
  }
}

/** An outdated statement costs its connection: all `connections` may have to be replaced before one is new. */
async function runAgain<T>(connections: number, attempt: () => Promise<T>): Promise<T> {
  for (let tries = 1; ; tries += 1) {
    try {
      return await attempt();
    } catch (error) {
      const isDeadlock = sqlState(error) === deadlockState && tries < deadlockTriesMax;
      if (!isDeadlock && !(isOutdated(error) && tries <= connections)) throw error;
      if (isDeadlock) await delay(deadlockPauseMs * tries);
    }
  }
}

/** How much one process has sent to the database. */
interface Sent {
  calls: number;
  commits: number;
}

async function run<Row extends object>(
  on: Pool | PoolClient,
  statement: Statement,
  sent: Sent,
): Promise<Row[]> {
  sent.calls += 1;
  if (statement.name === "")
    return (await on.query<Row>(statement.text, [...statement.values])).rows;
  return runPrepared(on, new PreparedQuery<Row>(statement, types));
}

/**
 * One transaction on a connection of its own. Its `begin` leaves in the same write as the first statement, which saves
 * a round trip; without a statement, nothing begins.
 */
class Transaction implements Queryable {
  readonly #client: PoolClient;
  readonly #sent: Sent;
  #first: Pick<PreparedQuery<object>, "hasBegun" | "wasRefused"> | undefined;
  /** Rejects if the first statement failed before the transaction had begun; undefined before there is one. */
  #begun: Promise<void> | undefined;
  /** Commit or rollback was requested: a later statement on this connection would run outside of this transaction. */
  #isOver = false;

  constructor(client: PoolClient, sent: Sent) {
    this.#client = client;
    this.#sent = sent;
  }

  async query<Row extends object>(statement: Statement): Promise<Row[]> {
    if (this.#isOver) throw new Error("the transaction is over");
    if (this.#begun === undefined) return this.#runFirst<Row>(statement);
    // If the first statement is never sent, one that was issued beside it would run as a transaction of its own.
    await this.#begun;
    return run(this.#client, statement, this.#sent);
  }

  async #runFirst<Row extends object>(statement: Statement): Promise<Row[]> {
    const begins = Promise.withResolvers<void>();
    this.#begun = begins.promise;
    this.#begun.catch(() => undefined);
    // The driver writes a statement without a name itself, so an empty one begins the transaction before it.
    const first = statement.name === "" ? sql`select` : statement;
    const query = new PreparedQuery<Row>(first, types, { begins: true });
    this.#first = query;
    this.#sent.calls += 1;
    try {
      const rows = await runPrepared(this.#client, query);
      return first === statement ? rows : await run<Row>(this.#client, statement, this.#sent);
    } catch (error) {
      if (!query.hasBegun) begins.reject(error);
      throw error;
    } finally {
      begins.resolve();
    }
  }

  /** @throws Error if a statement had failed, so that nothing was changed */
  async commit(): Promise<void> {
    this.#isOver = true;
    if (this.#begun === undefined) return;
    await this.#begun;
    // PostgreSQL answers the commit of a failed transaction by rolling back, without an error.
    if ((await this.#end("commit")) !== "COMMIT")
      throw new Error("the transaction was rolled back: a statement in it had failed");
  }

  /** @throws unknown if the connection may be left in a transaction, or is of no use */
  async rollBack(): Promise<void> {
    this.#isOver = true;
    try {
      await this.#begun;
    } catch (error) {
      // An unanswered `begin` may be carried out yet.
      if (this.#first?.wasRefused !== true) throw error;
    }
    if (this.#first?.hasBegun === true) await this.#end("rollback");
  }

  async #end(text: "commit" | "rollback"): Promise<string> {
    this.#sent.calls += 1;
    if (text === "commit") this.#sent.commits += 1;
    const { command } = await this.#client.query(text);
    return command;
  }
}

/**
 * Opens the connection pool of one process. Every statement ends after 30 s at the latest, or 5 s later if the host of
 * the database has silently vanished. A statement waits 5 s for a lock, and a transaction in which nothing happens for
 * 15 s is ended, so that a suspended process does not keep others waiting.
 */
export function openDb(connection: PoolConfig & { connections: number }): Db {
  const { connections, ...rest } = connection;
  const options = {
    query_timeout: 35_000,
    ...withSessionOptions(rest),
    max: connections,
    types,
    statement_timeout: statementTimeoutSeconds * 1000,
    connectionTimeoutMillis: 10_000,
  };
  const pool = new Pool(options);
  // An idle connection that breaks (database restart) is replaced by the pool; the next statement reports what matters.
  pool.on("error", () => undefined);
  // Between the pool and the caller that takes it, a connection has no error listener, and an error would end the
  // process.
  pool.on("connect", (client) => client.on("error", () => undefined));
  const sent = { calls: 0, commits: 0 };
  const tryTransaction: Db["transaction"] = async (work) => {
    const client = await pool.connect();
    let broken: Error | undefined;
    const onBroken = (fault: unknown): void => {
      broken = fault instanceof Error ? fault : new Error("the connection broke");
    };
    // A connection may break while no statement is under way: then it must not go back to the pool.
    client.on("error", onBroken);
    const transaction = new Transaction(client, sent);
    try {
      const result = await work(transaction);
      await transaction.commit();
      return result;
    } catch (error) {
      if (isUseless(error)) onBroken(error);
      else await transaction.rollBack().catch(onBroken);
      throw error;
    } finally {
      if (broken === undefined) client.off("error", onBroken);
      client.release(broken);
    }
  };
  const close = async (): Promise<void> => pool.end();
  return {
    query: async (statement) => runAgain(connections, async () => run(pool, statement, sent)),
    transaction: async (work) => runAgain(connections, async () => tryTransaction(work)),
    get callsTotal() {
      return sent.calls;
    },
    get commitsTotal() {
      return sent.commits;
    },
    connectionString: rest,
    close,
    [Symbol.asyncDispose]: close,
  };
}
