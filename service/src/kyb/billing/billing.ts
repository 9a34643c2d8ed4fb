import type { Address } from "@svc/protocol";
import { type ApiKey, readBalance } from "../../accounts/index.ts";
import { chfOfRappen } from "../../platform/money.ts";
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

/** The balance of an organization in the caller's environment. */
export async function readAccount(
  ctx: Pick<KybContext, "db">,
  { organizationId, environment }: Pick<ApiKey, "organizationId" | "environment">,
) {
  const balance = await readBalance(ctx, { organizationId, environment });
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

/** A charge as merchants see it; its lines are those lines of the quote whose fields were released. */
export function chargeRecordOf(charge: Charge) {
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
