import type { SealedColumn } from "../platform/cryptography/seal.ts";
import { subscriptionColumn } from "./push.ts";

export { walletJobs } from "./jobs.ts";
export { deleteBoxesOf } from "./mailbox-store.ts";
export { deletePushOf } from "./push-store.ts";
export { walletRoutes } from "./routes.ts";
export { reportWallets } from "./user-report-store.ts";
export { endSessionsOf, forgetSessionsOf, listSessionUsers } from "./wallet-session-store.ts";
export { getWalletUser } from "./wallet-sessions.ts";

/** The sealed columns of this slice. */
export const walletSealedColumns: readonly SealedColumn[] = [subscriptionColumn];
