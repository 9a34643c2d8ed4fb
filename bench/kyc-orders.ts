import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import { readBacklog } from "../service/src/webhooks/store.ts";
import { openRequest, type Person, shareResult } from "../test/kyc-world.ts";
import { startService, stopService } from "./broker.ts";
import { asDriver, type Cluster, openCluster } from "./cluster.ts";
import { insertFinishedOrders } from "./finished-orders-store.ts";
import { freePort } from "./free-port.ts";
import { sendExpecting } from "./http-client.ts";
import { type Confirmed, type KycReceiver, openKycReceiver } from "./kyc-receiver.ts";
import { buyForRound, type KycParties, seedParties } from "./kyc-wallets.ts";
import { forEachOf, median } from "./load.ts";
import { type Cost, measure, medianCost, type Party, readCalls } from "./party.ts";

/** Orders in a batch, how long it stays open for them, and how many batches are measured. */
interface Shape {
  readonly size: number;
  readonly windowSeconds: number;
  readonly rounds: number;
  /** None, or so many that they fill a batch, or else the window passes first. */
  readonly warmUp: number;
}

/** What is measured: every shape beside so many finished orders. */
export interface OrderPlan {
  readonly shapes: readonly Shape[];
  readonly finishedCounts: readonly [few: number, many: number];
}

export const fullPlan: OrderPlan = {
  shapes: [
    { size: 1, windowSeconds: 0, rounds: 30, warmUp: 300 },
    { size: 10, windowSeconds: 1, rounds: 12, warmUp: 300 },
    { size: 1000, windowSeconds: 120, rounds: 3, warmUp: 1000 },
  ],
  finishedCounts: [10_000, 1_000_000],
};

/** Too few for figures; tells that everything runs. */
export const shortPlan: OrderPlan = {
  shapes: [
    { size: 1, windowSeconds: 0, rounds: 3, warmUp: 10 },
    { size: 10, windowSeconds: 1, rounds: 3, warmUp: 10 },
    { size: 1000, windowSeconds: 120, rounds: 1, warmUp: 0 },
  ],
  finishedCounts: [1000, 10_000],
};

export interface OrderCost extends Cost {
  readonly size: number;
  readonly finished: number;
  /** Of both transactions, a batch. */
  readonly gas: { readonly initiate: number; readonly confirm: number };
}

export interface OrderCosts {
  readonly costs: readonly OrderCost[];
  /** What the service does in a second without any order. */
  readonly idle: Cost;
  readonly postgresVersion: string;
}

interface Bench {
  readonly cluster: Cluster;
  readonly ctx: Ctx;
  readonly parties: KycParties;
  readonly receiver: KycReceiver;
  readonly environment: NodeJS.ProcessEnv;
}

const concurrency = 16;
const idleSeconds = 10;

/** Orders end to end at every size of a batch, with few and with many finished orders beside them. */
export async function measureOrders(
  report: (line: string) => void,
  { shapes, finishedCounts }: OrderPlan,
): Promise<OrderCosts> {
  await using cluster = await openCluster();
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-data-"));
  const environment = {
    ...process.env,
    NODE_ENV: "production",
    PROFILE: "dev",
    DATA_DIR: directory,
    DATABASE_URL: await cluster.createDatabase("service"),
    DATABASE_CONNECTIONS: "10",
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "warn",
    CHAIN_SPEND_CAP: "1000",
    LIMIT_CREATES_PER_SECOND: "100000",
  };
  const driver = { ...environment, CHAIN: "off", DATABASE_URL: asDriver(environment.DATABASE_URL) };
  await using ctx = await openContext(parseConfig(driver));
  report("issuing to 1000 users");
  const parties = await seedParties(ctx, 1000);
  const home = { ...parties, packageId: (await buyForRound(ctx, parties.clientDomainId)).id };
  await using receiver = await openKycReceiver();
  const bench = { cluster, ctx, parties, receiver, environment };
  report(`the service without orders for ${idleSeconds} s`);
  const idle = await measureIdle(bench);
  const costs: OrderCost[] = [];
  let from = 1;
  for (const finished of finishedCounts) {
    report(`inserting finished orders up to ${finished}`);
    const at = ctx.clock.now() - 30 * 86_400;
    await insertFinishedOrders(ctx.db, home, { from, to: finished, at });
    from = finished + 1;
    for (const shape of shapes) {
      report(`${shape.size} orders a batch beside ${finished} finished ones`);
      const cost = { ...(await measureShape(bench, shape)), finished };
      report(
        `${cost.serverMs.toFixed(2)} ms, ${cost.databaseMs.toFixed(2)} ms of the database, ${cost.databaseCalls.toFixed(2)} calls`,
      );
      costs.push(cost);
    }
  }
  await rm(directory, { recursive: true, force: true });
  return { costs, idle, postgresVersion: cluster.version };
}

