import { sha256 } from "@noble/hashes/sha2";

import type { Action } from "./action.ts";
import { parseAddress } from "./address.ts";
import type { Address } from "./address.ts";
import { businessAttribute, nameOfAttribute } from "./attributes.ts";
import { bytesOfText, hexOfBytes, isRecord, isShowable, lengthOf } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import type { Link } from "./link.ts";
import { parseLoginSession } from "./login-session.ts";

/** `typ` of a request object's header; `verifyEs256Jws` compares it. */
export const REQUEST_OBJECT_TYP = "svc-request+jwt";
/** `aud` of every request object. */
export const requestObjectAudience = "svc-wallet";

/**
 * Who asks for what, signed by the broker (decisions, section 3, "Request object"). Names are the ones on
 * the wire.
 */
export interface RequestObject {
  /** The broker: an origin, without a trailing slash. */
  iss: string;
  aud: typeof requestObjectAudience;
  action: Action;
  /** For a login: the link's session, or its login id, since one object is made for all steps of a login. */
  sess?: string;
  /** For every other action: the id of the request, order or offer. */
  id?: string;
  client_name: string;
  /** The verified domain of the client; empty if none is verified. */
  domain: string;
  /** The identity of the requester's organization. */
  from: Address;
  /** Catalogue names that must be released, parents included. */
  required: readonly string[];
  /** Catalogue names that may be left out. */
  optional: readonly string[];
  /** Where the data goes. A request names it, a login names `redirect_host`. */
  callback_host?: string;
  /** Where the browser returns; a request names it beside `callback_host` if the person continues on the same phone. */
  redirect_host?: string;
  /** For a request for fields of a person: whether those of the live side count, or those of the sandbox. */
  livemode?: boolean;
  /** OAuth scopes of a login, else empty. */
  scopes: readonly string[];
  /** For a login: how sure the broker is that wallet and browser belong together (`urn:svc:acr:..`). */
  acr?: string;
  /** For a login: whether the approval must carry the digits that the page shows; absent counts as true. */
  number_matching?: boolean;
  /** For a login: the client, which a member's approval for a business names. */
  client_id?: string;
  /** For a business login: until when the acting member's approval counts, Unix seconds. */
  valid_until?: number;
  purpose?: string;
  /** Unix seconds. */
  iat: number;
  /** Unix seconds. */
  exp: number;
}

/** How far the clocks of wallet and broker may differ. */
const skewSeconds = 60;
const textMax = 280;
const namesMax = 200;

/** Thrown while claims are read and turned into a refusal by `checkRequestObject`; never leaves this file. */
class ObjectRefused extends Error {
  override name = "ObjectRefused";
}

/**
 * Decides whether verified claims speak for the link that was scanned: the issuer is a broker on the wallet's list and
 * the origin of `conn`, the object is for wallets and in force, and it agrees with the link in action, session or id,
 * requester, names and deadline. No request object covers what `td`, `tx` and `sign` would sign: among those links,
 * only an offer has an object. Only after this check may a name or domain be shown as verified. The caller has to check
 * the signature and `typ` first. Never throws.
 *
 * @param context.brokers origins the wallet trusts
 * @param context.now Unix seconds
 */
export function checkRequestObject(
  claims: unknown,
  context: { link: Link; brokers: readonly string[]; now: number },
): RequestObject | { refused: string } {
  try {
    const object = readRequestObject(claims);
    requireIssuer(object, context);
    requireInForce(object, context.now);
    requireAgreement(object, context.link);
    return object;
  } catch (refusal) {
    if (refusal instanceof ObjectRefused) return { refused: refusal.message };
    throw refusal;
  }
}

/** `object` of a signature: SHA-256 of the compact form, as it was received. */
export function requestObjectHash(compact: string): Hex32 {
  return hexOfBytes(sha256(bytesOfText(compact)));
}

/** Whether `conn` is that of an offer to a business at this broker: accepting an offer signs nothing. */
export function isOfferConnection(connection: string | undefined, broker: string): boolean {
  return connection?.startsWith(`${broker}/w/f/`) === true;
}

