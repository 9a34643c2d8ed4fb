export { walletRoutes, type WalletDeps, type WalletLogin } from "./routes.ts";
export { purgeWalletSessions } from "./store.ts";
export { getWalletUser } from "./wallet-sessions.ts";
