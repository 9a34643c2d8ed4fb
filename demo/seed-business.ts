// The business of alice, bob and carol, founded with their wallets as anybody would do it, and what was verified about
// it.
import { type Address, type Hex, isBusinessField } from "@svc/protocol";
import { findCompanyNames, getBuiltInIssuer, issueCompanyRecord } from "@svc/service/credentials";
import type { Service } from "@svc/service";
import { findBusiness } from "@svc/service/kyb";
import { memoryStorage, type Wallet } from "@svc/wallet";
import { demoCompanyFields, demoCompanyName } from "./demo-company.ts";
import { openDemoWallet } from "./demo-wallet.ts";

/** What `DATA_DIR/demo.json` says about it. */
export interface DemoBusiness {
  address: Address;
  name: string;
  members: { address: Address; name: string; votingRights: boolean }[];
}

/** Its members by name, the founder first. */
type Members = readonly (readonly [
  name: string,
  identity: { address: Address; privateKey: Hex },
])[];

const environment = "live";
const lifetimeSeconds = 5 * 365 * 86_400;
const rule = "MAJORITY";
const rules = { signature_requests: rule, data_requests: rule, governance: rule } as const;

/**
 * Founds the business and has its record issued, continuing from where a start that was killed left off. It can be used
 * once {@link isUsable}.
 */
export async function foundDemoBusiness(service: Service, members: Members): Promise<DemoBusiness> {
  const name = demoCompanyName;
  const roster = members.map(([each, { address }]) => ({ name: each, address, isVoting: true }));
  await using wallets = await openWallets(service, members);
  const [founder, ...others] = wallets.all;
  if (founder === undefined) throw new Error("a business has members");
  const plan = { name, environment, members: roster, rules } as const;
  const address = (await findOwn(founder)) ?? (await founder.foundBusiness(plan)).address;
  await Promise.all(others.map(async (wallet) => accept(wallet, address)));
  await issueRecord(service, address);
  return {
    address,
    name,
    members: members.map(([each, identity]) => ({
      address: identity.address,
      name: each,
      votingRights: true,
    })),
  };
}

/** Whether the wallet is on chain and everything in its record counts. */
export async function isUsable(service: Service, address: Address): Promise<boolean> {
  const business = await findBusiness(service.ctx.db, address);
  return business?.status === "active" && (await listMissing(service, address)).length === 0;
}

/** A business that an earlier start founded. */
async function findOwn(founder: Wallet): Promise<Address | null> {
  const businesses = await founder.businesses();
  const own = businesses.find(
    ({ name, status }) => name === demoCompanyName && status !== "lapsed",
  );
  return own?.address ?? null;
}

async function accept(wallet: Wallet, business: Address): Promise<void> {
  const entries = await wallet.inbox();
  const invitation = entries.find(
    ({ kind, item }) => kind === "invitation" && item?.business.address === business,
  );
  if (invitation !== undefined) await wallet.vote(invitation.id, { vote: "approve" });
}

async function issueRecord(service: Service, business: Address): Promise<void> {
  const { ctx } = service;
  if ((await listMissing(service, business)).length === 0) return;
  const issuer = await getBuiltInIssuer(ctx, "demo", environment);
  const expiresAt = ctx.clock.now() + lifetimeSeconds;
  const record = { business, fields: demoCompanyFields(business), expiresAt };
  await issueCompanyRecord(ctx, issuer, record);
}

async function listMissing({ ctx }: Service, business: Address): Promise<string[]> {
  const names = demoCompanyFields(business)
    .map(({ field }) => field)
    .filter(isBusinessField);
  const now = ctx.clock.now();
  const found = await findCompanyNames(ctx.db, { environment, business, names, now });
  return names.filter((name) => !found.has(name));
}

/** The members' wallets, which end their sessions when they are closed. They store nothing. */
async function openWallets(
  service: Service,
  members: Members,
): Promise<{ all: Wallet[] } & AsyncDisposable> {
  const all = await Promise.all(
    members.map(async ([, { privateKey }]) =>
      openDemoWallet(service, { privateKey, storage: memoryStorage() }),
    ),
  );
  return {
    all,
    async [Symbol.asyncDispose]() {
      await Promise.all(all.map(async (wallet) => wallet.close()));
    },
  };
}
