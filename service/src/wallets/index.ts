export { purgeMailbox } from "./mailbox.ts";
export { deleteBoxesOf } from "./mailbox-store.ts";
export { purgeHints, pushSealedColumns, sendHints } from "./push.ts";
export { deletePushOf } from "./push-store.ts";
export { walletRoutes } from "./routes.ts";
export { deleteSessionsOf } from "./store.ts";
export { getWalletUser, purgeWalletSessions } from "./wallet-sessions.ts";
