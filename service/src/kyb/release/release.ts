import { entryOfBusinessField } from "@svc/protocol";
import type { Entitlement } from "../../accounts/index.ts";
import type { CompanyField } from "../../credentials/index.ts";
import { attestationSeconds } from "./attestation-keys.ts";
import { type Business, isGoodStanding } from "../business/business.ts";
import {
  agreedFields,
  type DataRequest,
  type DataRequestReason,
  isPersonal,
  linesOf,
  type RequestedField,
} from "../request/data-request.ts";
import { currency, totalOf } from "../billing/pricing.ts";

/** Which of the agreed fields are released, or why none can be. */
export type ReleaseDecision =
  | { readonly kind: "released"; readonly fields: readonly RequestedField[] }
  | { readonly kind: "failed"; readonly reason: DataRequestReason };

/**
 * Checks once more everything on which a release depends. A required field that can no longer be released fails the
 * request; an optional one is left out, and not charged.
 */
export function decideRelease(
  request: DataRequest,
  of: {
    readonly business: Business;
    /** The present entitlements of the organization. */
    readonly entitlements: ReadonlySet<Entitlement>;
    /** The agreed fields that are valid now. */
    readonly live: readonly CompanyField[];
    readonly isSoleProprietor: boolean;
  },
): ReleaseDecision {
  const { business, entitlements, live, isSoleProprietor } = of;
  if (business.status === "moved") return failed("business_wallet_rotated");
  if (!isGoodStanding(business)) return failed("business_not_verified");
  const agreed = agreedFields(request);
  const fields = agreed.filter(({ name }) => {
    const mayGo = entitlements.has("kyb:pii") || !isPersonal(name, isSoleProprietor);
    return mayGo && live.some((field) => field.name === name);
  });
  const isWhole = agreed.every((field) => field.optional || fields.includes(field));
  if (!isWhole || !entitlements.has("kyb:data-request")) return failed("unavailable");
  return { kind: "released", fields };
}

function failed(reason: DataRequestReason): ReleaseDecision {
  return { kind: "failed", reason };
}

/** The claims of an attestation (decisions section 6, Attestation). */
export function attestationClaims(
  request: DataRequest,
  of: {
    readonly baseUrl: string;
    readonly eventId: string;
    readonly sequence: number;
    readonly now: number;
    readonly values: readonly CompanyField[];
  },
) {
  const { baseUrl, eventId, sequence, now, values } = of;
  return {
    iss: `${baseUrl}/kyb`,
    aud: request.clientDomainId,
    sub: request.business,
    jti: eventId,
    iat: now,
    exp: now + attestationSeconds,
    event: "kyb.data_request.released",
    stream_id: request.id,
    seq: sequence,
    livemode: request.environment === "live",
    approval: {
      approved_at: request.approvedAt,
      action_id: request.id,
      threshold_met: true,
    },
    fields: values.map((field) => ({
      name: field.name,
      hash: field.leaf,
      pepper: field.pepper,
      subject_type: entryOfBusinessField(field.name).subjectType,
      subject: field.subject,
      provenance: field.provenance,
      as_of: field.asOf,
      expires_at: field.expiresAt,
      value: field.value,
    })),
  };
}

/** The members of a release's event beside the attestation: names and prices, but no values. */
export function releasedData(fields: readonly RequestedField[], now: number) {
  const lines = linesOf(fields);
  return {
    released_at: now,
    fields: fields.map(({ name }) => name),
    charge: { cents: totalOf(lines), currency, lines },
  };
}
