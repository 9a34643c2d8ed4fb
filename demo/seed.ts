// The demo world: one organization for whoever drives from outside, one for the shop.
import { randomBytes } from "node:crypto";
import { existsSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { addressOfPrivateKey, hexOfBytes } from "@svc/protocol";
import {
  buyPackage,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  type NewClient,
  topUp,
  updateClient,
} from "@svc/service/accounts";
import type { Service } from "@svc/service";
import { fundIdentities, verifyAlice } from "./seed-fields.ts";

/** What `DATA_DIR/demo.json` tells whoever drives the demo from outside. */
export interface DemoWorld {
  baseUrl: string;
  shopUrl: string;
  chain: DemoChain;
  organization: { id: string };
  clientDomain: { id: string; domain: string };
  clients: DemoClient[];
  apiKey: string;
  packages: DemoPackage[];
  identities: Record<(typeof names)[number], { address: string; privateKey: string }>;
}

/** Where verifiers ask the chain, and what they have to expect there. */
interface DemoChain {
  rpcUrl: string;
  chainId: number;
  contracts: { registry: string; settlement: string };
}

interface DemoPackage {
  name: string;
  sourceKey: string;
  signingKey: string;
  /** Absent where each request names its own. */
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

/** What the shop starts with; its own, and not listed in the demo world. */
export interface ShopAccount {
  clientId: string;
  clientSecret: string;
  apiKey: string;
  sourceKey: string;
  signingKey: string;
  shopUrl: string;
}

const names = ["alice", "bob", "carol", "operator"] as const;
const actor = "demo";
const callbackUri = "http://localhost:4999/callback";
const audience = "https://api.example.com";
const creditRappen = 50_000n;

/** Seeds the demo world at the first start; later starts find it as it was, at today's addresses. */
export async function openDemoWorld(
  service: Service,
  { directory, shopUrl }: { directory: string; shopUrl: string },
): Promise<DemoWorld> {
  const path = join(directory, "demo.json");
  const known = readJson(path) as DemoWorld | null;
  const world = known ?? (await seedWorld(service, shopUrl));
  const moved = { ...world, baseUrl: service.baseUrl, shopUrl, chain: chainOf(service) };
  if (JSON.stringify(moved) !== JSON.stringify(known)) writeJson(path, moved);
  return moved;
}

/** The shop's own client, made at the first start and moved along when the shop's address changes. */
export async function openShopAccount(
  service: Service,
  { directory, shopUrl }: { directory: string; shopUrl: string },
): Promise<ShopAccount> {
  const path = join(directory, "shop.json");
  const known = readJson(path) as ShopAccount | null;
  if (known === null) {
    const made = await seedShop(service, shopUrl);
    writeJson(path, made);
    return made;
  }
  if (known.shopUrl === shopUrl) return known;
  await updateClient(
    service.ctx,
    { clientId: known.clientId, changes: addressesOf(shopUrl) },
    actor,
  );
  const moved = { ...known, shopUrl };
  writeJson(path, moved);
  return moved;
}

async function seedWorld(service: Service, shopUrl: string): Promise<DemoWorld> {
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
  await topUp(
    ctx,
    { organizationId: organization.id, environment: "live", amountRappen: creditRappen },
    actor,
  );
  const fixed = {
    clientDomainId: domain.id,
    name: "Age and e-mail",
    fields: ["IDCARD_DOB", "EMAIL"],
  };
  const dynamic = { clientDomainId: domain.id, name: "Any fields", fields: null };
  const packages = [await addPackage(service, fixed), await addPackage(service, dynamic)];
  await fundIdentities(
    service,
    names.map((name) => identities[name].address),
  );
  await verifyAlice(service, identities.alice.address);
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

function makeIdentity(): { address: string; privateKey: string } {
  const privateKey = randomBytes(32);
  return { address: addressOfPrivateKey(privateKey), privateKey: hexOfBytes(privateKey) };
}

async function seedShop(service: Service, shopUrl: string): Promise<ShopAccount> {
  const { ctx } = service;
  const organization = await createOrganization(ctx, { name: "Demo shop" }, actor);
  const domain = await createDomain(
    ctx,
    { organizationId: organization.id, domain: new URL(shopUrl).host, environment: "live" },
    actor,
  );
  const given: NewClient = {
    clientDomainId: domain.id,
    name: "Demo shop",
    authenticationMethod: "client_secret_basic",
    audiences: [audience],
    ...addressesOf(shopUrl),
  };
  const { client, secret } = await createClient(ctx, given, actor);
  if (secret === null) throw new Error("a confidential client has a secret");
  const { key } = await createApiKey(ctx, { clientDomainId: domain.id, name: "Shop" }, actor);
  const any = { clientDomainId: domain.id, name: "Age and e-mail", fields: null };
  const { sourceKey, signingKey } = await addPackage(service, any);
  return {
    clientId: client.id,
    clientSecret: secret,
    apiKey: key,
    sourceKey,
    signingKey,
    shopUrl,
  };
}

function addressesOf(
  shopUrl: string,
): Pick<NewClient, "redirectUris" | "postLogoutRedirectUris" | "backchannelLogoutUri"> {
  return {
    redirectUris: [`${shopUrl}/callback`],
    postLogoutRedirectUris: [`${shopUrl}/`],
    backchannelLogoutUri: `${shopUrl}/backchannel-logout`,
  };
}

function readJson(path: string): unknown {
  return existsSync(path) ? JSON.parse(readFileSync(path, "utf8")) : null;
}

/** Written aside and renamed, so that a killed start leaves a whole file or none. */
function writeJson(path: string, value: unknown): void {
  const draft = `${path}.${process.pid}`;
  writeFileSync(draft, `${JSON.stringify(value, null, 2)}\n`, { mode: 0o600 });
  renameSync(draft, path);
}
