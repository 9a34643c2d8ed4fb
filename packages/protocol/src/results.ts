import type { Action } from "./action.ts";
import type { Address } from "./address.ts";
import { isRecord } from "./encoding.ts";
import type { Hex, Hex32 } from "./encoding.ts";
import type { ReturnType, TransferReturnType } from "./links/connection.ts";
import { isClaim } from "./login-session.ts";
import {
  orFault,
  ResultRefused,
  addressMember,
  countMember,
  hashMember,
  optionalMember,
  queryMembersOf,
  secondsMember,
  signatureMember,
  textMember,
  within,
} from "./results/members.ts";
import type { Members, ResultFault } from "./results/members.ts";
import { infosMember } from "./results/infos.ts";
import { proofsMember } from "./results/proofs.ts";
import type { AccessProof } from "./results/proofs.ts";

/** The acting member's approval inside a business login (decisions, sections 2 and 6). */
export interface BusinessPart {
  address: Address;
  /** Of the business wallet's roster. */
  epoch: number;
  /** Unix seconds until which the approval counts. */
  validUntil: number;
  /** The member's signature of category 4. */
  approval: Hex;
}

export interface LoginResult {
  signature: Hex;
  session: string;
  svcID: Address;
  /** The secret of the claim: base64url of 32 bytes. Never in an app-link. */
  claimSecret?: string;
  /** The two digits of the page. Never in an app-link. */
  code?: string;
  business?: BusinessPart;
}

/** The answer to `td` and to `sign`. */
export interface SignatureResult {
  signature: Hex;
  svcID: Address;
}

export interface RequestResult {
  svcID: Address;
  /** The link's `id`, if it has one. */
  id?: string;
  /** Base64 of the JSON array; `decodeInfos` reads it. */
  infos: string;
  signature: Hex;
}

export interface AccessResult {
  svcID: Address;
  id?: string;
  proofs: readonly AccessProof[];
  signature: Hex;
}

export interface TransferResult {
  svcID: Address;
  infos: string;
  /** Unix seconds. */
  expiresAt: number;
  signature: Hex;
}

export interface TxResult {
  txHash: Hex32;
  svcID: Address;
}

/** The kind of answer to each action. */
export interface ResultOf {
  "data-transfer": TransferResult;
  login: LoginResult;
  td: SignatureResult;
  request: RequestResult;
  access: AccessResult;
  sign: SignatureResult;
  tx: TxResult;
}

export type RefusalReason =
  | "access_denied"
  | "expired"
  | "unsupported"
  | "no_matching_data"
  | "invalid_request";

/**
 * A refusal or failure, which travels as the answer would. It counts only with a valid `Decline` of the
 * addressed identity in `signature`, or with the secret of the claim (decisions, section 3).
 */
export interface Refusal {
  error: RefusalReason;
  /** Of a login. */
  session?: string;
  /** Of a data or access request. */
  id?: string;
  svcID?: Address;
  signature?: Hex;
  /** For a claimed login, in place of a signature. */
  claimSecret?: string;
}

/** An answer on its way out, by return type. */
export type Delivery =
  | { type: "callback"; url: string; body: Readonly<Record<string, unknown>> }
  | { type: "app-link"; url: string }
  /** What is shown: the JSON as text. */
  | { type: "qr" | "text"; payload: string }
  /** What the wallet encrypts for the pick-up link. */
  | { type: "p2p"; payload: string }
  /** The only record of the NDEF message, of kind `mime` with this media type. */
  | { type: "nfc"; payload: string; mediaType: "application/json" };

/** An answer as it arrived, by return type. */
export type Received =
  | { type: "callback"; body: unknown }
  | { type: "app-link"; url: string }
  | { type: "qr" | "text" | "p2p" | "nfc"; payload: string };

/** Wallet results are at most 8 MiB (decisions, section 1, bounds). */
export const resultLengthMax = 8_388_608;

