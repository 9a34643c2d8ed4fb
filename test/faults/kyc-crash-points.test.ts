// kill -9 of the server at every step of an order. A gate in the test's own database holds the process inside the step:
// a trigger that waits for a lock of the test, at the statement or at its commit. So the process is surely there when it
// dies, and it is known what the database does with it: what was not committed is undone, what was is done though nobody
// was told. Another process goes on, callers ask again, and nothing is lost or doubled.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { Client } from "pg";
import { type KillableOrders, openKillableOrders, processName } from "../killable-orders.ts";
import { checkOrders } from "../order-invariants.ts";
import { untilOver } from "../order-traffic.ts";

interface CrashPoint {
  readonly name: string;
  /** The write that the step cannot do without. */
  readonly on: string;
  /** Of the rows written, this step's alone. */
  readonly when: string;
  /** What ends the order instead of an approval. */
  readonly end?: "decline" | "cancel";
}

const reached = (status: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_order_status",
  when: `new.status = '${status}'`,
});
const sent = (kind: string): Omit<CrashPoint, "name"> => ({
  on: "update on chain_transaction",
  when: `new.status = 'sent' and old.status = 'queued' and new.kind = '${kind}'`,
});
const closed = (phase: string): Omit<CrashPoint, "name"> => ({
  on: "insert on kyc_batch",
  when: `new.phase = '${phase}'`,
});

const crashPoints: readonly CrashPoint[] = [
  { name: "the order is created", ...reached("PENDING") },
  {
    name: "the wallet opens it",
    on: "update on kyc_token",
    when: "new.request_object is not null",
  },
  { name: "the user approves", ...reached("INITIATING") },
  { name: "the batch is closed", ...closed("initiate") },
  { name: "the initiate is signed", ...sent("kyc.initiate") },
  { name: "the chain takes a transaction", on: "insert on embedded_transaction", when: "true" },
  { name: "the initiate is final", ...reached("INITIATED") },
  {
    name: "the data is handed over",
    on: "insert on webhook_event",
    when: "new.kind = 'data.transferred'",
  },
  { name: "the confirm batch is closed", ...closed("confirm") },
  { name: "the confirm is signed", ...sent("kyc.confirm") },
  { name: "the confirm is final", ...reached("CONFIRMED") },
  {
    name: "a webhook was sent and its result is written",
    on: "insert on webhook_attempt",
    when: "true",
  },
  { name: "the user declines", ...reached("FAILED"), end: "decline" },
  { name: "the merchant cancels", ...reached("FAILED"), end: "cancel" },
];

/** Locks of two numbers; the service's own have one. */
const gateClass = 7_355_900;
/** When a gate holds its process. */
const times = { statement: "not deferrable", commit: "deferrable initially deferred" } as const;
type Time = keyof typeof times;
const gateOf = (point: CrashPoint): number => crashPoints.indexOf(point);

/** Puts every gate into the database, open. */
async function installGates(client: Client, time: Time): Promise<void> {
  await client.query(`
    create function crash_gate() returns trigger language plpgsql as $$
    begin
      perform pg_advisory_xact_lock_shared(${gateClass}, tg_argv[0]::integer);
      return null;
    end $$`);
  for (const point of crashPoints) {
    const gate = gateOf(point);
    await client.query(`
      create constraint trigger crash_gate_${gate} after ${point.on} ${times[time]}
      for each row when (${point.when}) execute function crash_gate(${gate})`);
  }
}

/** The connections of our processes that stand at a gate. */
async function waitingAt(client: Client, gate: number): Promise<number[]> {
  const { rows } = await client.query<{ pid: number }>(
    `select pid from pg_locks join pg_stat_activity using (pid)
     where locktype = 'advisory' and classid = $1 and objid = $2 and not granted and application_name = $3`,
    [gateClass, gate, processName],
  );
  return rows.map(({ pid }) => pid);
}

async function until(what: string, look: () => Promise<boolean>): Promise<void> {
  const deadline = performance.now() + 30_000;
  while (!(await look())) {
    assert.ok(performance.now() < deadline, `never happened: ${what}`);
    await delay(10);
  }
}

async function isAlone(client: Client): Promise<boolean> {
  const { rows } = await client.query(
    "select from pg_stat_activity where application_name = $1 and datname = current_database()",
    [processName],
  );
  return rows.length === 0;
}

/** Every person's order from the request to its end. */
async function runOrders({ traffic, asked }: KillableOrders, { end }: CrashPoint): Promise<void> {
  await Promise.all(
    asked.map(async (each) => {
      const requested = await traffic.ask(each);
      if (end !== undefined) return traffic[end](requested);
      return traffic.approve(requested, await traffic.open(each.person, requested.link));
    }),
  );
}

/** The server under test dies at every point, and each time another one goes on. */
async function dieEverywhere(t: TestContext, time: Time): Promise<void> {
  await using world = await openKillableOrders({ persons: 2, packages: 1 });
  const client = new Client({ connectionString: world.ctx.config.databaseUrl ?? "" });
  await client.connect();
  await installGates(client, time);
  let server = await world.startMain();
  for (const point of crashPoints) {
    await t.test(`the server dies while ${point.name}`, async () => {
      const gate = [gateClass, gateOf(point)];
      await client.query("select pg_advisory_lock($1, $2)", gate);
      const over = runOrders(world, point);
      over.catch(() => undefined);
      const waiting = async (): Promise<number[]> => waitingAt(client, gateOf(point));
      await until("the process is inside", async () => (await waiting()).length > 0);
      await server.kill();
      if (time === "statement") {
        // Where a statement is its own transaction it would be carried out after its client's end.
        for (const pid of await waiting())
          await client.query("select pg_terminate_backend($1)", [pid]);
      }
      await client.query("select pg_advisory_unlock($1, $2)", gate);
      await until("its connections are gone", async () => isAlone(client));
      server = await world.startMain();
      await over;
      await untilOver(world);
      const tally = await checkOrders(world.evidence);
      assert.equal(tally.orders, world.asked.length);
    });
  }
  await client.end();
}

test("kill -9 at every step of an order", { concurrency: true }, async (t) => {
  const before = t.test(
    "before the step is written: it is done again, by another process",
    (each) => dieEverywhere(each, "statement"),
  );
  const after = t.test(
    "after it is written and before anybody is told: it is not done again",
    (each) => dieEverywhere(each, "commit"),
  );
  await Promise.all([before, after]);
});
