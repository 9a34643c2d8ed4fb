import type { Cluster } from "./cluster.ts";
import { cpuMsBetween, readCpu } from "./process-accounts.ts";

/** A server under load: the service or its peer. */
export interface Party extends AsyncDisposable {
  /** Also the name of its database. */
  readonly name: "service" | "peer";
  readonly pid: number;
  readonly baseUrl: string;
  /** Statements it sent to the database so far, transaction brackets included. */
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

export function sumOf(costs: readonly Cost[]): Cost {
  return costs.reduce((sum, each) => ({
    serverMs: sum.serverMs + each.serverMs,
    databaseMs: sum.databaseMs + each.databaseMs,
    databaseCalls: sum.databaseCalls + each.databaseCalls,
  }));
}
