export { walletRoutes } from "./routes.ts";
export { deleteSessionsOf } from "./store.ts";
export { getWalletUser, purgeWalletSessions } from "./wallet-sessions.ts";