/** The service as a process of its own; a batch of orders closes after the window. */
async function startParty({ environment }: Bench, windowSeconds: number): Promise<Party> {
  const [port, metricsPort] = [await freePort(), await freePort()];
  const { child } = await startService({
    ...environment,
    PORT: String(port),
    METRICS_PORT: String(metricsPort),
    BASE_URL: `http://localhost:${port}`,
    CHAIN: "on",
    SETTLEMENT_WINDOW_SECONDS: String(windowSeconds),
  });
  return {
    name: "service",
    pid: child.pid ?? 0,
    baseUrl: `http://localhost:${port}`,
    callsTotal: async () => readCalls(metricsPort),
    [Symbol.asyncDispose]: async () => stopService(child),
  };
}

async function measureIdle(bench: Bench): Promise<Cost> {
  await using party = await startParty(bench, 0);
  // Until what a start does is over.
  await pause(2_000);
  const given = { operations: idleSeconds, work: async () => pause(idleSeconds * 1000) };
  return (await measure(bench.cluster, party, given)).cost;
}

async function measureShape(bench: Bench, shape: Shape): Promise<Omit<OrderCost, "finished">> {
  await using party = await startParty(bench, shape.windowSeconds);
  if (shape.warmUp > 0) await runOrders(bench, party, shape.warmUp);
  await bench.cluster.analyze();
  // A thousand are one measurement; of the small ones, where the counters are coarse, all together are.
  const [turns, each] = shape.size === 1000 ? [shape.rounds, 1] : [3, shape.rounds / 3];
  const costs: Cost[] = [];
  const gas: OrderCost["gas"][] = [];
  for (let turn = 0; turn < turns; turn += 1) {
    const { cost, result } = await measure(bench.cluster, party, {
      operations: shape.size * each,
      work: async () => {
        const confirmed: Confirmed[][] = [];
        for (let batch = 0; batch < each; batch += 1)
          confirmed.push(await runOrders(bench, party, shape.size));
        return confirmed;
      },
    });
    costs.push(cost);
    for (const batch of result) gas.push(await gasOf(party.baseUrl, batch));
  }
  return { ...medianCost(costs), size: shape.size, gas: medianGas(gas) };
}

function medianGas(all: readonly OrderCost["gas"][]): OrderCost["gas"] {
  return {
    initiate: median(all.map(({ initiate }) => initiate)),
    confirm: median(all.map(({ confirm }) => confirm)),
  };
}

/** Creates so many orders, has every one approved, and waits until all are confirmed and all webhooks arrived. */
async function runOrders(bench: Bench, party: Party, count: number): Promise<Confirmed[]> {
  const { ctx, parties, receiver } = bench;
  const { sourceKey } = await buyForRound(ctx, parties.clientDomainId);
  const people = parties.people.slice(0, count);
  const expiration = ctx.clock.now() + 600;
  const arrived = receiver.expect(count);
  const opened = await forEachOf(people, concurrency, async (person) => {
    const callback = `${receiver.url}/${person.address}`;
    const fields = ["IDCARD_DOB", "EMAIL"];
    const asked = { user: person.address, sourceKey, callback, expiration, fields };
    const { body } = await sendExpecting(200, `${party.baseUrl}/api/v2/kyc/qrcode`, {
      method: "POST",
      headers: { "content-type": "application/json", authorization: parties.apiKey },
      body: JSON.stringify(asked),
    });
    return { person, opened: await openRequest(linkOf(body)) };
  });
  await forEachOf(opened, concurrency, async (each) => approve(each));
  const confirmed = await arrived;
  while ((await readBacklog(ctx.db)).count > 0) await pause(10);
  return confirmed;
}

function linkOf(answer: string): string {
  const { data } = JSON.parse(answer) as { data: Record<string, string> };
  const link = data["qrCodeText"] ?? data["link"];
  if (link === undefined) throw new Error(`no link in ${Object.keys(data).join(", ")}`);
  return link;
}

async function approve(given: {
  person: Person;
  opened: Awaited<ReturnType<typeof openRequest>>;
}): Promise<void> {
  const { person, opened } = given;
  await sendExpecting(200, opened.connection, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(shareResult(person, opened)),
  });
}

/** Gas of the two transactions of one batch. @throws Error when the orders were not in one batch */
async function gasOf(baseUrl: string, confirmed: readonly Confirmed[]): Promise<OrderCost["gas"]> {
  const initiates = new Set(confirmed.map(({ initiatedTxHash }) => initiatedTxHash));
  const confirms = new Set(confirmed.map(({ confirmTxHash }) => confirmTxHash));
  if (initiates.size !== 1 || confirms.size !== 1)
    throw new Error(`${confirmed.length} orders went over several batches`);
  const [initiate = ""] = initiates;
  const [confirm = ""] = confirms;
  return { initiate: await gasUsed(baseUrl, initiate), confirm: await gasUsed(baseUrl, confirm) };
}

async function gasUsed(baseUrl: string, hash: string): Promise<number> {
  const call = { jsonrpc: "2.0", id: 1, method: "eth_getTransactionReceipt", params: [hash] };
  const { body } = await sendExpecting(200, `${baseUrl}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(call),
  });
  const { result } = JSON.parse(body) as { result: { gasUsed: string } | null };
  if (result === null) throw new Error(`the chain does not know ${hash}`);
  return Number(result.gasUsed);
}
