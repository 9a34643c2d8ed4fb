import { acrs, authenticationMethods } from "../../accounts/index.ts";
import type { Config } from "../../platform/config/config.ts";
import {
  type PublishedDocument,
  serialiseDocument,
} from "../../platform/http/published-document.ts";
import { promptValues } from "../authorization/authorization-request.ts";
import { pushPath } from "../authorization/pushed-request.ts";
import { foreignAlgorithms } from "../client/foreign-jwt.ts";
import { locales } from "../../platform/http/pick-locale.ts";
import { logoutPath } from "../session/logout.ts";
import { userScopes } from "../authorization/scope.ts";
import { grantTypes } from "./token.ts";
import { tokenPath } from "./token-request.ts";
import { userinfoPath } from "./userinfo.ts";

export const revocationPath = "/oauth2/revoke";
export const introspectionPath = "/oauth2/introspect";

const confidentialMethods = authenticationMethods.filter((method) => method !== "none");

/** The service's metadata (OpenID Connect Discovery section 3, RFC 8414 section 2). */
function metadataOf(config: Config): Record<string, unknown> {
  const base = config.baseUrl;
  return {
    issuer: base,
    authorization_endpoint: `${base}/oauth2/auth`,
    token_endpoint: `${base}${tokenPath}`,
    pushed_authorization_request_endpoint: `${base}${pushPath}`,
    userinfo_endpoint: `${base}${userinfoPath}`,
    revocation_endpoint: `${base}${revocationPath}`,
    introspection_endpoint: `${base}${introspectionPath}`,
    end_session_endpoint: `${base}${logoutPath}`,
    jwks_uri: `${base}/.well-known/jwks.json`,
    scopes_supported: userScopes,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: grantTypes,
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256", "ES256"],
    token_endpoint_auth_methods_supported: authenticationMethods,
    token_endpoint_auth_signing_alg_values_supported: foreignAlgorithms,
    revocation_endpoint_auth_methods_supported: authenticationMethods,
    revocation_endpoint_auth_signing_alg_values_supported: foreignAlgorithms,
    introspection_endpoint_auth_methods_supported: confidentialMethods,
    introspection_endpoint_auth_signing_alg_values_supported: foreignAlgorithms,
    code_challenge_methods_supported: ["S256"],
    dpop_signing_alg_values_supported: foreignAlgorithms,
    authorization_response_iss_parameter_supported: true,
    require_pushed_authorization_requests: false,
    prompt_values_supported: promptValues,
    acr_values_supported: acrs,
    claim_types_supported: ["normal"],
    claims_supported: "iss sub aud exp iat auth_time nonce at_hash sid acr amr ext".split(" "),
    ui_locales_supported: locales,
    claims_parameter_supported: false,
    request_parameter_supported: false,
    request_uri_parameter_supported: false,
    backchannel_logout_supported: true,
    backchannel_logout_session_supported: true,
  };
}

/** The one document behind both discovery addresses, serialised once per process. */
export function discoveryDocument(config: Config): PublishedDocument {
  return serialiseDocument(metadataOf(config));
}