/**
 * Writes an answer or a refusal for its return type (service document, "Deep-link URI protocol", rule 5). `callback`
 * without a connection is shown as `qr`.
 *
 * @throws {TypeError} for an app-link without a connection, and for a claim secret or code in one: queries end up in
 * histories and logs
 */
export function buildResult(
  result: ResultOf[Action] | Refusal,
  route: { returnType: ReturnType | TransferReturnType; connection?: string },
): Delivery {
  const { returnType, connection } = route;
  if (returnType === "app-link") {
    if (connection === undefined) throw new TypeError("an app-link needs its connection");
    return { type: "app-link", url: appendQuery(connection, queryOf(result)) };
  }
  if (returnType === "callback" && connection !== undefined) {
    return { type: "callback", url: connection, body: { ...result } };
  }
  const payload = JSON.stringify(result);
  if (returnType === "nfc") return { type: "nfc", payload, mediaType: "application/json" };
  return { type: returnType === "callback" ? "qr" : returnType, payload };
}

/**
 * Reads an answer or a refusal; a refusal has the member `error`. Strict in every member it knows; unknown
 * members are ignored, as an app-link's query holds others. Signatures are read, not verified. Never throws.
 */
export function parseResult<A extends Action>(
  action: A,
  received: Received,
): ResultOf[A] | Refusal | { fault: ResultFault } {
  return orFault(() => {
    const members = membersOf(action, received);
    if (Object.hasOwn(members, "error")) return readRefusal(action, members);
    return readers[action](members);
  });
}

const readers: { [A in Action]: (members: Members) => ResultOf[A] } = {
  "data-transfer": (members) => ({
    svcID: addressMember(members, "svcID"),
    infos: infosMember(members, "infos"),
    expiresAt: secondsMember(members, "expiresAt"),
    signature: signatureMember(members, "signature"),
  }),
  login: readLoginResult,
  td: readSignatureResult,
  request: (members) => ({
    svcID: addressMember(members, "svcID"),
    ...optionalTextOf(members, "id"),
    infos: infosMember(members, "infos"),
    signature: signatureMember(members, "signature"),
  }),
  access: (members) => ({
    svcID: addressMember(members, "svcID"),
    ...optionalTextOf(members, "id"),
    proofs: proofsMember(members, "proofs"),
    signature: signatureMember(members, "signature"),
  }),
  sign: readSignatureResult,
  tx: (members) => ({
    txHash: hashMember(members, "txHash"),
    svcID: addressMember(members, "svcID"),
  }),
};

function readLoginResult(members: Members): LoginResult {
  const business = optionalMember(members, "business");
  return {
    signature: signatureMember(members, "signature"),
    session: textMember(members, "session"),
    svcID: addressMember(members, "svcID"),
    ...claimSecretOf(members),
    ...codeOf(members),
    ...(business === undefined ? {} : { business: readBusiness(business) }),
  };
}

function readSignatureResult(members: Members): SignatureResult {
  return {
    signature: signatureMember(members, "signature"),
    svcID: addressMember(members, "svcID"),
  };
}

function readBusiness(members: unknown): BusinessPart {
  if (!isRecord(members)) throw new ResultRefused("business", "is not an object");
  return within("business", () => ({
    address: addressMember(members, "address"),
    epoch: countMember(members, "epoch"),
    validUntil: secondsMember(members, "validUntil"),
    approval: signatureMember(members, "approval"),
  }));
}

const refusalReasons: readonly string[] = [
  "access_denied",
  "expired",
  "unsupported",
  "no_matching_data",
  "invalid_request",
] satisfies RefusalReason[];

const isRefusalReason = (text: unknown): text is RefusalReason =>
  typeof text === "string" && refusalReasons.includes(text);

function readRefusal(action: Action, members: Members): Refusal {
  const error = optionalMember(members, "error");
  if (!isRefusalReason(error)) {
    throw new ResultRefused("error", `is not one of ${refusalReasons.join(", ")}`);
  }
  const has = (name: string): boolean => optionalMember(members, name) !== undefined;
  return {
    error,
    ...(action === "login" ? { session: textMember(members, "session") } : {}),
    ...(action === "request" || action === "access" ? optionalTextOf(members, "id") : {}),
    ...(has("svcID") ? { svcID: addressMember(members, "svcID") } : {}),
    ...(has("signature") ? { signature: signatureMember(members, "signature") } : {}),
    ...(action === "login" ? claimSecretOf(members) : {}),
  };
}

