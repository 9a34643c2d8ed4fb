import type { RefusalReason } from "@svc/protocol";
import { Type } from "../../platform/http/schema.ts";

const reasons = [
  "access_denied",
  "expired",
  "unsupported",
  "no_matching_data",
  "invalid_request",
] as const satisfies readonly RefusalReason[];

/** Why a wallet gives no approval, by whichever way it says so (decisions section 3). */
export const WalletRefusal = Type.Union(
  reasons.map((reason) => Type.Literal(reason)),
  {
    description:
      "Why there is no approval: `access_denied` by the user, otherwise what stopped the wallet. Each ends the login.",
  },
);