/** The origin that may be asked for a request object: that of `conn`; null if `conn` is not a web address. */
export function originOfConnection(connection: string | undefined): string | null {
  if (connection === undefined || !URL.canParse(connection)) return null;
  const { origin, protocol } = new URL(connection);
  return protocol === "https:" || protocol === "http:" ? origin : null;
}

const actions: readonly string[] = [
  "data-transfer",
  "login",
  "td",
  "request",
  "access",
  "sign",
  "tx",
] satisfies Action[];
const isAction = (value: unknown): value is Action =>
  typeof value === "string" && actions.includes(value);

function readRequestObject(claims: unknown): RequestObject {
  if (!isRecord(claims)) throw new ObjectRefused("the claims are not an object");
  const { action, aud } = claims;
  if (!isAction(action)) throw new ObjectRefused("action is unknown");
  if (aud !== requestObjectAudience) throw new ObjectRefused("aud is not the wallet");
  const purpose = optionalText(claims, "purpose");
  const domain = claims["domain"] === "" ? "" : text(claims, "domain");
  return {
    iss: text(claims, "iss"),
    aud,
    action,
    ...subjectMatter(claims, action),
    client_name: text(claims, "client_name"),
    domain,
    from: identity(claims),
    required: names(claims, "required"),
    optional: names(claims, "optional"),
    ...destination(claims, action),
    ...side(claims, action),
    scopes: names(claims, "scopes"),
    ...loginTerms(claims, action),
    ...(purpose === undefined ? {} : { purpose }),
    iat: seconds(claims, "iat"),
    exp: seconds(claims, "exp"),
  };
}

function subjectMatter(
  claims: Record<string, unknown>,
  action: Action,
): Pick<RequestObject, "sess" | "id"> {
  const own = action === "login" ? "sess" : "id";
  const other = action === "login" ? "id" : "sess";
  if (claims[other] !== undefined)
    throw new ObjectRefused(`${other} does not belong to a ${action}`);
  const value = text(claims, own);
  return own === "sess" ? { sess: value } : { id: value };
}

function loginTerms(
  claims: Record<string, unknown>,
  action: Action,
): Pick<RequestObject, "acr" | "number_matching" | "client_id" | "valid_until"> {
  if (action !== "login") return {};
  const acr = optionalText(claims, "acr");
  const clientId = optionalText(claims, "client_id");
  const isLimited = claims["valid_until"] !== undefined;
  const isMatched = optionalBoolean(claims, "number_matching");
  return {
    ...(acr === undefined ? {} : { acr }),
    ...(isMatched === undefined ? {} : { number_matching: isMatched }),
    ...(clientId === undefined ? {} : { client_id: clientId }),
    ...(isLimited ? { valid_until: seconds(claims, "valid_until") } : {}),
  };
}

function destination(
  claims: Record<string, unknown>,
  action: Action,
): Pick<RequestObject, "callback_host" | "redirect_host"> {
  const callbackHost = optionalText(claims, "callback_host");
  const redirectHost = optionalText(claims, "redirect_host");
  if (action !== "request" && callbackHost !== undefined && redirectHost !== undefined) {
    throw new ObjectRefused("callback_host and redirect_host exclude each other");
  }
  if (action === "login" && redirectHost === undefined) {
    throw new ObjectRefused("redirect_host is missing");
  }
  if ((action === "request" || action === "access") && callbackHost === undefined) {
    throw new ObjectRefused("callback_host is missing");
  }
  return {
    ...(callbackHost === undefined ? {} : { callback_host: callbackHost }),
    ...(redirectHost === undefined ? {} : { redirect_host: redirectHost }),
  };
}

function side(claims: Record<string, unknown>, action: Action): Pick<RequestObject, "livemode"> {
  if (action !== "request" && action !== "access") return {};
  const isLive = optionalBoolean(claims, "livemode");
  return isLive === undefined ? {} : { livemode: isLive };
}

function requireIssuer(
  { iss }: RequestObject,
  { link, brokers }: { link: Link; brokers: readonly string[] },
): void {
  if (!brokers.includes(iss)) throw new ObjectRefused("iss is not a broker of this wallet");
  const connection = link.action === "data-transfer" ? undefined : link.connection;
  if (originOfConnection(connection) !== iss) {
    throw new ObjectRefused("iss is not the origin of conn");
  }
}

