// What a merchant asks for, checked once (decisions section 5, checks; service document, KYC).
import {
  type Address,
  isBlank,
  isFieldName,
  isParentName,
  isShowable,
  lengthOf,
} from "@svc/protocol";
import { liesUnder } from "../accounts/index.ts";
import { type AskedName, refuseUnknownNames } from "../credentials/index.ts";
import { type AddressPolicy, parsePublicUrl } from "../platform/outbound/address-policy.ts";
import { readAddress } from "../platform/http/address-input.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";

/** The body, of which the route's schema has checked types and lengths only. */
export interface RequestBody {
  readonly user: string;
  readonly sourceKey: string;
  readonly callback: string;
  readonly expiration: number;
  readonly fields?: readonly string[];
  readonly optionalFields?: readonly string[];
  readonly reference?: string;
  readonly purpose?: string;
  readonly returnUrl?: string;
}

/** A body whose members are valid on their own; how they fit together and to the package is checked later. */
export interface CheckedBody {
  readonly user: Address;
  readonly sourceKey: string;
  readonly callback: URL;
  readonly expiration: number;
  readonly fields: readonly string[];
  readonly optionalFields: readonly string[];
  readonly reference: string | null;
  readonly purpose: string | null;
  readonly returnUrl: string | null;
}

const namesMax = 40;
const textMax = 280;
/** Counted as it is stored, with non-ASCII characters percent-encoded. */
const returnUrlMax = 2000;

/** Who asks, and where callbacks and browsers may be sent. */
export interface RequestPolicy extends AddressPolicy {
  /** Host of the client domain. */
  readonly domain: string;
}

/** Checks every member on its own. @throws {Problem} invalid_request */
export function checkBody(body: RequestBody, policy: RequestPolicy): CheckedBody {
  const user = readAddress("user", body.user);
  const callback = parsePublicUrl(body.callback, policy);
  if ("refused" in callback)
    throw invalidRequest(`callback must be a public https URL (${callback.refused})`);
  const { fields = [], optionalFields = [] } = body;
  if (new Set([...fields, ...optionalFields]).size > namesMax)
    throw invalidRequest(`at most ${namesMax} fields`);
  return {
    user,
    sourceKey: body.sourceKey,
    callback,
    expiration: body.expiration,
    fields,
    optionalFields,
    reference: checkText("reference", body.reference),
    purpose: checkPurpose(body.purpose),
    returnUrl: body.returnUrl === undefined ? null : checkReturnUrl(body.returnUrl, policy),
  };
}

function checkText(name: string, text: string | undefined): string | null {
  if (text === undefined) return null;
  if (lengthOf(text) > textMax) throw invalidRequest(`${name} has at most ${textMax} characters`);
  if (!isShowable(text)) throw invalidRequest(`${name} holds characters that cannot be shown`);
  return text;
}

/**
 * Wallets refuse a request object with an empty purpose, so nobody could open the order; a purpose that shows nothing
 * is no better.
 */
function checkPurpose(text: string | undefined): string | null {
  if (text !== undefined && isBlank(text))
    throw invalidRequest(`purpose has 1 to ${textMax} characters`);
  return checkText("purpose", text);
}

/** The phone's browser is redirected there: a host outside the client domain would make this an open redirect. */
function checkReturnUrl(text: string, { profile, domain }: RequestPolicy): string {
  const url = URL.parse(text);
  const isWeb = url?.protocol === "https:" || (profile === "dev" && url?.protocol === "http:");
  if (
    url === null ||
    !isWeb ||
    url.username !== "" ||
    url.password !== "" ||
    url.href.length > returnUrlMax
  )
    throw invalidRequest(
      `returnUrl must be an https URL of at most ${returnUrlMax} characters, without user name or password`,
    );
  const isOwn = liesUnder(url.host, domain) || liesUnder(url.hostname, domain);
  if (!isOwn) throw invalidRequest(`returnUrl must lie under the client domain ${domain}`);
  return url.href;
}

/** @param hosts those that the client domain allows; null if it allows any. @throws {Problem} invalid_request */
export function checkCallbackHost(callback: URL, hosts: readonly string[] | null): void {
  if (hosts !== null && !hosts.includes(callback.host))
    throw invalidRequest("callback has a host that the client domain does not list");
}

/** The names of a request, sorted and without duplicates; a name in both of its lists is required. */
export interface AskedNames {
  readonly required: readonly AskedName[];
  readonly optional: readonly AskedName[];
}

/**
 * Checks the names, in the order in which the problems are listed below.
 *
 * @param fixed the package's own fields; null for a dynamic package, where the request chooses them
 * @throws {Problem} dynamic_fields_unsupported, invalid_fields, no_fields
 */
export function checkNames(
  body: Pick<CheckedBody, "fields" | "optionalFields">,
  fixed: readonly string[] | null,
): AskedNames {
  const { fields, optionalFields } = body;
  if (fixed !== null && fields.length + optionalFields.length > 0)
    throw new Problem("dynamic_fields_unsupported");
  const required = new Set(fixed ?? fields);
  const optional = new Set(optionalFields).difference(required);
  const unknown = [...required, ...optional].filter((name) => !isAskable(name));
  refuseUnknownNames(unknown);
  if (required.size + optional.size === 0) throw new Problem("no_fields");
  return {
    required: [...required].filter(isAskable).toSorted(),
    optional: [...optional].filter(isAskable).toSorted(),
  };
}

function isAskable(name: string): name is AskedName {
  return isFieldName(name) || isParentName(name);
}
