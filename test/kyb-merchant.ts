import {
  createApiKey,
  createDomain,
  createOrganization,
  setEntitlement,
  topUp,
} from "../service/src/accounts/index.ts";
import type { KybWorld } from "./kyb-world.ts";

export interface Merchant {
  readonly apiKey: string;
  readonly organizationId: string;
}

/** Another merchant beside the world's own: a new organization with a live client domain and a key, without an endpoint. */
export async function addMerchant(
  { ctx }: KybWorld,
  given: { name?: string; entitlements: readonly string[]; fundsRappen?: bigint },
): Promise<Merchant> {
  const { name = "Other", entitlements, fundsRappen = 0n } = given;
  const environment = "live";
  const { id: organizationId } = await createOrganization(ctx, { name }, "test");
  const domain = { organizationId, domain: "localhost", environment };
  const { id: clientDomainId } = await createDomain(ctx, domain, "test");
  const { key: apiKey } = await createApiKey(ctx, { clientDomainId, name: "Backend" }, "test");
  for (const entitlement of entitlements)
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");
  if (fundsRappen > 0n)
    await topUp(ctx, { organizationId, environment, amountRappen: fundsRappen }, "test");
  return { apiKey, organizationId };
}
