import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { AccountsContext, Environment } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { Mailer } from "../platform/mail.ts";
import type { IssuerKeys } from "./issuer-key-lookup.ts";
import type { Lookups } from "./lookups.ts";

/** A leaf that is no longer valid; merchants who were given its value get an event. */
export interface InvalidLeaf {
  readonly leaf: Hex32;
  readonly user: Address;
  readonly field: FieldName;
}

/** The business that a company record is about. */
export interface RecordedCompany {
  readonly business: Address;
  readonly environment: Environment;
}

/** The functions that records of companies call in the slice that has the businesses. */
export interface CompanyCallbacks {
  /**
   * Whether the business exists in this environment. Locks it until the transaction ends, so that changes of its
   * records take turns.
   */
  holdCompany(tx: Queryable, company: RecordedCompany): Promise<boolean>;
  /**
   * Called when a new record vouches for the business, and when the last record that did has ended. In that
   * transaction, with the business locked.
   */
  onCompanyRecord(
    tx: Queryable,
    company: RecordedCompany & { readonly isVouchedFor: boolean },
  ): Promise<void>;
}

/** The functions of higher slices that this one calls; passed by `compose.ts`. */
export interface CredentialsCallbacks extends CompanyCallbacks {
  /**
   * Whether this organization may ask about this user (decisions section 4). `verified`, `qrcode`, `valid` and `proof`
   * all check it; an organization that may not ask gets the answer for a user without credentials.
   */
  mayAsk(organizationId: string, user: Address): Promise<boolean>;
  /** The leaves of these fields that were handed over to the organization, still valid or not. */
  listHandedOver(
    organizationId: string,
    given: { user: Address; fields: readonly FieldName[] },
  ): Promise<readonly Hex32[]>;
  /**
   * Called in the transaction that invalidates leaves before they expire: revoked, withdrawn, or their issuer
   * distrusted. At most a few thousand leaves per call. Not called for leaves that expire.
   */
  onInvalidated(tx: Queryable, leaves: readonly InvalidLeaf[]): Promise<void>;
  /** Called when a record of a business has ended, in that transaction, with the business locked. */
  onCompanyRecordOver(tx: Queryable, company: RecordedCompany): Promise<void>;
}

/**
 * The context of the slice: in addition to the common one, keys of the API and of issuers, mail, and the functions of
 * higher slices.
 */
export interface CredentialsContext extends ChainContext, AccountsContext, CredentialsCallbacks {
  readonly issuerKeys: IssuerKeys;
  readonly lookups: Lookups;
  /** Null if e-mail verification is switched off: `production` without `SMTP_URL`. */
  readonly mailer: Mailer | null;
}
