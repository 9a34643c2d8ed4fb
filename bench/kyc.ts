import { readFileSync } from "node:fs";
import { benchKycChecks } from "./kyc-checks.ts";
import { benchKycDeliveries } from "./kyc-deliveries.ts";
import { easDocumentGas, easFieldsGas, easLoneGas, easVersion } from "./eas.ts";
import {
  fullPlan,
  measureOrders,
  type OrderCost,
  type OrderCosts,
  type OrderPlan,
  shortPlan,
} from "./kyc-orders.ts";
import type { Result } from "./login.ts";
import type { Cost } from "./party.ts";
import type { Row } from "./row.ts";

/** Cost per order may grow by a tenth at most from the few finished orders to the many. */
const growthMost = 1.1;
/** What an order costs with a storage slot of its own instead of a leaf (gas). */
const slotPerOrderGas = 73_700;
/** What a storage slot costs that is written for the first time (gas; EIP-2929), without its calldata. */
const newSlotGas = 22_100;
const fieldsOfDocument = 5;
const documentsOfBatch = 10;

/** Orders end to end, gas, checks and deliveries. */
export async function benchKyc(report: (line: string) => void, isShort: boolean): Promise<Result> {
  const checks = await benchKycChecks(report, isShort);
  const deliveries = await benchKycDeliveries(report, isShort);
  const orders = await benchKycOrders(report, isShort);
  return { ...orders, rows: [...orders.rows, ...checks.rows, ...deliveries.rows] };
}

/** Orders end to end, and gas. */
export async function benchKycOrders(
  report: (line: string) => void,
  isShort: boolean,
): Promise<Result> {
  const plan = isShort ? shortPlan : fullPlan;
  const orders = await measureOrders(report, plan);
  const { costs, postgresVersion } = orders;
  const rows = [...orderRows(plan, orders), ...gasRows(plan, costs)];
  return { rows, postgresVersion };
}

function orderRows(
  { shapes, finishedCounts: [few, many] }: OrderPlan,
  { costs, idle }: OrderCosts,
): Row[] {
  const quiet = parts.map(({ label, unit, pick }): Row => ({
    name: `a second without orders (${label})`,
    unit,
    ours: pick(idle),
    peer: null,
    target: printed,
  }));
  const busy = shapes.flatMap(({ size }) => {
    const base = costOf(costs, size, few);
    const grown = costOf(costs, size, many);
    const name = `order, ${size} a batch`;
    const plain = parts.map(({ label, unit, pick }): Row => ({
      name: `${name} (${label})`,
      unit,
      ours: pick(base),
      peer: null,
      target: printed,
    }));
    const beside = parts.map(({ label, unit, pick, isJudged }): Row => {
      const target = isJudged
        ? ({ kind: "share-of-peer", most: growthMost } as const)
        : printedShare;
      const longName = `${name}, ${many} finished ones; beside it ${few} (${label})`;
      return { name: longName, unit, ours: pick(grown), peer: pick(base), target };
    });
    return plain.concat(beside);
  });
  return [...busy, ...quiet];
}

const printed = { kind: "printed" } as const;
const printedShare = { kind: "printed", isShare: true } as const;

const parts = [
  {
    label: "CPU of the service",
    unit: "ms",
    pick: (cost: Cost) => cost.serverMs,
    isJudged: true,
  },
  {
    label: "database calls",
    unit: "calls",
    pick: (cost: Cost) => cost.databaseCalls,
    isJudged: true,
  },
  {
    label: "CPU of the database",
    unit: "ms",
    pick: (cost: Cost) => cost.databaseMs,
    isJudged: false,
  },
] as const;

function costOf(costs: readonly OrderCost[], size: number, finished: number): OrderCost {
  const found = costs.find((cost) => cost.size === size && cost.finished === finished);
  if (found === undefined) throw new Error(`${size} a batch was not measured`);
  return found;
}

function gasRows({ finishedCounts: [few] }: OrderPlan, costs: readonly OrderCost[]): Row[] {
  const lone = costOf(costs, 1, few).gas;
  const full = costOf(costs, 1000, few).gas;
  const attested = gasOfAttesting(documentsOfBatch);
  return [
    {
      name: "initiate of one order; beside it a slot per order",
      unit: "gas",
      ours: lone.initiate,
      peer: slotPerOrderGas,
      target: { kind: "at-most", most: 30_000 },
    },
    {
      name: "confirm of one order; beside it a slot per order",
      unit: "gas",
      ours: lone.confirm,
      peer: slotPerOrderGas,
      target: printed,
    },
    {
      name: "initiate and confirm, an order of 1000 a batch; beside it a slot per order",
      unit: "gas",
      ours: (full.initiate + full.confirm) / 1000,
      peer: slotPerOrderGas,
      target: { kind: "at-most", most: 100 },
    },
    {
      name: `issued document of ${documentsOfBatch} a batch; beside it a slot for each of ${fieldsOfDocument} fields`,
      unit: "gas",
      ours: attested / documentsOfBatch,
      peer: fieldsOfDocument * newSlotGas,
      target: { kind: "at-most", most: 30_000 },
    },
    {
      name: `the same; beside it the Ethereum Attestation Service ${easVersion}, a root each in one multiAttest`,
      unit: "gas",
      ours: attested / documentsOfBatch,
      peer: easDocumentGas,
      target: { kind: "at-most", most: 30_000 },
    },
    {
      name: `the same; beside it EAS with ${fieldsOfDocument} commitments each`,
      unit: "gas",
      ours: attested / documentsOfBatch,
      peer: easFieldsGas,
      target: printed,
    },
    {
      name: "issued document alone; beside it EAS, a root in an attest of its own",
      unit: "gas",
      ours: gasOfAttesting(1),
      peer: easLoneGas,
      target: printed,
    },
  ];
}

/** Of so many documents in one transaction, from the snapshot that the tests of the contracts hold. */
function gasOfAttesting(documents: 1 | typeof documentsOfBatch): number {
  const file = new URL("../contracts/gas/CredentialRegistryTest.json", import.meta.url);
  const snapshot = JSON.parse(readFileSync(file, "utf8")) as Record<string, string>;
  const gas = Number(snapshot[`attest of ${documents}`]);
  if (!Number.isFinite(gas)) throw new Error(`the gas snapshot lacks attest of ${documents}`);
  return gas;
}