function claimSecretOf(members: Members): { claimSecret?: string } {
  if (optionalMember(members, "claimSecret") === undefined) return {};
  const claimSecret = textMember(members, "claimSecret");
  if (!isClaim(claimSecret)) throw new ResultRefused("claimSecret", "is not base64url of 32 bytes");
  return { claimSecret };
}

function codeOf(members: Members): { code?: string } {
  if (optionalMember(members, "code") === undefined) return {};
  const code = textMember(members, "code");
  if (!/^[0-9]{2}$/.test(code)) throw new ResultRefused("code", "is not two digits");
  return { code };
}

function optionalTextOf(members: Members, name: "id"): { id?: string } {
  return optionalMember(members, name) === undefined ? {} : { id: textMember(members, name) };
}

function membersOf(action: Action, received: Received): Members {
  if (received.type === "app-link") return membersOfQuery(action, received.url);
  const value = received.type === "callback" ? received.body : parseJson(received.payload, null);
  if (!isRecord(value)) throw new ResultRefused(null, "is not a JSON object");
  return value;
}

function parseJson(text: string, member: string | null): unknown {
  if (text.length > resultLengthMax) {
    throw new ResultRefused(member, `is longer than ${resultLengthMax} characters`);
  }
  try {
    return JSON.parse(text);
  } catch {
    throw new ResultRefused(member, "is not JSON");
  }
}

/** In a query, numbers are decimal, lists are JSON, and the parts of `business` are parameters beside it. */
function queryOf(result: ResultOf[Action] | Refusal): [string, string][] {
  const { business, ...members } = { business: undefined, ...result };
  if ("claimSecret" in members || "code" in members) {
    throw new TypeError("an app-link carries neither a claim secret nor a code");
  }
  const flat = business === undefined ? members : { ...members, ...flatBusiness(business) };
  return Object.entries<unknown>(flat)
    .filter(([, value]) => value !== undefined)
    .map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
}

function flatBusiness({ address, ...others }: BusinessPart): Record<string, unknown> {
  return { business: address, ...others };
}

/** Appends as text, so that the connection keeps the bytes that were signed. */
function appendQuery(connection: string, pairs: readonly [string, string][]): string {
  const at = connection.indexOf("#");
  const [base, fragment] =
    at < 0 ? [connection, ""] : [connection.slice(0, at), connection.slice(at)];
  const query = pairs.map(([name, value]) => `${name}=${encodeURIComponent(value)}`).join("&");
  let joint = "?";
  if (base.includes("?")) joint = /[?&]$/.test(base) ? "" : "&";
  return base + joint + query + fragment;
}

function membersOfQuery(action: Action, url: string): Members {
  if (url.length > resultLengthMax) throw new ResultRefused(null, "is too long");
  const query = /\?([^#]*)/.exec(url)?.[1] ?? "";
  const names = queryMembersOf(action);
  const texts = new Map<string, string>();
  for (const pair of query.split("&")) {
    const [name = "", value] = pair.split(/=(.*)/s, 2);
    if (!names.has(name)) continue;
    if (texts.has(name)) throw new ResultRefused(name, "appears more than once");
    texts.set(name, decode(value ?? "", name));
  }
  const members: Record<string, unknown> = Object.fromEntries(texts);
  for (const name of ["expiresAt", "epoch", "validUntil", "proofs"]) {
    const text = texts.get(name);
    if (text !== undefined) members[name] = parseJson(text, name);
  }
  if (texts.has("business")) {
    members["business"] = { ...members, address: texts.get("business") };
  }
  return members;
}

function decode(text: string, member: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    throw new ResultRefused(member, "is not percent-encoded UTF-8");
  }
}
