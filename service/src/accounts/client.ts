import { timingSafeEqual } from "node:crypto";
import { type AddressPolicy, parsePublicUrl } from "../platform/outbound/address-policy.ts";
import type { Environment } from "./client-domain.ts";
import { type ClientKeySet, parseKeySet } from "./key-set.ts";
import { parseName } from "./organization.ts";
import { checkRedirectUris } from "./redirect-uri.ts";
import { invalidRequest } from "../platform/http/problems.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";

/**
 * How a client authenticates at the token endpoint (RFC 7591 section 2); `none` is a browser-only client, which has
 * PKCE alone.
 */
export const authenticationMethods = [
  "client_secret_basic",
  "client_secret_post",
  "private_key_jwt",
  "none",
] as const;

export type AuthenticationMethod = (typeof authenticationMethods)[number];

/** How surely browser and wallet belong together (decisions section 2, the QR page, rule 5), weakest first. */
export const acrs = ["urn:svc:acr:qr", "urn:svc:acr:qr-near", "urn:svc:acr:same-device"] as const;

export type Acr = (typeof acrs)[number];

/** The settings that a merchant decides about its client. */
export interface ClientSettings {
  readonly name: string;
  readonly authenticationMethod: AuthenticationMethod;
  /** Compared character by character. */
  readonly redirectUris: readonly string[];
  readonly postLogoutRedirectUris: readonly string[];
  readonly audiences: readonly string[];
  readonly backchannelLogoutUri: string | null;
  /** Keys for `private_key_jwt`, given here or fetched from `jwksUri`: exactly one of the two. */
  readonly jwks: ClientKeySet | null;
  readonly jwksUri: string | null;
  readonly numberMatching: boolean;
  readonly pkceRequired: boolean;
  readonly dpopRequired: boolean;
  /** Only pushed authorization requests are accepted (`require_pushed_authorization_requests`, RFC 9126 section 6). */
  readonly pushedRequestRequired: boolean;
  readonly idTokenAlgorithm: "RS256" | "ES256";
  /** The least `acr` that a login of this client must reach. */
  readonly acrMinimum: Acr | null;
}

/** An OAuth client as the login engine sees it: enabled, frozen, at most a minute old. */
export interface Client extends ClientSettings {
  readonly id: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly environment: Environment;
  /** The client domain's host while it is verified, else null: an unverified domain is never shown. */
  readonly domain: string | null;
  /** The limit of its organization; null if the setting applies. */
  readonly loginsPerClientMinute: number | null;
  /** Live secrets, at most two. */
  readonly secrets: readonly { readonly id: string; readonly sha256: Buffer }[];
}

/** Two, so that one can be replaced without a gap (decisions section 2, Client types). */
export const liveSecretsMax = 2;

/** The settings of a client unless its owner says otherwise. */
export const clientDefaults: Omit<ClientSettings, "name" | "authenticationMethod"> = {
  redirectUris: [],
  postLogoutRedirectUris: [],
  audiences: [],
  backchannelLogoutUri: null,
  jwks: null,
  jwksUri: null,
  numberMatching: true,
  pkceRequired: true,
  dpopRequired: false,
  pushedRequestRequired: false,
  idTokenAlgorithm: "RS256",
  acrMinimum: null,
};

/** The facts that the settings of a client are checked against. */
export interface ClientPolicy extends AddressPolicy {
  /** The verified host of the client's domain, or null. */
  readonly domain: string | null;
  /** The addresses that the client has before the change; none for a new client. */
  readonly registered?: Pick<ClientSettings, "redirectUris" | "postLogoutRedirectUris">;
}

const audiencesMax = 20;
const audienceLengthMax = 500;

/**
 * Checks everything a merchant may decide, as a whole, on creation and on every change.
 *
 * @throws {Problem} invalid_request naming the setting
 */
