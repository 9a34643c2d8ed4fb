import type { Address } from "@svc/protocol";
import type { RecentAttempts } from "./attempt/recent-attempts.ts";
import type { TokenContext } from "./token-context.ts";

/** What the authorization side of login works with. */
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
    /** The login that it is for: contracts are asked a few times for each. */
    readonly loginId: string;
    /** Where the answer came from: likewise, a few times for each. */
    readonly callerAddress: string;
  }): Promise<boolean>;
}
