export { walletJobs } from "./jobs.ts";
export { deleteBoxesOf } from "./mailbox-store.ts";
export { pushSealedColumns } from "./push.ts";
export { deletePushOf } from "./push-store.ts";
export { walletRoutes } from "./routes.ts";
export { deleteSessionsOf } from "./wallet-session-store.ts";
export { getWalletUser } from "./wallet-sessions.ts";
