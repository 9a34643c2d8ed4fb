import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { AccountsContext } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { Queryable } from "../platform/db.ts";
import type { Mailer } from "../platform/mail.ts";
import type { IssuerKeys } from "./issuer-key-lookup.ts";
import type { Lookups } from "./lookups.ts";

/** A leaf that no longer counts, for whoever was given its value. */
export interface InvalidLeaf {
  readonly leaf: Hex32;
  readonly user: Address;
  readonly field: FieldName;
}

/** What the slice is told by those above it; passed by `compose.ts`. */
export interface CredentialsCallbacks {
  /**
   * Whether this organization may ask about this user (decisions section 4): the one predicate before `verified`,
   * `qrcode`, `valid` and `proof`. Whoever may not gets what a user without credentials gets.
   */
  mayAsk(organizationId: string, user: Address): Promise<boolean>;
  /** The leaves of this user's fields that were delivered to the organization, whether they still count or not. */
  listDelivered(
    organizationId: string,
    given: { user: Address; fields: readonly FieldName[] },
  ): Promise<readonly Hex32[]>;
  /**
   * Called in the transaction in which leaves stop counting before their time: revoked, withdrawn, or their issuer
   * distrusted. At most some thousands at once. Not called for leaves that expire.
   */
  onInvalidated(tx: Queryable, leaves: readonly InvalidLeaf[]): Promise<void>;
}

/** What the slice works with besides the context: keys of the API and of issuers, mail, those above. */
export interface CredentialsContext extends ChainContext, AccountsContext, CredentialsCallbacks {
  readonly issuerKeys: IssuerKeys;
  readonly lookups: Lookups;
  /** Null where e-mail verification is switched off: `production` without `SMTP_URL`. */
  readonly mailer: Mailer | null;
}
