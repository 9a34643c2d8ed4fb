import type { Address } from "@svc/protocol";

/** Whose wallet session an `Authorization` header is of. @throws {Problem} wallet_session_required */
export type WalletCaller = (authorization: string | undefined) => Promise<Address>;
