import type { SealedColumn } from "../platform/sealed-columns.ts";

export { type AnchorReport, hasAnchors, verifyAnchors } from "./anchors.ts";
export { announceInvalidated, listHandedOver } from "./handed-over.ts";
export { forgetOrders } from "./forgetting.ts";
export { kycJobs } from "./jobs.ts";
export type { KycContext } from "./kyc-context.ts";
export { kycRoutes } from "./routes.ts";
export { makeSyntheticIdentity, type Play, plays, simulate } from "./simulation.ts";
export { settlementFinalHandlers } from "./settlement.ts";
export { kycWalletRoutes } from "./wallet-routes.ts";

/** What this slice keeps sealed. */
export const kycSealedColumns: readonly SealedColumn[] = [
  { table: "kyc_payload", idColumn: "order_id", column: "sealed" },
  { table: "synthetic_identity", idColumn: "user_address", column: "key_sealed" },
  { table: "synthetic_identity", idColumn: "user_address", column: "held_sealed" },
];