export function checkClientSettings(given: ClientSettings, policy: ClientPolicy): ClientSettings {
  const { authenticationMethod } = given;
  if (!authenticationMethods.includes(authenticationMethod))
    throw invalidRequest(`authenticationMethod must be one of ${authenticationMethods.join(", ")}`);
  if (given.idTokenAlgorithm !== "RS256" && given.idTokenAlgorithm !== "ES256")
    throw invalidRequest("idTokenAlgorithm must be RS256 or ES256");
  if (given.acrMinimum !== null && !acrs.includes(given.acrMinimum))
    throw invalidRequest(`acrMinimum must be one of ${acrs.join(", ")}`);
  if (!given.pkceRequired && policy.profile === "production")
    throw invalidRequest("pkceRequired cannot be switched off in production");
  if (!given.pkceRequired && authenticationMethod === "none")
    throw invalidRequest(
      "pkceRequired cannot be switched off for the type none, which has no other proof",
    );
  return {
    ...given,
    name: parseName(given.name),
    redirectUris: checkRedirectUris(given.redirectUris, {
      ...policy,
      authenticationMethod,
      setting: "redirectUris",
      added: ["code", "state", "iss", "error", "error_description"],
      registered: policy.registered?.redirectUris ?? [],
    }),
    postLogoutRedirectUris: checkRedirectUris(given.postLogoutRedirectUris, {
      ...policy,
      authenticationMethod,
      setting: "postLogoutRedirectUris",
      added: ["state"],
      registered: policy.registered?.postLogoutRedirectUris ?? [],
    }),
    audiences: checkAudiences(given.audiences),
    backchannelLogoutUri: checkCalledUrl(
      given.backchannelLogoutUri,
      "backchannelLogoutUri",
      policy,
    ),
    ...checkKeys(given, policy),
  };
}

/**
 * The live secret that was presented, or null. Every live secret is compared in constant time, even after a match, so
 * the duration reveals nothing. Secrets hold 256 random bits, hence a plain SHA-256 (decisions section 2).
 */
export function matchSecret(client: Pick<Client, "secrets">, presented: string): string | null {
  const given = sha256(presented);
  return client.secrets.reduce<string | null>(
    (found, secret) => (timingSafeEqual(given, secret.sha256) ? secret.id : found),
    null,
  );
}

export function usesSecret(method: AuthenticationMethod): boolean {
  return method === "client_secret_basic" || method === "client_secret_post";
}

/** Absolute URIs or plain names; compared character by character with what a request asks for. */
function checkAudiences(audiences: readonly string[]): readonly string[] {
  if (audiences.length > audiencesMax)
    throw invalidRequest(`audiences holds more than ${audiencesMax} entries`);
  if (new Set(audiences).size !== audiences.length)
    throw invalidRequest("audiences names an entry twice");
  audiences.forEach((audience, index) => {
    const isPlain = /^[A-Za-z0-9._~-]+$/.test(audience);
    // RFC 8707 section 2: an absolute URI without a fragment.
    const isUri =
      /^[a-z][a-z0-9+.-]*:[\x21-\x7e]+$/i.test(audience) &&
      URL.canParse(audience) &&
      !/[#"<>\\^`{|}]/.test(audience);
    if (audience.length > audienceLengthMax || !(isPlain || isUri))
      throw invalidRequest(
        `audiences[${index}] must be an absolute URI without a fragment, or a plain name`,
      );
  });
  return audiences;
}

/** Checks an address that this service will call. @returns its normalised form, which is the one that was checked */
function checkCalledUrl(
  given: string | null,
  setting: string,
  policy: ClientPolicy,
): string | null {
  if (given === null) return null;
  const url = parsePublicUrl(given, policy);
  if ("refused" in url)
    throw invalidRequest(`${setting} must be a public https URL (${url.refused})`);
  return url.href;
}

function checkKeys(
  given: ClientSettings,
  policy: ClientPolicy,
): Pick<ClientSettings, "jwks" | "jwksUri"> {
  const { jwks, jwksUri } = given;
  if (given.authenticationMethod !== "private_key_jwt") {
    if (jwks !== null || jwksUri !== null)
      throw invalidRequest("jwks and jwksUri belong to private_key_jwt");
    return { jwks, jwksUri };
  }
  if ((jwks === null) === (jwksUri === null))
    throw invalidRequest("private_key_jwt needs either jwks or jwksUri");
  return {
    jwks: jwks === null ? null : parseKeySet(jwks),
    jwksUri: checkCalledUrl(jwksUri, "jwksUri", policy),
  };
}
