// What both organizations of the demo have.
import { setEntitlement, topUp } from "@svc/service/accounts";
import type { Service } from "@svc/service";

/** Who is named in the audit trail. */
export const actor = "demo";
export const audience = "https://api.example.com";

const creditRappen = 50_000n;

/** Grants what dealing with businesses takes: every entitlement, and CHF 500 once. A repeated call changes nothing. */
export async function equipForBusinesses({ ctx }: Service, organizationId: string): Promise<void> {
  for (const entitlement of ["kyb:data-request", "kyb:pii", "kyb:signature"])
    await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, actor);
  const payment = { organizationId, environment: "live", subject: `demo:${organizationId}` };
  try {
    await topUp(ctx, { ...payment, amountRappen: creditRappen }, actor);
  } catch (error) {
    const isBooked =
      error instanceof Error && "reason" in error && error.reason === "payment_booked";
    if (!isBooked) throw error;
  }
}
