// Gates in a test's own database that hold a process inside one of its steps: triggers that wait for a lock of the test,
// at the statement or at its commit. So the process is surely there when it dies. Who comes by an
// open one keeps nothing of it: it can be closed behind it.
import { Client } from "pg";
import { until } from "./patience.ts";

export interface CrashPoint {
  readonly name: string;
  /** The write that the step cannot do without. */
  readonly on: string;
  /** Of the rows written, this step's alone. */
  readonly when: string;
  /**
   * Somebody waits for its end, or the world outside has seen it: then its commit without a word to them is what differs.
   * For the others that is where the next step begins.
   */
  readonly isSeen?: true;
}

/** When a gate holds its process. */
const times = { statement: "not deferrable", commit: "deferrable initially deferred" } as const;
type GateTime = keyof typeof times;

const timeOf = ({ isSeen }: CrashPoint): GateTime => (isSeen === true ? "commit" : "statement");

/** When a process dies, as the names of tests say it. */
export const whenOf = (point: CrashPoint): string =>
  timeOf(point) === "statement" ? "before" : "after";

export interface Gates extends AsyncDisposable {
  close(point: CrashPoint): Promise<void>;
  /** Waits until a process stands at the gate. */
  untilReached(point: CrashPoint): Promise<void>;
  /** After the death of whoever stood there; waits until nothing of it is left in the database. */
  open(...points: readonly CrashPoint[]): Promise<void>;
  query<Row extends object>(text: string, values?: readonly unknown[]): Promise<Row[]>;
}

/** Locks of two numbers; the service's own have one. */
const gateClass = { statement: 7_355_901, commit: 7_355_902 };

/**
 * Puts every gate into the database, open.
 *
 * @param of.processName what connections of those processes are called
 * @param of.isEndless whoever stands at a gate stays there, longer than the service waits for a lock; else it asks again
 * after that, and comes by gates that were closed behind it
 */
export async function openGates(
  databaseUrl: string,
  of: { points: readonly CrashPoint[]; processName: string; isEndless?: boolean },
): Promise<Gates> {
  const { points, processName, isEndless = false } = of;
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`
    create or replace function crash_gate() returns trigger language plpgsql ${isEndless ? "set lock_timeout = 0" : ""} as $$
    begin
      perform pg_advisory_lock_shared(tg_argv[0]::integer, tg_argv[1]::integer);
      perform pg_advisory_unlock_shared(tg_argv[0]::integer, tg_argv[1]::integer);
      return null;
    end $$`);
  for (const [gate, point] of points.entries()) {
    const time = timeOf(point);
    await client.query(`
      create constraint trigger crash_gate_${time}_${gate} after ${point.on} ${times[time]}
      for each row when (${point.when}) execute function crash_gate(${gateClass[time]}, ${gate})`);
  }
  const lockOf = (point: CrashPoint): [number, number] => [
    gateClass[timeOf(point)],
    points.indexOf(point),
  ];
  const waiting = async (point: CrashPoint): Promise<number[]> => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and classid = $1 and objid = $2 and not granted and application_name = $3
         and datname = current_database()`,
      [...lockOf(point), processName],
    );
    return rows.map(({ pid }) => pid);
  };
  return {
    close: async (point) =>
      void (await client.query("select pg_advisory_lock($1, $2)", lockOf(point))),
    async untilReached(point) {
      await until(`a process is where ${point.name}`, async () =>
        (await waiting(point)).length > 0 ? true : null,
      );
    },
    async open(...reached) {
      for (const point of reached) {
        // Where a statement is its own transaction it would be carried out after its client's end.
        if (timeOf(point) === "statement")
          for (const pid of await waiting(point))
            await client.query("select pg_terminate_backend($1)", [pid]);
        await client.query("select pg_advisory_unlock($1, $2)", lockOf(point));
      }
      await until("its connections are gone", async () => {
        const { rows } = await client.query(
          "select from pg_stat_activity where application_name = $1 and datname = current_database()",
          [processName],
        );
        return rows.length === 0 ? true : null;
      });
    },
    query: async <Row extends object>(text: string, values: readonly unknown[] = []) =>
      (await client.query<Row>(text, [...values])).rows,
    [Symbol.asyncDispose]: async () => client.end(),
  };
}

/** Something that comes to a point. */
export interface Stop<T> {
  readonly point: CrashPoint;
  /** Before the gate is closed. */
  prepare?(): Promise<void>;
  work(): Promise<T>;
}

/**
 * Lets the works come to their points, and kills the process that is held at all of them. Those of the last step come
 * first: the gates of the steps before are open for them.
 *
 * @returns the works, which go on
 */
export async function killAt<T>(
  gates: Gates,
  stops: readonly Stop<T>[],
  kill: () => Promise<void>,
): Promise<Promise<T>[]> {
  const works: Promise<T>[] = [];
  for (const stop of stops.toReversed()) {
    await stop.prepare?.();
    await gates.close(stop.point);
    const working = stop.work();
    working.catch(() => undefined);
    works.push(working);
    await gates.untilReached(stop.point);
  }
  const points = stops.map(({ point }) => point);
  // Who was held for 5 s may have given up on the lock, and comes again.
  for (const point of points) await gates.untilReached(point);
  await kill();
  await gates.open(...points);
  return works;
}
