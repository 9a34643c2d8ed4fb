import type { Address, FieldName, Hex32 } from "@svc/protocol";
import type { AccountsContext, Environment } from "../accounts/index.ts";
import type { ChainContext } from "../chain/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import type { Mailer } from "../platform/mail.ts";
import type { IssuerKeys } from "./issuer-key-lookup.ts";
import type { Lookups } from "./lookups.ts";

/** A leaf that no longer counts; merchants who were given its value are told. */
export interface InvalidLeaf {
  readonly leaf: Hex32;
  readonly user: Address;
  readonly field: FieldName;
}

/** A business as the records of companies refer to it. */
export interface RecordedCompany {
  readonly business: Address;
  readonly environment: Environment;
}

/** The functions that records of companies call in the slice that has the businesses. */
export interface CompanyCallbacks {
  /**
   * Whether the business exists on this side. It is locked until the transaction ends, so that changes to what vouches
   * for it take turns.
   */
  holdCompany(tx: Queryable, company: RecordedCompany): Promise<boolean>;
  /**
   * Called in the transaction in which a record vouches for a locked business, or in which the last record that did has
   * ended.
   */
  onCompanyRecord(
    tx: Queryable,
    company: RecordedCompany & { readonly isVouchedFor: boolean },
  ): Promise<void>;
}

/** The functions of higher slices that this one calls; passed by `compose.ts`. */
export interface CredentialsCallbacks extends CompanyCallbacks {
  /**
   * Whether this organization may ask about this user (decisions section 4): the one predicate before `verified`,
   * `qrcode`, `valid` and `proof`. An organization that may not ask gets the answer for a user without credentials.
   */
  mayAsk(organizationId: string, user: Address): Promise<boolean>;
  /** The leaves of this user's fields that were handed over to the organization, whether they still count or not. */
  listHandedOver(
    organizationId: string,
    given: { user: Address; fields: readonly FieldName[] },
  ): Promise<readonly Hex32[]>;
  /**
   * Called in the transaction in which leaves stop counting before their time: revoked, withdrawn, or their issuer
   * distrusted. At most a few thousand leaves per call. Not called for leaves that expire.
   */
  onInvalidated(tx: Queryable, leaves: readonly InvalidLeaf[]): Promise<void>;
  /** Called in the transaction in which a record of a locked business has ended: what it said is said no more. */
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
