// The shop's own organization, with everything that a merchant who deals with persons and companies has.
import { join } from "node:path";
import {
  buyPackage,
  createApiKey,
  createClient,
  createDomain,
  createOrganization,
  getClient,
  getDomain,
  moveLocalDomain,
  type NewClient,
  updateClient,
} from "@svc/service/accounts";
import type { Service } from "@svc/service";
import { readJson, writeJson } from "./json-file.ts";
import { actor, audience, equipForBusinesses } from "./seed-organization.ts";

/** What the shop starts with; it belongs to the shop and is not listed in the demo world. */
export interface ShopAccount {
  clientDomainId: string;
  clientId: string;
  clientSecret: string;
  apiKey: string;
  sourceKey: string;
  signingKey: string;
  shopUrl: string;
}

/** The shop's own client, created at the first start and updated when the shop's address changes. */
export async function openShopAccount(
  service: Service,
  { directory, shopUrl }: { directory: string; shopUrl: string },
): Promise<ShopAccount> {
  const path = join(directory, "shop.json");
  const known = readJson(path) as ShopAccount | null;
  if (known?.shopUrl === shopUrl && known.clientDomainId !== undefined) return known;
  const account =
    known === null ? await seedShop(service, shopUrl) : await moveShop(service, known, shopUrl);
  writeJson(path, account);
  return account;
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
  const bought = { ...any, transfers: 1000, priceRappen: 0n };
  const { kycPackage, signingKey } = await buyPackage(ctx, bought, actor);
  await equipForBusinesses(service, organization.id);
  return {
    clientDomainId: domain.id,
    clientId: client.id,
    clientSecret: secret,
    apiKey: key,
    sourceKey: kycPackage.sourceKey,
    signingKey,
    shopUrl,
  };
}

/** With another `PORT` the same shop has another address. */
async function moveShop(
  service: Service,
  known: ShopAccount,
  shopUrl: string,
): Promise<ShopAccount> {
  const { ctx } = service;
  const { clientId } = known;
  const { clientDomainId } = await getClient(ctx, clientId);
  await moveLocalDomain(ctx, { id: clientDomainId, domain: new URL(shopUrl).host }, actor);
  await updateClient(ctx, { clientId, changes: addressesOf(shopUrl) }, actor);
  const { organizationId } = await getDomain(ctx, clientDomainId);
  await equipForBusinesses(service, organizationId);
  return { ...known, clientDomainId, shopUrl };
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
