export { walletRoutes } from "./routes.ts";
export { deleteSessionsOf } from "./store.ts";
export { purgeWalletSessions } from "./wallet-sessions.ts";
