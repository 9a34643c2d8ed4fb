export { walletRoutes } from "./routes.ts";
export { purgeWalletSessions } from "./wallet-sessions.ts";
