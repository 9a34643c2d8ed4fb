import type { Address } from "@svc/protocol";
import type { RecentAttempts } from "./attempt/recent-attempts.ts";
import type { TokenContext } from "./token-context.ts";

/** The context of the authorization side of login. */
export interface LoginContext extends TokenContext, SignatureVerifier {
  readonly recent: RecentAttempts;
}

/** Passed by `compose.ts`: accounts may be contracts, and those live on a chain that this slice does not know. */
export interface SignatureVerifier {
  /** Whether the account signed: an externally owned one at no cost, else ERC-1271, then ERC-6492. */
  verifySignature(claim: {
    readonly address: Address;
    readonly digest: Uint8Array;
    readonly signature: string;
    /** The login that it is for: a contract is asked only a few times for each. */
    readonly loginId: string;
    /** The address that the answer came from, for which contracts are asked only a few times too. */
    readonly callerAddress: string;
  }): Promise<boolean>;
}
