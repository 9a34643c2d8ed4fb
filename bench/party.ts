import type { Cluster } from "./cluster.ts";
import { sendExpecting } from "./http-client.ts";
import { median } from "./load.ts";
import { cpuMsBetween, readCpu } from "./process-accounts.ts";

/** A server under load: the service or its peer. */
export interface Party extends AsyncDisposable {
  /** Also the name of its database. */
  readonly name: "service" | "peer";
  readonly pid: number;
  readonly baseUrl: string;
  /** Statements it sent to the database so far, ends of transactions included. */
  callsTotal(): Promise<number>;
}

/** What one operation cost. */
export interface Cost {
  /** CPU of the server process, all threads. */
  readonly serverMs: number;
  /** CPU of PostgreSQL: the backends of this database and the cluster's background processes. */
  readonly databaseMs: number;
  readonly databaseCalls: number;
}

/**
 * Measures what `work` costs. While it runs nothing else is asked of the cluster; reading the accounts happens outside.
 *
 * @param operations what the cost is divided by
 */
export async function measure<Result>(
  cluster: Cluster,
  party: Party,
  { operations, work }: { operations: number; work: () => Promise<Result> },
): Promise<{ cost: Cost; result: Result }> {
  const callsBefore = await party.callsTotal();
  const processes = await cluster.processesOf(party.name);
  const serverBefore = readCpu([party.pid]);
  const databaseBefore = readCpu([...processes.backends, ...processes.background]);
  const result = await work();
  const serverAfter = readCpu([party.pid]);
  const later = await cluster.processesOf(party.name);
  const databaseAfter = readCpu([...later.backends, ...later.background]);
  const callsAfter = await party.callsTotal();
  const cost = {
    serverMs: cpuMsBetween(serverBefore, serverAfter) / operations,
    databaseMs: cpuMsBetween(databaseBefore, databaseAfter) / operations,
    databaseCalls: (callsAfter - callsBefore) / operations,
  };
  return { cost, result };
}

/** The median of each figure. */
export function medianCost(costs: readonly Cost[]): Cost {
  return {
    serverMs: median(costs.map(({ serverMs }) => serverMs)),
    databaseMs: median(costs.map(({ databaseMs }) => databaseMs)),
    databaseCalls: median(costs.map(({ databaseCalls }) => databaseCalls)),
  };
}

export function sumOf(costs: readonly Cost[]): Cost {
  return costs.reduce((sum, each) => ({
    serverMs: sum.serverMs + each.serverMs,
    databaseMs: sum.databaseMs + each.databaseMs,
    databaseCalls: sum.databaseCalls + each.databaseCalls,
  }));
}

/** Statements that the service sent to its database so far, as its metrics say. */
export async function readCalls(metricsPort: number): Promise<number> {
  const { body } = await sendExpecting(200, `http://localhost:${metricsPort}/metrics`);
  const count = /^(?:svc_)?database_calls_total(?:\{[^}]*\})? (\S+)$/m.exec(body)?.[1];
  if (count === undefined) throw new Error("the metrics lack database_calls_total");
  return Number(count);
}
