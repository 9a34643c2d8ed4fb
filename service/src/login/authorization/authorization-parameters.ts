import { Type } from "../../platform/http/schema.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { invalidRequest, type Problem } from "../../platform/http/problems.ts";
import { ownJwtLengthMax } from "../token/access-token.ts";

/** A parameter of the reference, and the longest value that it may have. */
interface Parameter {
  /** Characters. */
  readonly maxLength: number;
  readonly description: string;
  /** May be given several times; any other parameter only once (RFC 6749 section 3.1). */
  readonly repeatable?: true;
}

const valueLengthMax = 4096;
const shortValueLengthMax = 512;
/** With a nonce of this length the longest id token is still accepted as an `id_token_hint`. */
export const nonceBytesMax = 1024;

function short(description: string): Parameter {
  return { maxLength: shortValueLengthMax, description };
}

function long(description: string): Parameter {
  return { maxLength: valueLengthMax, description };
}

/** Parameters of the authorization endpoint; anything else is ignored (RFC 6749 section 3.1). */
const authorizationParameters = {
  client_id: { maxLength: 200, description: "The client." },
  redirect_uri: {
    maxLength: 2048,
    description:
      "Where the browser returns to: one of the client's registered addresses, character by character.",
  },
  response_type: short("`code`."),
  response_mode: short("`query`, the default."),
  scope: short(
    "Any of `openid`, `offline`, `offline_access` and `business`, separated by spaces. `offline` and `offline_access` yield a refresh token; `business` logs in for a business.",
  ),
  state: long("Returned unchanged with the answer."),
  nonce: {
    maxLength: nonceBytesMax,
    description: `Returned in the id token, where it may take at most ${nonceBytesMax} bytes.`,
  },
  code_challenge: short(
    "BASE64URL(SHA-256(code_verifier)), 43 characters (RFC 7636). Required unless the client's `pkceRequired` is off.",
  ),
  code_challenge_method: short("`S256`."),
  audience: {
    maxLength: valueLengthMax,
    description:
      "The audience of the access token: one of those registered for the client. Default: the client itself.",
    repeatable: true,
  },
  resource: {
    maxLength: valueLengthMax,
    description: "The same as `audience` (RFC 8707).",
    repeatable: true,
  },
  prompt: short(
    "`none` never asks the user: without a session the answer is `login_required`. `login`, `consent` and `select_account` always ask the wallet. Without `prompt`, a session may answer.",
  ),
  max_age: short(
    "The maximum age of the user's approval in seconds: a whole number of up to 15 digits.",
  ),
  acr_values: short(
    "Acceptable proximities, separated by spaces: `urn:svc:acr:qr`, `urn:svc:acr:qr-near`, `urn:svc:acr:same-device`. The weakest one listed is the minimum; unknown ones are ignored.",
  ),
  id_token_hint: {
    maxLength: ownJwtLengthMax,
    description: "An id token issued to this client: only the user whom it names may answer.",
  },
  login_hint: short(
    "An identity, or the `sub` of one: a session of any other user does not answer. Any other value is ignored.",
  ),
  ui_locales: short("Languages of the page, in order of preference: `en`, `de`, `fr`, `it`, `es`."),
  dpop_jkt: short("Thumbprint of the DPoP key that the code is bound to (RFC 9449 section 10)."),
  request: long("Not supported: `request_not_supported`. Push the request instead."),
  request_uri: {
    maxLength: 200,
    description:
      "The `request_uri` of a pushed request (RFC 9126), valid once and for 60 seconds; the same browser may reload the page. It replaces all parameters but `client_id`. Any other URI: `request_uri_not_supported`.",
  },
  registration: long("Not supported: `registration_not_supported`."),
  access_type: long("Ignored: `scope` decides whether there is a refresh token."),
} as const satisfies Record<string, Parameter>;

export type ParameterName = keyof typeof authorizationParameters;

/** In the order in which they are checked. */
export const parameterNames = Object.keys(authorizationParameters) as ParameterName[];

export function lengthMaxOf(name: ParameterName): number {
  return authorizationParameters[name].maxLength;
}

export function isRepeatable(name: ParameterName): boolean {
  return "repeatable" in authorizationParameters[name];
}

/**
 * The parameters as a schema, for the API reference only: the routes accept any form, see {@link takeAnyForm}, and
 * judge it by the checks of `authorization-request.ts`.
 */
export const authorizationMembers = Object.fromEntries(
  parameterNames.map((name) => {
    const { maxLength, description } = authorizationParameters[name];
    const text = { maxLength };
    const schema = isRepeatable(name)
      ? Type.Union([Type.String(text), Type.Array(Type.String(text))], { description })
      : Type.String({ ...text, description });
    return [name, Type.Optional(schema)];
  }),
);

/**
 * A `validatorCompiler` that accepts any form: a faulty parameter must be reported to the client at its redirect URI,
 * which a schema does not know (RFC 6749 section 4.1.2.1).
 */
export function takeAnyForm(): (form: unknown) => { value: Form } | { error: Error } {
  // A missing body is not parsed, so it is no object here.
  return (form) =>
    typeof form === "object" && form !== null ? { value: form as Form } : { error: missingForm() };
}

function missingForm(): Problem {
  return invalidRequest("the body must be a form");
}
