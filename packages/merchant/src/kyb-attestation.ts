import {
  commitmentOf,
  isBusinessField,
  isHexOf,
  leafFieldOf,
  leafOf,
  parseAddress,
  type Address,
  type BusinessFieldName,
  type Hex32,
} from "@svc/protocol";
import { createLocalJWKSet, decodeProtectedHeader, jwtVerify, type JSONWebKeySet } from "jose";

import { callIssuer } from "./issuer-call.ts";
import { isSafeUrl } from "./issuer.ts";
import type { KybEvent, UnknownKybEvent } from "./kyb-event.ts";
import { openMembers, type Members } from "./members.ts";
import { MerchantError } from "./merchant-error.ts";

/** How far the clocks of service and merchant may be apart. */
const toleranceSeconds = 30;
const typ = "kyb-attestation+jwt";

/** One released field of one subject. */
export interface ReleasedField {
  name: BusinessFieldName;
  /** BUSINESS, DIRECTOR, UBO, REPRESENTATIVE or SHAREHOLDER. */
  subjectType: string;
  /** Empty for the business itself; else which person, the same in every field of that person. */
  subject: string;
  value: string;
  /** The leaf that was attested on chain: `kyb.valid` takes it later. */
  hash: Hex32;
  pepper: Hex32;
  /** Who verified it. */
  provenance: string;
  /** Unix seconds. */
  asOf: number;
  expiresAt: number;
}

/** What a business released to you, verified. */
export interface Attestation {
  /** The event's id: store it, it comes once. */
  eventId: string;
  requestId: string;
  business: Address;
  /** Unix seconds, as every time here. */
  issuedAt: number;
  expiresAt: number;
  approvedAt: number;
  fields: ReleasedField[];
}

/** What an attestation is compared with: from your own records, never from the delivery. */
export interface AttestationChecks {
  /** The service's base address, without a slash at its end. */
  issuer: string;
  /** The UUID of your client domain. */
  clientDomainId: string;
  /** Unix seconds. */
  now: number;
  /** The envelope it came in; absent for one that was fetched again. */
  event?: KybEvent | UnknownKybEvent;
  /** The service's published keys; default: fetched from `<issuer>/.well-known/kyb-jwks.json`. */
  keys?: JSONWebKeySet;
  /** Default: the global fetch. */
  fetch?: typeof fetch;
}

/**
 * Verifies an attestation, in this order: `typ`, `alg`, the signature by `kid`, `iss`, `aud`, `exp` and `iat`, and that
 * the envelope says the same. Then every field's `hash` is made anew from its value. This is the boundary to trust: the
 * webhook's header is not (service document, Authentication, 6).
 *
 * @param attestation of the event, or of `kyb.release`
 * @throws {MerchantError} attestation_refused, its `reason` names the check; issuer_unreachable; configuration_invalid
 */
export async function verifyAttestation(
  attestation: string,
  checks: AttestationChecks,
): Promise<Attestation> {
  if (!Number.isFinite(checks.now)) throw misconfigured("now");
  if (!isSafeUrl(checks.issuer) || checks.issuer.endsWith("/")) throw misconfigured("issuer");
  const header = headerOf(attestation);
  if (header.typ !== typ) throw refused("typ");
  if (header.alg !== "RS256") throw refused("alg");
  if (typeof header.kid !== "string") throw refused("kid");
  const keys = createLocalJWKSet(checks.keys ?? (await fetchKeys(checks)));
  const claims = await verifySignature(attestation, keys, checks.now);
  checkClaims(claims, checks);
  if (checks.event !== undefined) checkEnvelope(claims, checks.event);
  return readClaims(openMembers(claims, refused));
}

function headerOf(attestation: string): { typ?: unknown; alg?: unknown; kid?: unknown } {
  try {
    return decodeProtectedHeader(attestation);
  } catch {
    throw refused("form");
  }
}

