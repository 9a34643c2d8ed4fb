import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as pause } from "node:timers/promises";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import { readBacklog } from "../service/src/webhooks/delivery-store.ts";
import { openRequest, type Person, shareResult } from "../test/kyc-world.ts";
import { asDriver, type Cluster, openCluster } from "./cluster.ts";
import { insertFinishedOrders } from "./finished-orders-store.ts";
import { sendExpecting } from "./http-client.ts";
import { type Confirmed, type KycReceiver, openKycReceiver } from "./kyc-receiver.ts";
import { buyForRound, type KycParties, seedParties } from "./kyc-wallets.ts";
import { forEachOf, median } from "./load.ts";
import { type Cost, measure, medianCost, type Party } from "./party.ts";
import {
  portSettings,
  type ServiceEnvironment,
  serviceEnvironment,
  startParty,
} from "./service-party.ts";

/** How many orders a batch has, for how long it stays open, and how many batches are measured. */
interface Shape {
  readonly size: number;
  readonly windowSeconds: number;
  readonly turns: number;
  /** Batches of one turn: several small ones are one measurement, because the counters are coarse. */
  readonly batches: number;
  /** Orders before the first turn: none, or enough to fill a batch, which otherwise waits for its window. */
  readonly warmUp: number;
}

/** What is measured: every shape beside this many finished orders. */
export interface OrderPlan {
  readonly shapes: readonly Shape[];
  readonly finishedCounts: readonly [few: number, many: number];
}

export const fullPlan: OrderPlan = {
  shapes: [
    { size: 1, windowSeconds: 0, turns: 5, batches: 10, warmUp: 300 },
    { size: 10, windowSeconds: 1, turns: 5, batches: 4, warmUp: 300 },
    { size: 1000, windowSeconds: 120, turns: 3, batches: 1, warmUp: 1000 },
  ],
  finishedCounts: [10_000, 1_000_000],
};

