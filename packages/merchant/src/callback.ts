import { explanationOf } from "./answer.ts";
import { MerchantError, type MerchantErrorCode } from "./merchant-error.ts";
import { equals } from "./token-verification.ts";

/**
 * Reads the code out of the URL with which the browser came back (RFC 6749 section 4.1.2, RFC 9207).
 *
 * The order matters: whose login it is (`state`), who answers (`iss`), and only then what the answer says.
 *
 * @throws {MerchantError} callback_invalid, state_mismatch, issuer_mismatch, or the code for the broker's `error`
 */
export function readCallback(url: URL, expected: { state: string; issuer: string }): string {
  const parameter = (name: string): string | undefined => {
    const values = url.searchParams.getAll(name);
    if (values.length > 1) throw new MerchantError("callback_invalid", { reason: name });
    return values[0];
  };
  if (!equals(parameter("state"), expected.state)) throw new MerchantError("state_mismatch");
  if (parameter("iss") !== expected.issuer) throw new MerchantError("issuer_mismatch");
  const refusal = parameter("error");
  if (refusal !== undefined) throw refusedBy(refusal, parameter("error_description"));
  const code = parameter("code");
  if (code === undefined || code === "")
    throw new MerchantError("callback_invalid", { reason: "code" });
  return code;
}

const codes: Record<string, MerchantErrorCode> = {
  access_denied: "access_denied",
  login_required: "login_required",
  consent_required: "login_required",
  interaction_required: "login_required",
  temporarily_unavailable: "issuer_unreachable",
  server_error: "issuer_unreachable",
};

function refusedBy(refusal: string, description: string | undefined): MerchantError {
  const code = Object.hasOwn(codes, refusal) ? codes[refusal] : undefined;
  return new MerchantError(code ?? "authorization_refused", {
    reason: oauthError(refusal),
    explanation: explanationOf(description),
  });
}

/** The `error` of an OAuth answer, if it looks like one, because it will be logged. */
export function oauthError(value: unknown): string | undefined {
  return typeof value === "string" && /^[a-z_]{1,64}$/.test(value) ? value : undefined;
}