async function fetchKeys({
  issuer,
  fetch: send = fetch,
}: AttestationChecks): Promise<JSONWebKeySet> {
  const { status, body } = await callIssuer(send, { url: `${issuer}/.well-known/kyb-jwks.json` });
  if (status !== 200 || body === null || !Array.isArray(body["keys"]))
    throw new MerchantError("response_invalid", { reason: "kyb-jwks" });
  return body as unknown as JSONWebKeySet;
}

/** The claims of whatever the key signed. Times are checked with the rest, in the documented order. */
async function verifySignature(
  attestation: string,
  keys: ReturnType<typeof createLocalJWKSet>,
  now: number,
): Promise<Record<string, unknown>> {
  try {
    // Far beyond every lifetime: only the signature is this check's matter.
    const options = { algorithms: ["RS256"], clockTolerance: Number.MAX_SAFE_INTEGER };
    const { payload } = await jwtVerify(attestation, keys, {
      ...options,
      currentDate: new Date(now * 1000),
    });
    return payload;
  } catch {
    throw refused("signature");
  }
}

function checkClaims(claims: Record<string, unknown>, checks: AttestationChecks): void {
  const { issuer, clientDomainId, now } = checks;
  if (claims["iss"] !== `${issuer}/kyb`) throw refused("iss");
  if (claims["aud"] !== clientDomainId) throw refused("aud");
  const { exp, iat } = claims;
  if (typeof exp !== "number" || exp <= now - toleranceSeconds) throw refused("exp");
  if (typeof iat !== "number" || iat > now + toleranceSeconds) throw refused("iat");
}

function checkEnvelope(claims: Record<string, unknown>, event: KybEvent | UnknownKybEvent): void {
  if (claims["jti"] !== event.eventId) throw refused("event_id");
  if (claims["stream_id"] !== event.streamId) throw refused("stream_id");
  if (claims["seq"] !== event.seq) throw refused("seq");
  if (event.event === "unknown") return;
  if (event.requestId !== event.streamId) throw refused("request_id");
  const named = parseAddress(String(claims["sub"]));
  if (named !== event.business) throw refused("sub");
}

function readClaims(claims: Members): Attestation {
  const approval = openMembers(claims.record("approval"), (name) => refused(`approval.${name}`));
  if (!approval.flag("threshold_met")) throw refused("approval.threshold_met");
  const business = claims.address("sub");
  return {
    eventId: claims.text("jti"),
    requestId: claims.text("stream_id"),
    business,
    issuedAt: claims.count("iat"),
    expiresAt: claims.count("exp"),
    approvedAt: approval.count("approved_at"),
    fields: claims.records("fields").map((each, index) => readField(each, business, index)),
  };
}

function readField(
  given: Record<string, unknown>,
  business: Address,
  index: number,
): ReleasedField {
  const at = (name: string): MerchantError => refused(`fields[${index}].${name}`);
  const members = openMembers(given, at);
  const name = members.text("name");
  if (!isBusinessField(name)) throw at("name");
  const field: ReleasedField = {
    name,
    subjectType: members.text("subject_type"),
    subject: members.anyText("subject"),
    value: members.anyText("value"),
    hash: members.hash("hash"),
    pepper: pepperOf(members.text("pepper"), at),
    provenance: members.text("provenance"),
    asOf: members.count("as_of"),
    expiresAt: members.count("expires_at"),
  };
  const { value: data, pepper, subject, expiresAt } = field;
  const commitment = commitmentOf({ data, pepper });
  const leaf = leafOf({
    user: business,
    field: leafFieldOf({ name, subject }),
    commitment,
    expiresAt,
  });
  if (leaf !== field.hash) throw at("hash");
  return field;
}

function pepperOf(text: string, at: (name: string) => MerchantError): Hex32 {
  if (!isHexOf(text, 32)) throw at("pepper");
  return text;
}

function refused(reason: string): MerchantError {
  return new MerchantError("attestation_refused", { reason });
}

function misconfigured(reason: string): MerchantError {
  return new MerchantError("configuration_invalid", { reason });
}