function requireInForce({ iat, exp }: RequestObject, now: number): void {
  if (iat > now + skewSeconds) throw new ObjectRefused("iat lies in the future");
  if (exp <= now || exp <= iat) throw new ObjectRefused("exp has passed");
}

function requireAgreement(object: RequestObject, link: Link): void {
  if (object.action !== link.action) throw new ObjectRefused("action differs from the link");
  if (link.action === "login") {
    const loginId = parseLoginSession(link.session)?.loginId;
    if (object.sess !== link.session && object.sess !== loginId) {
      throw new ObjectRefused("sess differs from the link");
    }
  }
  refuseToSpeakForSignature(object, link);
  const asked = askedNames(object);
  if (link.action === "request" || link.action === "access") {
    if (object.from !== link.from) throw new ObjectRefused("from differs from the link");
    if (link.id !== undefined && object.id !== link.id) {
      throw new ObjectRefused("id differs from the link");
    }
    requireNames(asked, link.attributes);
  } else if (asked.size > 0) {
    throw new ObjectRefused(`a ${link.action} asks for no fields`);
  }
  if ("deadline" in link && link.deadline !== object.exp) {
    throw new ObjectRefused("exp differs from dl of the link");
  }
}

/** An object names no bytes, document or amount. Only an offer's `sign` link may have one: accepting it signs nothing. */
function refuseToSpeakForSignature({ iss }: RequestObject, link: Link): void {
  const isSigned = link.action === "td" || link.action === "tx" || link.action === "sign";
  if (!isSigned || (link.action === "sign" && isOfferConnection(link.connection, iss))) return;
  throw new ObjectRefused(`it does not name what a ${link.action} would sign`);
}

function askedNames({ required, optional }: RequestObject): ReadonlySet<string> {
  const asked = new Set([...required, ...optional]);
  if (asked.size < required.length + optional.length) {
    throw new ObjectRefused("a name is asked for twice");
  }
  return asked;
}

function requireNames(asked: ReadonlySet<string>, attributes: readonly string[]): void {
  // An offer's link names no fields: the object, whose names are of the business catalogue, does.
  if (attributes.length === 1 && attributes[0] === businessAttribute) return;
  const linked = new Set(attributes.map((attribute) => nameOfAttribute(attribute) ?? attribute));
  if (linked.size !== asked.size || ![...linked].every((name) => asked.has(name))) {
    throw new ObjectRefused("required and optional differ from attr");
  }
}

function text(claims: Record<string, unknown>, name: string): string {
  const value = optionalText(claims, name);
  if (value === undefined) throw new ObjectRefused(`${name} is missing`);
  return value;
}

function optionalText(claims: Record<string, unknown>, name: string): string | undefined {
  const value = claims[name];
  if (value === undefined) return undefined;
  const max = name === "sess" || name === "id" ? 4096 : textMax;
  if (typeof value !== "string" || value === "" || lengthOf(value) > max || !isShowable(value)) {
    throw new ObjectRefused(`${name} is not a text of 1 to ${max} characters that can be shown`);
  }
  return value;
}

function optionalBoolean(claims: Record<string, unknown>, name: string): boolean | undefined {
  const value = claims[name];
  if (value === undefined || typeof value === "boolean") return value;
  throw new ObjectRefused(`${name} is not a boolean`);
}

function identity(claims: Record<string, unknown>): Address {
  const { from } = claims;
  const address = typeof from === "string" ? parseAddress(from) : null;
  if (address === null || address !== from) throw new ObjectRefused("from is not an identity");
  return address;
}

const isName = (each: unknown): each is string =>
  typeof each === "string" && /^[A-Za-z0-9_:./-]{1,100}$/.test(each);

function names(claims: Record<string, unknown>, name: string): readonly string[] {
  const value = claims[name];
  if (!Array.isArray(value) || value.length > namesMax || !value.every(isName)) {
    throw new ObjectRefused(`${name} is not a list of names`);
  }
  return value;
}

function seconds(claims: Record<string, unknown>, name: string): number {
  const value = claims[name];
  if (typeof value !== "number" || !Number.isSafeInteger(value) || value < 0) {
    throw new ObjectRefused(`${name} is not a time in Unix seconds`);
  }
  return value;
}
