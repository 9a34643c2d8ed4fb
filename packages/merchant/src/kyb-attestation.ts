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
import { refused, verifyClaims, type AttestationChecks } from "./kyb-claims.ts";
import type { AnyKybEvent } from "./kyb-event.ts";
import { openMembers, type Members } from "./members.ts";
import type { MerchantError } from "./merchant-error.ts";

/** One released field of one subject. */
export interface ReleasedField {
  name: BusinessFieldName;
  /** BUSINESS, DIRECTOR, UBO, REPRESENTATIVE or SHAREHOLDER. */
  subjectType: string;
  /** Empty for the business itself; else which person, the same in every field of that person. */
  subject: string;
  value: string;
  /** The leaf that was attested on chain; you can pass it to `kyb.valid` later. */
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
  /** The event's id: store it, so that you handle the event only once. */
  eventId: string;
  requestId: string;
  business: Address;
  /** Unix seconds, as every time here. */
  issuedAt: number;
  expiresAt: number;
  approvedAt: number;
  fields: ReleasedField[];
}

/**
 * Verifies an attestation, in this order: `typ`, `alg`, the signature by `kid`, `iss`, `aud`, `exp` and `iat`, and that
 * the envelope says the same. Then every field's `hash` is recomputed from its value. This check is the trust boundary;
 * the webhook's header is not (service document, Authentication, 6).
 *
 * @param attestation of the event, or of `kyb.release`
 * @throws {MerchantError} attestation_refused, its `reason` names the check; issuer_unreachable; rate_limited;
 * response_invalid; configuration_invalid
 */
export async function verifyAttestation(
  attestation: string,
  checks: AttestationChecks,
): Promise<Attestation> {
  const claims = await verifyClaims(attestation, checks);
  if (checks.event !== undefined) checkEnvelope(claims, checks.event);
  return readClaims(openMembers(claims, refused));
}

function checkEnvelope(claims: Record<string, unknown>, event: AnyKybEvent): void {
  if (event.event === "unknown") return;
  if (!("requestId" in event)) throw refused("event");
  if (claims["event"] !== event.event) throw refused("event");
  if (claims["livemode"] !== event.livemode) throw refused("livemode");
  if (event.requestId !== event.streamId) throw refused("request_id");
  const { sub } = claims;
  const named = typeof sub === "string" ? parseAddress(sub) : null;
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
