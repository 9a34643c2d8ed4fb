// The demo world: one organization for people who call the service from outside, one for the shop.
import { randomBytes } from "node:crypto";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { type Address, addressOfPrivateKey, type Hex, hexOfBytes } from "@svc/protocol";
import {
  buyPackage,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  type NewClient,
} from "@svc/service/accounts";
import type { Service } from "@svc/service";
import { sendToRegistry } from "@svc/service/credentials";
import { readJson, writeJson } from "./json-file.ts";
import type { DemoBusiness } from "./seed-business.ts";
import { fundIdentities, isVerified, verifyAlice } from "./seed-fields.ts";
import { actor, audience, equipForBusinesses } from "./seed-organization.ts";
import { until } from "./until.ts";

/** What `DATA_DIR/demo.json` tells people who drive the demo from outside. */
export interface DemoWorld {
  baseUrl: string;
  shopUrl: string;
  chain: DemoChain;
  organization: { id: string };
  clientDomain: { id: string; domain: string };
  clients: DemoClient[];
  apiKey: string;
  packages: DemoPackage[];
  identities: Record<(typeof names)[number], DemoIdentity>;
  business: DemoBusiness;
}

interface DemoIdentity {
  address: Address;
  privateKey: Hex;
}

/** Where verifiers reach the chain, and what they should expect there. */
interface DemoChain {
  rpcUrl: string;
  chainId: number;
  contracts: { registry: string; settlement: string };
}

interface DemoPackage {
  name: string;
  sourceKey: string;
  signingKey: string;
  /** Absent if each request names its own. */
  fields?: readonly string[];
}

interface DemoClient {
  oauth2ClientID: string;
  secret?: string;
  redirectUris: readonly string[];
  audiences: readonly string[];
  tokenEndpointAuthMethod: string;
  numberMatching: boolean;
}

const names = ["alice", "bob", "carol", "operator"] as const;
const callbackUri = "http://localhost:4999/callback";

/** A world whose people have nothing yet. */
type BareWorld = Omit<DemoWorld, "business"> & Partial<Pick<DemoWorld, "business">>;

/**
 * Seeds the demo world at the first start; later starts find it as it was, with the present addresses. Its keys are
 * stored first, so that if a start is killed, the next one continues with the same people.
 */
export async function openDemoWorld(
  service: Service,
  { directory, shopUrl }: { directory: string; shopUrl: string },
): Promise<DemoWorld> {
  const path = join(directory, "demo.json");
  const bare = join(directory, "demo-begun.json");
  const known = (readJson(path) ?? readJson(bare)) as BareWorld | null;
  const begun = known ?? (await seedBareWorld(service, shopUrl));
  if (known === null) writeJson(bare, begun);
  const business = begun.business ?? (await equipPeople(service, begun, directory));
  const moved = { baseUrl: service.baseUrl, shopUrl, chain: chainOf(service) };
  const world = { ...begun, ...moved, business };
  if (JSON.stringify(world) !== JSON.stringify(known)) writeJson(path, world);
  rmSync(bare, { force: true });
  return world;
}

/** Everything that takes transactions is sent to the chain together, and awaited together. */
async function equipPeople(
  service: Service,
  world: BareWorld,
  directory: string,
): Promise<DemoBusiness> {
  const { organization, identities } = world;
  const { alice, bob, carol } = identities;
  await equipForBusinesses(service, organization.id);
  await fundIdentities(
    service,
    names.map((name) => identities[name].address),
  );
  await verifyAlice(service, alice.address);
  // The wallet is loaded only at the first start.
  const { foundDemoBusiness, isUsable } = await import("./seed-business.ts");
  const business = await foundDemoBusiness(service, [
    ["alice", alice],
    ["bob", bob],
    ["carol", carol],
  ]);
  const { chain, log } = service.ctx;
  if (!chain.isEmbedded)
    log.info("waiting until everything of the demo world is final on the chain");
  await until("everything of the demo world counts", chain, async () => {
    // Nothing else is under way that could share a transaction, so there is no reason to wait for the batch's window.
    await sendToRegistry(service.ctx);
    const isThere =
      (await isVerified(service, alice.address)) && (await isUsable(service, business.address));
    return isThere ? true : null;
  });
  const { collectFields } = await import("./demo-wallet.ts");
  await collectFields(service, { privateKey: alice.privateKey, directory });
  return business;
}

async function seedBareWorld(service: Service, shopUrl: string): Promise<BareWorld> {
  const { ctx } = service;
  const organization = await createOrganization(ctx, { name: "Demo organization" }, actor);
  const domain = await createDomain(
    ctx,
    { organizationId: organization.id, domain: "localhost:4999", environment: "live" },
    actor,
  );
  const common = {
    clientDomainId: domain.id,
    redirectUris: [callbackUri],
    postLogoutRedirectUris: ["http://localhost:4999/"],
    audiences: [audience],
  };
  const clients = [
    await addClient(service, {
      ...common,
      name: "Demo client",
      authenticationMethod: "client_secret_basic",
    }),
    await addClient(service, {
      ...common,
      name: "Demo client without number matching",
      authenticationMethod: "client_secret_basic",
      numberMatching: false,
    }),
    await addClient(service, {
      ...common,
      name: "Demo browser client",
      authenticationMethod: "none",
    }),
  ];
  const { key } = await createApiKey(ctx, { clientDomainId: domain.id, name: "Demo key" }, actor);
  const identities = Object.fromEntries(
    names.map((name) => [name, makeIdentity()]),
  ) as DemoWorld["identities"];
  const fixed = {
    clientDomainId: domain.id,
    name: "Age and e-mail",
    fields: ["IDCARD_DOB", "EMAIL"],
  };
  const dynamic = { clientDomainId: domain.id, name: "Any fields", fields: null };
  const packages = [await addPackage(service, fixed), await addPackage(service, dynamic)];
  return {
    baseUrl: service.baseUrl,
    shopUrl,
    chain: chainOf(service),
    organization: { id: organization.id },
    clientDomain: { id: domain.id, domain: domain.domain },
    clients,
    apiKey: key,
    packages,
    identities,
  };
}

function chainOf({ baseUrl, ctx }: Service): DemoChain {
  const { chainId, contracts } = ctx.chain;
  return { rpcUrl: `${baseUrl}/w/chain`, chainId, contracts };
}

async function addPackage(
  service: Service,
  given: { clientDomainId: string; name: string; fields: readonly string[] | null },
): Promise<DemoPackage> {
  const bought = { ...given, transfers: 1000, priceRappen: 0n };
  const { kycPackage, signingKey } = await buyPackage(service.ctx, bought, actor);
  const { name, sourceKey, fields } = kycPackage;
  return { name, sourceKey, signingKey, ...(fields === null ? {} : { fields }) };
}

async function addClient(service: Service, given: NewClient): Promise<DemoClient> {
  const { client, secret } = await createClient(service.ctx, given, actor);
  return {
    oauth2ClientID: client.id,
    ...(secret === null ? {} : { secret }),
    redirectUris: client.settings.redirectUris,
    audiences: client.settings.audiences,
    tokenEndpointAuthMethod: client.settings.authenticationMethod,
    numberMatching: client.settings.numberMatching,
  };
}

function makeIdentity(): DemoIdentity {
  const privateKey = randomBytes(32);
  return { address: addressOfPrivateKey(privateKey), privateKey: hexOfBytes(privateKey) };
}
