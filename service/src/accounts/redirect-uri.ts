import type { AuthenticationMethod } from "./client.ts";
import { liesUnder } from "./client-domain.ts";
import type { Profile } from "../platform/config/config.ts";
import { invalidRequest } from "../platform/http/problems.ts";

/** The facts that decide which addresses a client may register. */
export interface RedirectPolicy {
  readonly profile: Profile;
  readonly authenticationMethod: AuthenticationMethod;
  /** The verified host of the client's domain; null while it is not verified. */
  readonly domain: string | null;
  /** Name of the setting, for the message. */
  readonly setting: string;
  /** Parameters that the answer adds to the address: none may be there twice (RFC 6749 section 3.1). */
  readonly added: readonly string[];
  /** Addresses that the client has already: an earlier version let them hold a parameter of `added`. */
  readonly registered: readonly string[];
}

const urisMax = 20;
const uriLengthMax = 2000;

/**
 * Checks the addresses that a browser may be sent back to. They are compared character by character later, so only the
 * spelling that a URL parser would write is accepted. Allowed: https; http on loopback (RFC 8252 section 7.3; outside
 * `dev` only for clients without authentication); a private-use scheme with a dot for clients without authentication
 * (RFC 8252 section 7.1). In `production` an https host must be the verified client domain or a subdomain of it.
 *
 * @throws {Problem} invalid_request naming the entry
 */
export function checkRedirectUris(
  uris: readonly string[],
  policy: RedirectPolicy,
): readonly string[] {
  if (uris.length > urisMax)
    throw invalidRequest(`${policy.setting} holds more than ${urisMax} entries`);
  if (new Set(uris).size !== uris.length)
    throw invalidRequest(`${policy.setting} names an entry twice`);
  uris.forEach((uri, index) => {
    const fault = faultOf(uri, policy);
    if (fault !== null) throw invalidRequest(`${policy.setting}[${index}] ${fault}`);
  });
  return uris;
}

function faultOf(uri: string, policy: RedirectPolicy): string | null {
  if (uri.length > uriLengthMax) return `is longer than ${uriLengthMax} characters`;
  if (!/^[\x21-\x7e]+$/.test(uri) || /[\\"<>^`{|}]/.test(uri)) return "is not a URL";
  if (uri.includes("*")) return "holds a wildcard";
  if (uri.includes("#")) return "holds a fragment";
  const url = URL.parse(uri);
  if (url === null) return "is not an absolute URL";
  if (url.username !== "" || url.password !== "" || /^[^/]*\/\/[^/?]*@/.test(uri))
    return "holds a user name";
  const added = policy.added.find((name) => url.searchParams.has(name));
  if (added !== undefined && !policy.registered.includes(uri))
    return `holds the parameter ${added}, which the answer adds`;
  if (url.protocol === "https:" || url.protocol === "http:") return webFault(uri, url, policy);
  return privateSchemeFault(url, policy);
}

function webFault(uri: string, url: URL, policy: RedirectPolicy): string | null {
  // A parser writes `https://host` as `https://host/`; both are accepted.
  if (uri !== url.href && `${uri}/` !== url.href) return `must be written ${url.href}`;
  if (isLoopback(url.hostname)) {
    const isAllowed = policy.profile === "dev" || policy.authenticationMethod === "none";
    return isAllowed ? null : "is on loopback, which only a client of the type none may use";
  }
  if (url.protocol === "http:") return "must be https";
  if (policy.profile === "dev") return null;
  if (policy.domain === null) return "needs a verified client domain first";
  return liesUnder(url.hostname, policy.domain) ? null : `must lie under ${policy.domain}`;
}

/** Without a dot any program could own the scheme, and `javascript:` or `data:` would run in the browser. */
function privateSchemeFault(url: URL, policy: RedirectPolicy): string | null {
  const isReversedDomain = /^[a-z][a-z0-9-]*(?:\.[a-z0-9][a-z0-9-]*)+:$/.test(url.protocol);
  if (!isReversedDomain)
    return "must be https, or a private-use scheme with a dot such as com.example.app:/callback";
  return policy.authenticationMethod === "none"
    ? null
    : "has a private-use scheme, which only a client of the type none may use";
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "127.0.0.1" || hostname === "[::1]";
}
