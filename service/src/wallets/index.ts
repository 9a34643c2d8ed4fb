export { purgeMailbox } from "./mailbox.ts";
export { deleteBoxesOf } from "./mailbox-store.ts";
export { walletRoutes } from "./routes.ts";
export { deleteSessionsOf } from "./store.ts";
export { getWalletUser, purgeWalletSessions } from "./wallet-sessions.ts";