/** Too few for figures; shows that everything runs. */
export const shortPlan: OrderPlan = {
  shapes: [
    { size: 1, windowSeconds: 0, turns: 1, batches: 3, warmUp: 10 },
    { size: 10, windowSeconds: 1, turns: 1, batches: 3, warmUp: 10 },
    { size: 1000, windowSeconds: 120, turns: 1, batches: 1, warmUp: 0 },
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

/** An installation of its own with this many finished orders: PostgreSQL, chain, merchant, users and receivers. */
interface Side {
  readonly finished: number;
  readonly cluster: Cluster;
  readonly ctx: Ctx;
  readonly parties: KycParties;
  readonly receiver: KycReceiver;
  readonly environment: ServiceEnvironment;
}

const concurrency = 16;
const idleSeconds = 10;

/** Orders end to end at every size of a batch, with few and with many finished orders, side by side. */
export async function measureOrders(
  report: (line: string) => void,
  { shapes, finishedCounts }: OrderPlan,
): Promise<OrderCosts> {
  await using stack = new AsyncDisposableStack();
  const sides: Side[] = [];
  for (const finished of finishedCounts) {
    report(`opening a side with ${finished} finished orders`);
    sides.push(await openSide(stack, finished));
  }
  const [few] = sides;
  if (few === undefined) throw new Error("a plan without sides");
  report(`the service without orders for ${idleSeconds} s`);
  const idle = await measureIdle(few);
  const costs: OrderCost[] = [];
  for (const shape of shapes) {
    report(`${shape.size} orders a batch`);
    const measured = await measureShape(sides, shape);
    for (const { finished, serverMs, databaseMs, databaseCalls } of measured)
      report(
        `beside ${finished}: ${serverMs.toFixed(2)} ms, ${databaseMs.toFixed(2)} ms of the database, ${databaseCalls.toFixed(2)} calls`,
      );
    costs.push(...measured);
  }
  return { costs, idle, postgresVersion: few.cluster.version };
}

async function openSide(stack: AsyncDisposableStack, finished: number): Promise<Side> {
  const cluster = stack.use(await openCluster());
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-data-"));
  stack.defer(async () => rm(directory, { recursive: true, force: true }));
  const environment = {
    ...(await serviceEnvironment(await cluster.createDatabase("service"))),
    DATA_DIR: directory,
    CHAIN_SPEND_CAP: "1000",
    LIMIT_CREATES_PER_SECOND: "100000",
  };
  const driver = { ...environment, CHAIN: "off", DATABASE_URL: asDriver(environment.DATABASE_URL) };
  const ctx = stack.use(await openContext(parseConfig(driver)));
  const parties = await seedParties(ctx, 1000);
  const home = { ...parties, packageId: (await buyForRound(ctx, parties.clientDomainId)).id };
  const at = ctx.clock.now() - 30 * 86_400;
  await insertFinishedOrders(ctx.db, home, { from: 1, to: finished, at });
  await cluster.vacuum();
  const receiver = stack.use(await openKycReceiver());
  return { finished, cluster, ctx, parties, receiver, environment };
}

/** The service as a process of its own; a batch of orders closes after the window. */
async function startSettling({ environment }: Side, windowSeconds: number): Promise<Party> {
  const settling = { CHAIN: "on", SETTLEMENT_WINDOW_SECONDS: String(windowSeconds) };
  return startParty({ ...environment, ...(await portSettings()), ...settling });
}

async function measureIdle(side: Side): Promise<Cost> {
  await using party = await startSettling(side, 0);
  // Until what a start does is over.
  await pause(2_000);
  const given = { operations: idleSeconds, work: async () => pause(idleSeconds * 1000) };
  return (await measure(side.cluster, party, given)).cost;
}

/** The sides take turns, and who begins changes: what the machine does meanwhile meets both alike. */
async function measureShape(sides: readonly Side[], shape: Shape): Promise<OrderCost[]> {
  await using stack = new AsyncDisposableStack();
  const running: { side: Side; party: Party; taken: Turn[] }[] = [];
  for (const side of sides) {
    const party = stack.use(await startSettling(side, shape.windowSeconds));
    if (shape.warmUp > 0) await runOrders(side, party, shape.warmUp);
    await side.cluster.vacuum();
    running.push({ side, party, taken: [] });
  }
  for (let turn = 0; turn < shape.turns; turn += 1)
    for (const { side, party, taken } of turn % 2 === 0 ? running : running.toReversed())
      taken.push(await takeTurn(side, party, shape));
  return running.map(({ side, taken }) =>
    Object.assign(medianCost(taken.map(({ cost }) => cost)), {
      size: shape.size,
      finished: side.finished,
      gas: medianGas(taken.flatMap(({ gas }) => gas)),
    }),
  );
}

interface Turn {
  readonly cost: Cost;
  readonly gas: readonly OrderCost["gas"][];
}

async function takeTurn(side: Side, party: Party, { size, batches }: Shape): Promise<Turn> {
  const { cost, result } = await measure(side.cluster, party, {
    operations: size * batches,
    work: async () => {
      const confirmed: Confirmed[][] = [];
      for (let batch = 0; batch < batches; batch += 1)
        confirmed.push(await runOrders(side, party, size));
      return confirmed;
    },
  });
  const gas: OrderCost["gas"][] = [];
  for (const batch of result) gas.push(await gasOf(party.baseUrl, batch));
  return { cost, gas };
}

function medianGas(all: readonly OrderCost["gas"][]): OrderCost["gas"] {
  return {
    initiate: median(all.map(({ initiate }) => initiate)),
    confirm: median(all.map(({ confirm }) => confirm)),
  };
}

/** Creates this many orders, has every one approved, and waits until all are confirmed and all webhooks arrived. */
async function runOrders(side: Side, party: Party, count: number): Promise<Confirmed[]> {
  const { ctx, parties, receiver } = side;
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
