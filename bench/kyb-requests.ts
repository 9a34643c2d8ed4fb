// Data requests to businesses: one from create to release, and a thousand open ones that 25 members vote on.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Address } from "@svc/protocol";
import {
  createApiKey,
  createDomain,
  createOrganization,
  setEntitlement,
  topUp,
} from "../service/src/accounts/index.ts";
import { openContext } from "../service/src/compose.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import type { Ctx } from "../service/src/platform/context.ts";
import { type DataWorld, merchantOf } from "../test/kyb-data-world.ts";
import { insertBusinesses } from "../test/kyb-many-businesses.ts";
import { actorsOf, type InboxItem } from "../test/kyb-world.ts";
import type { World } from "../test/world.ts";
import { asDriver, type Cluster, openCluster } from "./cluster.ts";
import { sendExpecting } from "./http-client.ts";
import { type KybReceiver, openKybReceiver } from "./kyb-receiver.ts";
import { forEachOf, times } from "./load.ts";
import { type Cost, measure, type Party } from "./party.ts";
import { serviceEnvironment, startParty } from "./service-party.ts";

export interface RequestPlan {
  /** From create to release one after the other, to businesses of three. */
  readonly lone: number;
  /** Open at once, to businesses of `members`. */
  readonly open: number;
  readonly members: number;
}

export const fullRequests: RequestPlan = { lone: 200, open: 1000, members: 25 };
/** Too few for figures; shows that everything runs. */
export const shortRequests: RequestPlan = { lone: 20, open: 50, members: 25 };

export interface RequestCosts {
  /** Of one request from create to release: two members read their inboxes and approve. */
  readonly lone: Cost;
  /** Of one more open request. */
  readonly create: Cost;
  /** Of a page of 100 votes in the inbox of somebody who has all of them. */
  readonly page: Cost;
  /** Of one vote that does not decide. */
  readonly vote: Cost;
  /** Of the vote that decides, with the release, its charge, its attestation and its webhook. */
  readonly deciding: Cost;
  readonly postgresVersion: string;
}

interface Bench {
  readonly cluster: Cluster;
  readonly party: Party;
  readonly world: DataWorld;
  readonly receiver: KybReceiver;
}

const concurrency = 16;
/** A business takes 20 requests a day of an organization. */
const requestsPerBusiness = 10;
const fundsRappen = 100_000_000n;

export async function measureRequests(
  report: (line: string) => void,
  plan: RequestPlan,
): Promise<RequestCosts> {
  await using cluster = await openCluster();
  const directory = await mkdtemp(join(tmpdir(), "svc-bench-data-"));
  const environment = {
    ...(await serviceEnvironment(await cluster.createDatabase("service"))),
    DATA_DIR: directory,
    LIMIT_CREATES_PER_SECOND: "100000",
    LIMIT_READS_PER_SECOND: "100000",
    LIMIT_LOGINS_PER_ADDRESS_MINUTE: "100000",
  };
  const driver = { ...environment, CHAIN: "off", DATABASE_URL: asDriver(environment.DATABASE_URL) };
  await using ctx = await openContext(parseConfig(driver));
  await using receiver = await openKybReceiver();
  await using party = await startParty({ ...environment, CHAIN: "on" });
  const world = await openBenchWorld(ctx, party.baseUrl, receiver);
  const costs = await measureAll(report, { cluster, party, world, receiver }, plan);
  await rm(directory, { recursive: true, force: true });
  return { ...costs, postgresVersion: cluster.version };
}

/** A merchant with every entitlement, money and an endpoint; the service is another process. */
async function openBenchWorld(
  ctx: Ctx,
  baseUrl: string,
  receiver: KybReceiver,
): Promise<DataWorld> {
  const { id: organizationId } = await createOrganization(ctx, { name: "Bench" }, "bench");
  const domain = { organizationId, domain: "localhost", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "bench");
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "bench" }, "bench");
  for (const entitlement of ["kyb:data-request", "kyb:pii"])
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "bench");
  const money = { organizationId, environment: "live", amountRappen: fundsRappen } as const;
  await topUp(ctx, money, "bench");
  // Votes on data need no more of the chain than its id.
  const chain = { chainId: await readChainId(baseUrl) };
  const near = { ctx: { ...ctx, chain }, baseUrl, organizationId, clientDomainId };
  const world = near as unknown as World;
  const actors = { ...world, ...actorsOf(world, apiKey), apiKey };
  const endpoint = { body: { url: receiver.url } };
  const { status } = await actors.call("PUT", "/api/v1/kyb/webhook-endpoint", endpoint);
  if (status !== 200) throw new Error(`the endpoint was refused with ${status}`);
  const business = { address: `0x${"00".repeat(20)}` as const, name: "", members: [] };
  const merchant = await merchantOf({ ...actors, business });
  return { ...actors, ...merchant, business };
}

async function readChainId(baseUrl: string): Promise<number> {
  const { body } = await sendExpecting(200, `${baseUrl}/w/chain`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method: "eth_chainId", params: [] }),
  });
  const { result } = JSON.parse(body) as { result: string };
  return Number(result);
}

