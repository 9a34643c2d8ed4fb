import type { Address, BusinessFieldName } from "@svc/protocol";
import { type ApiKey, type Balance, readBalance } from "../../accounts/index.ts";
import { chfOfRappen } from "../../platform/money.ts";
import * as store from "./charge-store.ts";
import type { KybContext } from "../kyb-context.ts";
import { currency, type PriceLine } from "./pricing.ts";

/** What one release cost. */
export interface Charge {
  readonly id: string;
  readonly requestId: string;
  readonly business: Address;
  readonly amountRappen: number;
  readonly lines: readonly PriceLine[];
  /** Unix seconds. */
  readonly at: number;
}

/** The money of an organization on the caller's side, live or sandbox. */
export async function readAccount(
  ctx: Pick<KybContext, "db">,
  { organizationId, environment }: Pick<ApiKey, "organizationId" | "environment">,
) {
  return accountOf(await readBalance(ctx, { organizationId, environment }));
}

function accountOf(balance: Balance) {
  return {
    currency,
    totalChf: chfOfRappen(balance.paidInRappen),
    spentChf: chfOfRappen(balance.spentRappen),
    packagesChf: chfOfRappen(balance.packagesRappen),
    frozenChf: chfOfRappen(balance.heldRappen),
    availableChf: chfOfRappen(balance.availableRappen),
    billingEnabled: balance.paidInRappen > 0n,
  };
}

/** Charges of all client domains of the caller's organization, newest first. */
export async function listCharges(
  ctx: Pick<KybContext, "db">,
  { organizationId, environment }: Pick<ApiKey, "organizationId" | "environment">,
  page: { before: string | null; limit: number },
): Promise<Charge[]> {
  return store.listCharges(ctx.db, { organizationId, environment }, page);
}

/** A charge as it is sent; its lines are the lines of the quote whose fields were released. */
export function chargeRecordOf(charge: Charge): {
  chargeId: string;
  requestId: string;
  businessWalletAddress: Address;
  chargedAt: number;
  currency: string;
  totalCents: number;
  lines: { field: BusinessFieldName; tier: string; cents: number }[];
} {
  return {
    chargeId: charge.id,
    requestId: charge.requestId,
    businessWalletAddress: charge.business,
    chargedAt: charge.at,
    currency,
    totalCents: charge.amountRappen,
    lines: [...charge.lines],
  };
}
