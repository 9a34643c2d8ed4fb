import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { payloadColumn } from "./consent.ts";
import { syntheticFieldsColumn, syntheticKeyColumn } from "./synthetic-identity.ts";

export { type AnchorReport, hasAnchors, verifyAnchors } from "./anchors.ts";
export { announceInvalidated } from "./handed-over.ts";
export { listHandedOver } from "./handed-over-store.ts";
export { forgetOrders } from "./user-deletion.ts";
export { listOrdersOf } from "./order-store.ts";
export { kycJobs } from "./jobs.ts";
export type { KycContext } from "./kyc-context.ts";
export { openOrderMetrics } from "./order-metrics.ts";
export { kycRoutes } from "./routes.ts";
export { type Play, plays, simulate } from "./simulation.ts";
export { settlementFinalHandlers } from "./settlement.ts";
export { reportOrder } from "./order-report.ts";
export { makeSyntheticIdentity } from "./synthetic-identity.ts";
export { kycWalletRoutes } from "./wallet-routes.ts";

/** The sealed columns of this slice. */
export const kycSealedColumns: readonly SealedColumn[] = [
  payloadColumn,
  syntheticKeyColumn,
  syntheticFieldsColumn,
];
