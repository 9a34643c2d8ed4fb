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
export type GateTime = keyof typeof times;

/** When a process dies, as the names of tests say it. */
export const whenOf = (time: GateTime): string => (time === "statement" ? "before" : "after");

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

/** Puts every gate into the database, open; one that has those of the other time already keeps them. @param of.processName what connections of those processes are called */
export async function openGates(
  databaseUrl: string,
  of: { points: readonly CrashPoint[]; time: GateTime; processName: string },
): Promise<Gates> {
  const { points, time, processName } = of;
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  await client.query(`
    create or replace function crash_gate() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_lock_shared(tg_argv[0]::integer, tg_argv[1]::integer);
      perform pg_advisory_unlock_shared(tg_argv[0]::integer, tg_argv[1]::integer);
      return null;
    end $$`);
  for (const [gate, point] of points.entries())
    await client.query(`
      create constraint trigger crash_gate_${time}_${gate} after ${point.on} ${times[time]}
      for each row when (${point.when}) execute function crash_gate(${gateClass[time]}, ${gate})`);
  const lockOf = (point: CrashPoint): [number, number] => [gateClass[time], points.indexOf(point)];
  const waiting = async (point: CrashPoint): Promise<number[]> => {
    const { rows } = await client.query<{ pid: number }>(
      `select pid from pg_locks join pg_stat_activity using (pid)
       where locktype = 'advisory' and classid = $1 and objid = $2 and not granted and application_name = $3`,
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
        if (time === "statement")
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