async function measureAll(
  report: (line: string) => void,
  bench: Bench,
  plan: RequestPlan,
): Promise<Omit<RequestCosts, "postgresVersion">> {
  const { cluster, party, world } = bench;
  const cost = async (operations: number, work: () => Promise<unknown>): Promise<Cost> =>
    (await measure(cluster, party, { operations, work })).cost;
  const count = plan.lone / requestsPerBusiness;
  report("records for businesses of three");
  const small = await insertBusinesses(world, count, ["alice", "bob", "carol"]);
  await forEachOf(small, 1, async (business) => releaseOne(bench, business));
  await cluster.vacuum();
  report(`${plan.lone} requests from create to release`);
  const lone = await cost(plan.lone, async () =>
    forEachOf(times(plan.lone), 1, async (at) => releaseOne(bench, small[at % count])),
  );
  report(`records for ${plan.open} businesses of ${plan.members}`);
  const names = times(plan.members).map((at) => `member ${at}`);
  const large = await insertBusinesses(world, plan.open, names);
  await cluster.vacuum();
  report(`${plan.open} requests`);
  const announced = bench.receiver.expect(plan.open, "pending_approval");
  const create = await cost(plan.open, async () =>
    forEachOf(large, concurrency, async (business) => ask(bench, business)),
  );
  // The events go out at 50 a second, and are not part of what reading an inbox costs.
  await announced;
  await cluster.vacuum();
  const majority = Math.floor(plan.members / 2) + 1;
  const [first = "", ...voters] = names.slice(0, majority);
  const last = voters.pop() ?? "";
  await inboxOf(world, first);
  const pages = Math.ceil(plan.open / pageSize);
  report("pages of an inbox");
  const page = await cost(pages, async () => inboxOf(world, first));
  const vote = async (name: string): Promise<void> => voteOnAll(bench, name);
  report(`votes of ${majority} members on all of them`);
  await vote(first);
  const votes: Cost[] = [];
  for (const name of voters) votes.push(await costOfVotes(bench, plan.open, name));
  report("the votes that decide");
  const deciding = await cost(plan.open, async () => {
    const released = bench.receiver.expect(plan.open, "released");
    await vote(last);
    await released;
  });
  return { lone, create, page, vote: meanOf(votes), deciding };
}

/** Without reading the inbox, which is measured apart. */
async function costOfVotes(bench: Bench, count: number, name: string): Promise<Cost> {
  const items = await inboxOf(bench.world, name);
  if (items.length !== count) throw new Error(`${name} has ${items.length} votes, not ${count}`);
  const { cost } = await measure(bench.cluster, bench.party, {
    operations: count,
    work: async () => voteOn(bench, name, items),
  });
  return cost;
}

function meanOf(costs: readonly Cost[]): Cost {
  const mean = (pick: (cost: Cost) => number): number =>
    costs.reduce((sum, cost) => sum + pick(cost), 0) / costs.length;
  return {
    serverMs: mean((cost) => cost.serverMs),
    databaseMs: mean((cost) => cost.databaseMs),
    databaseCalls: mean((cost) => cost.databaseCalls),
  };
}

const fields = ["BUSINESS_LEGAL_NAME", "BUSINESS_REGISTRATION_NUMBER", "BUSINESS_DIRECTOR_NAME"];

async function ask({ world }: Bench, business: Address): Promise<string> {
  const { status, body } = await world.ask({
    businessWalletAddress: business,
    fields,
    optionalFields: [],
  });
  if (status !== 201) throw new Error(`a request was refused: ${JSON.stringify(body)}`);
  return String(body["requestId"]);
}

/** Until its webhook has arrived. */
async function releaseOne(bench: Bench, business: Address | undefined): Promise<void> {
  if (business === undefined) throw new Error("there are too few businesses");
  const released = bench.receiver.expect(1, "released");
  const id = await ask(bench, business);
  for (const name of ["alice", "bob"]) {
    const { status, body } = await bench.world.voteAs(name, id);
    if (status !== 200) throw new Error(`a vote was refused: ${JSON.stringify(body)}`);
  }
  await released;
}

async function voteOnAll(bench: Bench, name: string): Promise<void> {
  await voteOn(bench, name, await inboxOf(bench.world, name));
}

async function voteOn(bench: Bench, name: string, items: readonly InboxItem[]): Promise<void> {
  await forEachOf(items, concurrency, async (item) => {
    const { status, body } = await bench.world.voteAs(name, item.id, { item });
    if (status !== 200) throw new Error(`a vote was refused: ${JSON.stringify(body)}`);
  });
}

const pageSize = 100;

async function inboxOf(world: DataWorld, name: string): Promise<InboxItem[]> {
  const items: InboxItem[] = [];
  let cursor = "";
  do {
    const after = cursor === "" ? "" : `&cursor=${encodeURIComponent(cursor)}`;
    const path = `/w/inbox?limit=${pageSize}${after}`;
    const { body } = await world.walletCall(name, "GET", path);
    items.push(...(body["items"] as InboxItem[]));
    cursor = (body["nextCursor"] as string | undefined) ?? "";
  } while (cursor !== "");
  return items;
}
