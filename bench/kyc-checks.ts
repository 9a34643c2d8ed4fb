import { randomBytes } from "node:crypto";
import { type Address, type FieldName, type Hex32, hexOfBytes } from "@svc/protocol";
import { createApiKey, createDomain, createOrganization } from "../service/src/accounts/index.ts";
import { openContext } from "../service/src/compose.ts";
import { getBuiltInIssuer, issueCredential } from "../service/src/credentials/index.ts";
import { ensureBuiltInIssuers } from "../service/src/credentials/issuers.ts";
import { listOwnCredentials } from "../service/src/credentials/collection.ts";
import { settleWithoutChain } from "../service/src/credentials/test-credentials.ts";
import { parseConfig } from "../service/src/platform/config/config.ts";
import { type Cluster, openCluster } from "./cluster.ts";
import { sendExpecting } from "./http-client.ts";
import { forEachOf, times } from "./load.ts";
import type { Result } from "./login.ts";
import { type Cost, measure, medianCost, type Party } from "./party.ts";
import type { Row } from "./row.ts";
import { serviceEnvironment, startParty } from "./service-party.ts";

/** How much is asked. */
interface CheckPlan {
  /** Users with an id card, an address and an e-mail address each. */
  readonly usersCount: number;
  readonly batchSize: number;
  readonly rounds: number;
  /** Rounds that are not counted, until V8 has compiled the hot code. */
  readonly warmUpRounds: number;
}

const fullPlan: CheckPlan = { usersCount: 1000, batchSize: 2000, rounds: 3, warmUpRounds: 12 };
const shortPlan: CheckPlan = { usersCount: 100, batchSize: 200, rounds: 1, warmUpRounds: 1 };
const concurrencies = [1, 16] as const;
const connections = 10;
/** At least 3,000 a second of CPU. */
const msMost = 1000 / 3000;

interface SeededUser {
  readonly user: Address;
  readonly infos: readonly { field: FieldName; data: string; pepper: Hex32 }[];
}

/** What `verified` and `valid` cost: CPU of the service and of PostgreSQL together, and database calls. */
export async function benchKycChecks(
  report: (line: string) => void,
  isShort: boolean,
): Promise<Result> {
  const plan = isShort ? shortPlan : fullPlan;
  await using cluster = await openCluster();
  const environment = {
    ...(await serviceEnvironment(await cluster.createDatabase("service"), connections)),
    CHAIN: "off",
  };
  report(`issuing to ${plan.usersCount} users`);
  const { apiKey, users } = await seed(environment, plan.usersCount);
  await cluster.vacuum();
  await using party = await startParty(environment);
  const { baseUrl } = party;
  const authorization = { authorization: apiKey };
  const bodies = users.map((each) => JSON.stringify(each));
  const verified = async (index: number): Promise<void> => {
    const user = users[index % users.length]?.user;
    const query = "items=IDCARD_DOB&items=EMAIL&items=ADDRESS_CITY";
    const url = `${baseUrl}/api/v1/blockchain/verified?user=${user}&${query}`;
    await sendExpecting(200, url, { headers: authorization });
  };
  const valid = async (index: number): Promise<void> => {
    await sendExpecting(200, `${baseUrl}/api/v1/blockchain/valid`, {
      method: "POST",
      headers: { ...authorization, "content-type": "application/json" },
      body: bodies[index % bodies.length] ?? "",
    });
  };
  const rows: Row[] = [];
  for (const concurrency of concurrencies) {
    const manner = `${concurrency} at a time`;
    report(`asking, ${manner}`);
    const call = { cluster, party, concurrency, plan };
    const verifiedCost = await measureRounds(call, verified);
    rows.push(...rowsOf(`verified, 3 names, ${manner}`, verifiedCost, concurrency));
    const validCost = await measureRounds(call, valid);
    rows.push(...rowsOf(`valid, 3 triples, ${manner}`, validCost, concurrency));
  }
  return { rows, postgresVersion: cluster.version };
}

interface Asking {
  readonly cluster: Cluster;
  readonly party: Party;
  readonly concurrency: number;
  readonly plan: CheckPlan;
}

async function measureRounds(
  { cluster, party, concurrency, plan }: Asking,
  call: (index: number) => Promise<void>,
): Promise<Cost> {
  const { batchSize, rounds, warmUpRounds } = plan;
  const costs: Cost[] = [];
  for (let round = 0; round < warmUpRounds + rounds; round += 1) {
    const { cost } = await measure(cluster, party, {
      operations: batchSize,
      work: async () => forEachOf(times(batchSize), concurrency, call),
    });
    if (round >= warmUpRounds) costs.push(cost);
  }
  return medianCost(costs);
}

/** One at a time, every question pays for waking the database, so the CPU with the database is printed, not judged. */
function rowsOf(name: string, cost: Cost, concurrency: number): Row[] {
  const target = { kind: "at-most", most: Number(msMost.toFixed(3)) } as const;
  const [unit, peer] = ["ms", null] as const;
  return [
    { name: `${name} (CPU of the service)`, unit, ours: cost.serverMs, peer, target },
    {
      name: `${name} (CPU, with the database)`,
      unit,
      ours: cost.serverMs + cost.databaseMs,
      peer,
      target: concurrency > 1 ? target : { kind: "printed" },
    },
    {
      name: `${name} (database calls)`,
      unit: "calls",
      ours: Math.round(cost.databaseCalls * 10) / 10,
      peer,
      target: { kind: "at-most", most: 1 },
    },
  ];
}

async function seed(
  environment: NodeJS.ProcessEnv,
  usersCount: number,
): Promise<{ apiKey: string; users: SeededUser[] }> {
  await using ctx = await openContext(parseConfig(environment));
  const { id: organizationId } = await createOrganization(ctx, { name: "Bench" }, "bench");
  const domain = { organizationId, domain: "localhost", environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, domain, "bench");
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "bench" }, "bench");
  await ensureBuiltInIssuers(ctx);
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + 365 * 86_400;
  const users = await forEachOf(times(usersCount), connections, async (index) => {
    const user = hexOfBytes(randomBytes(20));
    for (const document of documentsOf(index))
      await issueCredential(ctx, issuer, { user, expiresAt, ...document });
    const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 10 });
    const asked = new Set<FieldName>(["IDCARD_DOB", "EMAIL", "ADDRESS_CITY"]);
    const infos = items
      .flatMap(({ fields }) => fields)
      .filter(({ field }) => asked.has(field))
      .map(({ field, data = "", pepper = "0x" }) => ({ field, data, pepper }));
    return { user, infos };
  });
  for (let batch = 0; batch * 1000 < usersCount * 3 + 1000; batch += 1)
    await settleWithoutChain(ctx);
  return { apiKey, users };
}

function documentsOf(index: number) {
  return [
    {
      document: "IDCARD",
      fields: [
        { field: "IDCARD_NAME", data: `Person ${index}` },
        { field: "IDCARD_DOB", data: "1990-05-17" },
        { field: "IDCARD_NATIONALITY", data: "CHE" },
        { field: "IDCARD_COUNTRY", data: "CHE" },
        { field: "IDCARD_DOCUMENT_NUMBER", data: `S${index}` },
      ],
    },
    {
      document: "ADDRESS",
      fields: [
        { field: "ADDRESS_CITY", data: "Zug" },
        { field: "ADDRESS_COUNTRY", data: "CHE" },
      ],
    },
    { document: "CONTACT", fields: [{ field: "EMAIL", data: `p${index}@example.com` }] },
  ];
}
