import type { Address, RequestObject } from "@svc/protocol";
import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { CredentialsContext } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { AttestationKeys } from "./release/attestation-keys.ts";
import type { BallotKinds } from "./ballot/ballot.ts";

/** What the slice tells those above it; passed by `compose.ts`. */
export interface KybCallbacks {
  /**
   * Ends what members hold elsewhere for a business whose roster, standing or wallet changed: logins and their tokens. In
   * the transaction of the change.
   */
  endBusinessLogins(tx: Queryable, business: Address): Promise<void>;
}

/** What businesses work with. */
export interface KybContext
  extends AccountsContext, ChainContext, CredentialsContext, KybCallbacks {
  /** What follows from votes, by what is voted on. */
  readonly ballotKinds: BallotKinds;
  readonly attestationKeys: AttestationKeys;
  /** Signs who asks for what with the key that wallets know (decisions section 3). */
  signRequestObject(claims: RequestObject): string;
}

/** Who a wallet session is of. @throws {Problem} wallet_session_required */
export type WalletCaller = (authorization: string | undefined) => Promise<Address>;
