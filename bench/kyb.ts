import { benchKybGas } from "./kyb-gas.ts";
import {
  fullRequests,
  measureRequests,
  type RequestCosts,
  type RequestPlan,
  shortRequests,
} from "./kyb-requests.ts";
import type { Result } from "./login.ts";
import type { Cost } from "./party.ts";
import type { Row } from "./row.ts";

/** Gas of business wallets, and what requests to businesses cost. */
export async function benchKyb(report: (line: string) => void, isShort: boolean): Promise<Result> {
  const gas = await benchKybGas(report);
  const plan = isShort ? shortRequests : fullRequests;
  const costs = await measureRequests(report, plan);
  return { rows: [...gas, ...requestRows(plan, costs)], postgresVersion: costs.postgresVersion };
}

function requestRows({ open, members }: RequestPlan, costs: RequestCosts): Row[] {
  const among = `${open} open requests, ${members} members`;
  return [
    ...rowsOf("data request, 2 of 3 members, create to release", costs.lone),
    ...rowsOf(`create of a data request; ${among}`, costs.create),
    ...rowsOf(`page of 100 votes in an inbox; ${among}`, costs.page),
    ...rowsOf(`vote that does not decide; ${among}`, costs.vote),
    ...rowsOf(`vote that decides, with its release; ${among}`, costs.deciding),
  ];
}

function rowsOf(name: string, cost: Cost): Row[] {
  const target = { kind: "printed" } as const;
  return [
    { name: `${name} (CPU of the service)`, unit: "ms", ours: cost.serverMs, peer: null, target },
    {
      name: `${name} (CPU of the database)`,
      unit: "ms",
      ours: cost.databaseMs,
      peer: null,
      target,
    },
    {
      name: `${name} (database calls)`,
      unit: "calls",
      ours: cost.databaseCalls,
      peer: null,
      target,
    },
  ];
}
