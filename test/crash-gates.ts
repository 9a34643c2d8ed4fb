// Gates in a test's own database that hold a process inside one of its steps: triggers that wait for a lock of the test,
// at the statement or at its commit. So the process is certainly there when it is killed. A process that passes an open
// gate releases its lock at once, so that the gate can be closed behind it.
import { Client } from "pg";
import { until } from "./patience.ts";

export interface CrashPoint {
  readonly name: string;
  /** A write that the step always makes, as the event of a trigger: `update on kyc_order`. */
  readonly on: string;
  /** The condition that only the rows of this step meet. */
  readonly when: string;
  /**
   * True if somebody waits for the step, or it has an effect outside. Then the process dies at its commit, which still
   * takes effect, before anybody is told. For other steps that is the same as a death where the next step begins.
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
 * @param of.isEndless a process stays at a gate for longer than the service waits for a lock; otherwise it tries again
 * after that time, and meets gates that were closed behind it
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
        // Otherwise a statement that is its own transaction would be carried out after its client's death.
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

/** Work that leads to a point. */
export interface Stop<T> {
  readonly point: CrashPoint;
  /** Before the gate is closed. */
  prepare?(): Promise<void>;
  work(): Promise<T>;
}

/**
 * Lets the works come to their points, then kills the process, which is held at all of them. The work of the last step
 * goes first, while the gates of the steps before are still open.
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
  // A process that was held for 5 s may have given up on the lock and be on its way here again.
  for (const point of points) await gates.untilReached(point);
  await kill();
  await gates.open(...points);
  return works;
}
