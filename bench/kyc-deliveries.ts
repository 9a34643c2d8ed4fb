import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { createServer, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { setTimeout as pause } from "node:timers/promises";
import { buyPackage, createDomain, createOrganization } from "../service/src/accounts/index.ts";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import { enqueueEvents, newEventId, type NewEvent } from "../service/src/webhooks/index.ts";
import { readBacklog } from "../service/src/webhooks/delivery-store.ts";
import { asDriver, type Cluster, openCluster } from "./cluster.ts";
import { median, times } from "./load.ts";
import type { Result } from "./login.ts";
import { type Cost, measure, medianCost, type Party } from "./party.ts";
import type { Row } from "./row.ts";
import { serviceEnvironment, startParty } from "./service-party.ts";

/** How much is delivered. */
interface DeliveryPlan {
  readonly receiversCount: number;
  readonly hangingCount: number;
  readonly rounds: number;
  /** Each with hanging receivers and without, in turns. */
  readonly comparedRounds: number;
}

const fullPlan: DeliveryPlan = {
  receiversCount: 1000,
  hangingCount: 100,
  rounds: 5,
  comparedRounds: 5,
};
const shortPlan: DeliveryPlan = {
  receiversCount: 100,
  hangingCount: 10,
  rounds: 1,
  comparedRounds: 1,
};
/** Events for each receiver in the comparison with receivers that hang. */
const eventsEach = 10;
/**
 * Under way to one endpoint at a time (decisions section 7): this many wait at each that hangs before the clock starts.
 */
const slots = 8;
const msMost = 1;
const callsMost = 2;
/** Of the throughput that the others have when nobody hangs. */
const throughputLeast = 0.9;

interface Sending {
  readonly ctx: Ctx;
  readonly clientDomainId: string;
  readonly packageId: string;
}

/** What delivering webhooks to a thousand receivers costs, and what a hundred that hang take from the others. */
export async function benchKycDeliveries(
  report: (line: string) => void,
  isShort: boolean,
): Promise<Result> {
  const plan = isShort ? shortPlan : fullPlan;
  const { receiversCount, hangingCount } = plan;
  await using cluster = await openCluster();
  const environment = {
    ...(await serviceEnvironment(await cluster.createDatabase("service"))),
    CHAIN: "off",
  };
  const driver = { ...environment, DATABASE_URL: asDriver(environment.DATABASE_URL) };
  await using ctx = await openContext(parseConfig(driver));
  const sending = await seed(ctx);
  await using receivers = await openReceivers(receiversCount);
  await using party = await startParty(environment);
  report(`delivering to ${receiversCount} receivers`);
  const cost = await measureRounds(cluster, party, { sending, receivers, plan });
  report(`delivering while ${hangingCount} of them hang`);
  const healthy = receivers.urls.slice(hangingCount);
  const others = receivers.urls.slice(0, hangingCount);
  const all = { sending, receivers, healthy, others, plan };
  const compared = await compareRounds(all);
  return {
    rows: [...costRows(plan, cost), throughputRow(plan, compared)],
    postgresVersion: cluster.version,
  };
}

/** The first round warms up and is not counted. */
async function measureRounds(
  cluster: Cluster,
  party: Party,
  {
    sending,
    receivers,
    plan: { rounds, receiversCount },
  }: { sending: Sending; receivers: Receivers; plan: DeliveryPlan },
): Promise<Cost> {
  const costs: Cost[] = [];
  for (let round = 0; round <= rounds; round += 1) {
    const { cost } = await measure(cluster, party, {
      operations: receiversCount,
      work: async () => {
        const arrived = receivers.expect(receivers.urls, 1);
        await enqueue(sending, receivers.urls, 1);
        await arrived;
        await settled(sending.ctx);
      },
    });
    if (round === 0) await cluster.vacuum();
    else costs.push(cost);
  }
  return medianCost(costs);
}

interface Comparison {
  readonly sending: Sending;
  readonly receivers: Receivers;
  readonly healthy: readonly string[];
  readonly others: readonly string[];
  readonly plan: DeliveryPlan;
}

interface Compared {
  readonly aloneSeconds: number;
  readonly besideSeconds: number;
}

/** Medians of rounds that take turns, after one of each to warm up; who begins changes. */
async function compareRounds(given: Comparison): Promise<Compared> {
  const seconds: Record<"alone" | "beside", number[]> = { alone: [], beside: [] };
  const manners = ["alone", "beside"] as const;
  for (let round = 0; round <= given.plan.comparedRounds; round += 1)
    for (const manner of round % 2 === 0 ? manners : manners.toReversed()) {
      const taken = await secondsOf(given, manner);
      if (round > 0) seconds[manner].push(taken);
    }
  return { aloneSeconds: median(seconds.alone), besideSeconds: median(seconds.beside) };
}

/** How long the healthy ones wait for all of theirs, while as many are for the others. Afterwards nothing is under way. */
async function secondsOf(
  { sending, receivers, healthy, others }: Comparison,
  manner: "alone" | "beside",
): Promise<number> {
  if (manner === "beside") {
    const hung = receivers.hang(others.length, slots);
    await enqueue(sending, others, slots);
    await hung;
  }
  const arrived = receivers.expect(healthy, eventsEach);
  const startedMs = performance.now();
  await enqueue(sending, [...others, ...healthy], eventsEach);
  await arrived;
  const seconds = (performance.now() - startedMs) / 1000;
  receivers.answer();
  await settled(sending.ctx);
  return seconds;
}

async function enqueue(
  { ctx, clientDomainId, packageId }: Sending,
  urls: readonly string[],
  each: number,
): Promise<void> {
  const events = times(each).flatMap(() =>
    urls.map((url): NewEvent => {
      const id = newEventId(ctx);
      const now = ctx.clock.now();
      const data = {
        referenceKey: "5c".repeat(32),
        attempt: 1,
        user: `0x${"7e".repeat(20)}`,
        fields: ["IDCARD_DOB", "EMAIL", "ADDRESS_CITY"],
        status: "CONFIRMED",
        createdAt: now,
        initiatedTxHash: `0x${"1f".repeat(32)}`,
        confirmTxHash: `0x${"2e".repeat(32)}`,
        expiration: now + 600,
      };
      const envelope = { event: "status.updated", event_id: id, sequence: 1, timestamp: now };
      return {
        id,
        streamId: randomUUID(),
        sequence: 1,
        kind: "status.updated",
        channel: "kyc",
        clientDomainId,
        keyId: packageId,
        url,
        body: JSON.stringify({ ...envelope, livemode: true, data }),
        isPersonal: false,
        payloadExpiresAt: null,
      };
    }),
  );
  await ctx.db.transaction(async (tx) => enqueueEvents(ctx, tx, events));
}

interface Receivers extends AsyncDisposable {
  readonly urls: readonly string[];
  /** The first `count` answer nothing until `answer`. Resolves when each of them was asked `each` times in vain. */
  hang(count: number, each: number): Promise<void>;
  /** Everybody answers again, what was left unanswered too. */
  answer(): void;
  /** Resolves when each of these has received `each` more. */
  expect(urls: readonly string[], each: number): Promise<void>;
}

async function openReceivers(receiversCount: number): Promise<Receivers> {
  let hanging = 0;
  let unanswered: ServerResponse[] = [];
  let hungMost = 0;
  let onHung: (() => void) | null = null;
  const leave = (response: ServerResponse): void => {
    unanswered.push(response);
    if (unanswered.length === hungMost) onHung?.();
  };
  let missing = new Map<string, number>();
  let onComplete: (() => void) | null = null;
  const urls: string[] = [];
  const note = (url: string): void => {
    const left = (missing.get(url) ?? 0) - 1;
    if (left > 0) missing.set(url, left);
    else if (missing.delete(url) && missing.size === 0) onComplete?.();
  };
  const servers = await Promise.all(
    times(receiversCount).map(async (index): Promise<Server> => {
      const server = createServer((request, response) => {
        request.resume();
        if (index < hanging) return leave(response);
        response.end("ok", () => note(urls[index] ?? ""));
      });
      server.keepAliveTimeout = 60_000;
      server.listen(0, "127.0.0.1", 16);
      await once(server, "listening");
      urls[index] = `http://127.0.0.1:${(server.address() as AddressInfo).port}/hook`;
      return server;
    }),
  );
  return {
    urls,
    async hang(count, each) {
      hanging = count;
      hungMost = count * each;
      return new Promise((resolve) => {
        onHung = resolve;
      });
    },
    answer() {
      hanging = 0;
      for (const response of unanswered) response.end("ok");
      unanswered = [];
    },
    async expect(expected, each) {
      const waiting = Promise.withResolvers<void>();
      missing = new Map(expected.map((url) => [url, each]));
      onComplete = waiting.resolve;
      return waiting.promise;
    },
    async [Symbol.asyncDispose]() {
      for (const server of servers) {
        server.closeAllConnections();
        server.close();
      }
    },
  };
}

/** Waits until the service has stored the outcome of every delivery. */
async function settled(ctx: Ctx): Promise<void> {
  while ((await readBacklog(ctx.db)).count > 0) await pause(10);
}

async function seed(ctx: Ctx): Promise<Sending> {
  const { id: organizationId } = await createOrganization(ctx, { name: "Bench" }, "bench");
  const domain = { organizationId, domain: "localhost", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "bench");
  const given = { clientDomainId, name: "Bench", fields: null, transfers: 1, priceRappen: 0n };
  const { kycPackage } = await buyPackage(ctx, given, "bench");
  return { ctx, clientDomainId, packageId: kycPackage.id };
}

function costRows({ receiversCount }: DeliveryPlan, cost: Cost): Row[] {
  return [
    {
      name: `webhook to one of ${receiversCount} receivers (CPU of the service)`,
      unit: "ms",
      ours: cost.serverMs,
      peer: null,
      target: { kind: "at-most", most: msMost },
    },
    {
      name: `webhook to one of ${receiversCount} receivers (CPU of the database)`,
      unit: "ms",
      ours: cost.databaseMs,
      peer: null,
      target: { kind: "printed" },
    },
    {
      name: `webhook to one of ${receiversCount} receivers (database calls)`,
      unit: "calls",
      ours: cost.databaseCalls,
      peer: null,
      target: { kind: "at-most", most: callsMost },
    },
  ];
}

function throughputRow(
  { receiversCount, hangingCount }: DeliveryPlan,
  { aloneSeconds, besideSeconds }: Compared,
): Row {
  const count = (receiversCount - hangingCount) * eventsEach;
  return {
    name: `${count} webhooks while ${hangingCount} other receivers hang; beside it while none does (wall)`,
    unit: "s",
    ours: besideSeconds,
    peer: aloneSeconds,
    target: { kind: "share-of-peer", most: Number((1 / throughputLeast).toFixed(2)) },
  };
}
