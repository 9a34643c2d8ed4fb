import {
  type Address,
  type BusinessFieldName,
  entryOfBusinessField,
  hashOfBusinessField,
  type Hex32,
  releaseHash,
} from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import type { KybAnnouncement } from "../event/events.ts";
import { currency, type PriceLine, priceOf, type Tier } from "../billing/pricing.ts";

export type DataRequestStatus =
  | "pending_approval"
  | "released"
  | "refused"
  | "cancelled"
  | "failed";

/** Why a request ended unreleased (decisions section 6, States): the first two are refusals, the others failures. */
export type DataRequestReason =
  | "declined"
  | "expired"
  | "business_not_verified"
  | "business_wallet_rotated"
  | "unavailable";

/** A requested field, with its price at the time of the request. */
export interface RequestedField {
  readonly name: BusinessFieldName;
  readonly optional: boolean;
  /** Whether it was personal for this business at that time. */
  readonly naturalPersonPii: boolean;
  readonly tier: Tier;
  readonly cents: number;
}

/** What a merchant asks a business to release. */
export interface DataRequest {
  readonly id: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly business: Address;
  readonly purpose: string;
  readonly reference: string | null;
  /** Required ones first. */
  readonly fields: readonly RequestedField[];
  /** The price of all fields, which is held until the request ends. */
  readonly quotedRappen: number;
  readonly status: DataRequestStatus;
  readonly reason: DataRequestReason | null;
  /** The sequence of its last event. */
  readonly sequence: number;
  readonly createdAt: number;
  readonly expiresAt: number;
  /** The optional fields that are released, as fixed by the first approval; null before that. */
  readonly fixedOptional: readonly string[] | null;
  /** When enough members had approved; the release follows. */
  readonly approvedAt: number | null;
}

/** How long members may vote on a data request; fixed (service document, Limits). */
export const dataRequestSeconds = 86_400;

/**
 * Whether a field is about a person: by the catalogue, or because the business is a single person (decisions section 6,
 * Tiers).
 */
export function isPersonal(name: BusinessFieldName, isSoleProprietor: boolean): boolean {
  return isSoleProprietor || entryOfBusinessField(name).naturalPersonPii;
}

/**
 * The requested fields, with their present prices.
 *
 * @throws {Error} for a field without a price, which the caller has to refuse before
 */
export function requestedFields(
  asked: {
    readonly fields: readonly BusinessFieldName[];
    readonly optionalFields: readonly BusinessFieldName[];
  },
  isSoleProprietor: boolean,
): RequestedField[] {
  const toField = (name: BusinessFieldName, optional: boolean): RequestedField => {
    const price = priceOf(name);
    if (price === null) throw new Error(`${name} has no price`);
    const { tier, cents } = price;
    const naturalPersonPii = isPersonal(name, isSoleProprietor);
    return { name, optional, naturalPersonPii, tier, cents };
  };
  return [
    ...asked.fields.map((name) => toField(name, false)),
    ...asked.optionalFields.map((name) => toField(name, true)),
  ];
}

/** The price line of each field. */
export function linesOf(fields: readonly RequestedField[]): PriceLine[] {
  return fields.map(({ name, tier, cents }) => ({ field: name, tier, cents }));
}

/** The fields that the members release: the required ones, and the optional ones that the first approval fixed. */
export function agreedFields({
  fields,
  fixedOptional,
}: Pick<DataRequest, "fields" | "fixedOptional">): RequestedField[] {
  return fields.filter(({ name, optional }) => !optional || fixedOptional?.includes(name) === true);
}

/** The names of the fields without which nothing is released. */
export function requiredNames(fields: readonly RequestedField[]): BusinessFieldName[] {
  return fields.filter(({ optional }) => !optional).map(({ name }) => name);
}

/** The hash that approvals sign. @param optional the optional names that are released */
export function approvalHashOf(request: DataRequest, optional: readonly string[]): Hex32 {
  return releaseHash({
    requestId: request.id,
    audience: request.clientDomainId,
    business: request.business,
    required: requiredNames(request.fields),
    optional,
    purpose: request.purpose,
    deadline: request.expiresAt,
  });
}

/** A request as the merchant sees it, which says neither who voted nor how many. */
export function recordOf(request: DataRequest) {
  return {
    requestId: request.id,
    businessWalletAddress: request.business,
    purpose: request.purpose,
    ...(request.reference === null ? {} : { reference: request.reference }),
    fields: request.fields.map(({ name, naturalPersonPii, optional }) => ({
      name,
      hash: hashOfBusinessField(name),
      naturalPersonPii,
      optional,
      subjectType: entryOfBusinessField(name).subjectType,
    })),
    status: request.status,
    ...(request.reason === null ? {} : { reason: request.reason }),
    createdAt: request.createdAt,
    expiresAt: request.expiresAt,
    price: { quotedCents: request.quotedRappen, currency, lines: linesOf(request.fields) },
  };
}

/** The event for the present state of the request. @param more members that only this state has */
export function announcementOf(
  request: DataRequest,
  more: Readonly<Record<string, unknown>> = {},
): KybAnnouncement {
  const { id, clientDomainId, environment, sequence, status } = request;
  return {
    clientDomainId,
    environment,
    streamId: id,
    sequence,
    event: `kyb.data_request.${status}`,
    data: {
      request_id: id,
      business_wallet_address: request.business,
      ...(request.reference === null ? {} : { reference: request.reference }),
      status,
      ...(request.reason === null ? {} : { reason: request.reason }),
      created_at: request.createdAt,
      expires_at: request.expiresAt,
      price: { quoted_cents: request.quotedRappen, currency },
      ...more,
    },
  };
}
