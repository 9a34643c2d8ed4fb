import type { Address, RequestObject } from "@svc/protocol";
import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { AttestationKeys } from "./release/attestation-keys.ts";
import type { BallotKinds } from "./ballot/ballot.ts";

/** The functions of higher slices that this one calls; passed by `compose.ts`. */
export interface KybCallbacks {
  /**
   * Ends all logins for a business, with their tokens, because its roster, standing or wallet has changed. Called in
   * the transaction of the change.
   */
  endBusinessLogins(tx: Queryable, business: Address): Promise<void>;
  /** Signs a request object with the key that wallets know (decisions section 3). */
  signRequestObject(claims: RequestObject): string;
}

/** The context of this slice. */
export interface KybContext
  extends AccountsContext, ChainContext, CredentialsContext, KybCallbacks {
  /** The ballot rules of each kind. */
  readonly ballotKinds: BallotKinds;
  readonly attestationKeys: AttestationKeys;
}
