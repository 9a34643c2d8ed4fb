import { type JSONWebKeySet, jwtVerify, type JWTVerifyGetKey } from "jose";

import { callIssuer } from "./issuer-call.ts";
import { isIssuerUrl } from "./issuer.ts";
import type { AnyKybEvent } from "./kyb-event.ts";
import { parseHeader } from "./jwt-header.ts";
import { openKeySet } from "./key-set.ts";
import { MerchantError, misconfigured, requireGiven } from "./merchant-error.ts";
import { readNow } from "./unix-time.ts";

/** How far the clocks of service and merchant may be apart. */
const toleranceSeconds = 30;
const typ = "kyb-attestation+jwt";

/** What an attestation is compared with; take it from your own records, never from the delivery. */
export interface AttestationChecks {
  /** The service's base address, without a slash at its end. */
  issuer: string;
  /** The UUID of your client domain. */
  clientDomainId: string;
  /** Unix seconds. Default: this machine's clock. */
  now?: number;
  /**
   * The event that the attestation came in; absent for one that you fetched again or have stored. Passing undefined
   * throws configuration_invalid.
   */
  event?: AnyKybEvent;
  /** The service's published keys; default: fetched from `<issuer>/.well-known/kyb-jwks.json`. */
  keys?: JSONWebKeySet;
  /** Default: the global fetch. */
  fetch?: typeof fetch;
}

/**
 * Verifies what every attestation has, in this order: `typ`, `alg`, the signature by `kid`, `iss`, `aud`, `exp` and
 * `iat`, and that the envelope names the same event of the same stream (decisions, section 6, Attestation).
 *
 * @throws {MerchantError} attestation_refused, its `reason` names the check; issuer_unreachable; rate_limited;
 * response_invalid; configuration_invalid
 */
export async function verifyClaims(
  attestation: string,
  checks: AttestationChecks,
): Promise<Record<string, unknown>> {
  const now = readNow(checks.now);
  if (!isIssuerUrl(checks.issuer)) throw misconfigured("issuer");
  requireGiven(checks, ["event"]);
  const header = parseHeader(attestation);
  if (header === null) throw refused("form");
  if (header.typ !== typ) throw refused("typ");
  if (header.alg !== "RS256") throw refused("alg");
  if (typeof header.kid !== "string") throw refused("kid");
  const keys =
    checks.keys === undefined
      ? await fetchKeys(checks)
      : openKeySet(checks.keys, () => misconfigured("keys"));
  const claims = await verifySignature(attestation, keys);
  checkClaims(claims, { ...checks, now });
  if (checks.event !== undefined) checkPlace(claims, checks.event);
  return claims;
}

/** The error for an attestation that fails a check. @param reason names the check */
export function refused(reason: string): MerchantError {
  return new MerchantError("attestation_refused", { reason });
}

async function fetchKeys({
  issuer,
  fetch: send = fetch,
}: AttestationChecks): Promise<JWTVerifyGetKey> {
  const { status, body } = await callIssuer(send, { url: `${issuer}/.well-known/kyb-jwks.json` });
  return openKeySet(
    status === 200 ? body : null,
    (cause) => new MerchantError("response_invalid", { reason: "kyb-jwks", cause }),
  );
}

/** Verifies only the signature and returns the claims; `checkClaims` checks the rest in the documented order. */
async function verifySignature(
  attestation: string,
  keys: JWTVerifyGetKey,
): Promise<Record<string, unknown>> {
  try {
    // jose would check the times here: a tolerance beyond any lifetime leaves them to `checkClaims`.
    const options = { algorithms: ["RS256"], clockTolerance: Number.MAX_SAFE_INTEGER };
    return (await jwtVerify(attestation, keys, options)).payload;
  } catch (error) {
    if (error instanceof MerchantError) throw error;
    throw refused("signature");
  }
}

function checkClaims(
  claims: Record<string, unknown>,
  checks: AttestationChecks & { now: number },
): void {
  const { issuer, clientDomainId, now } = checks;
  if (claims["iss"] !== `${issuer}/kyb`) throw refused("iss");
  if (claims["aud"] !== clientDomainId) throw refused("aud");
  const { exp, iat } = claims;
  if (typeof exp !== "number" || exp <= now - toleranceSeconds) throw refused("exp");
  if (typeof iat !== "number" || iat > now + toleranceSeconds) throw refused("iat");
}

function checkPlace(claims: Record<string, unknown>, event: AnyKybEvent): void {
  if (claims["jti"] !== event.eventId) throw refused("event_id");
  if (claims["stream_id"] !== event.streamId) throw refused("stream_id");
  if (claims["seq"] !== event.seq) throw refused("seq");
}
