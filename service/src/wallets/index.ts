export { walletRoutes } from "./routes.ts";
export { purgeWalletSessions } from "./store.ts";
