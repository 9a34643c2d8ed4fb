import type { Profile } from "../platform/config/config.ts";
import { isPublicName, parsePublicUrl } from "../platform/outbound/address-policy.ts";
import { invalidRequest } from "../platform/http/problems.ts";

/** Live and sandbox never mix: keys, orders, ledger and issuers stay on their side (decisions section 1, Environments). */
export type Environment = "live" | "sandbox";

/** A merchant's site in one environment. */
export interface ClientDomain {
  readonly id: string;
  readonly organizationId: string;
  /** Lower-case host; in `dev` also `localhost` with an optional port. */
  readonly domain: string;
  readonly environment: Environment;
  /** Published in the TXT record or the well-known file; not a secret. */
  readonly proofToken: string;
  /** When the proof was last found. */
  readonly provedAt: number | null;
  readonly checkedAt: number | null;
  /** Since when every check has failed. */
  readonly failingSince: number | null;
  /**
   * The only hosts, with their ports, that callbacks of orders may have; null if any host may be used (decisions
   * section 5).
   */
  readonly callbackHosts: readonly string[] | null;
  readonly createdAt: number;
}

/** For how long a proof counts after it was last found (decisions section 8). */
export const proofLifetimeSeconds = 7 * 86_400;

/** Whether the domain may be shown as verified at `now`. */
export function isVerified(
  { domain, provedAt }: Pick<ClientDomain, "domain" | "provedAt">,
  { profile, now }: { profile: Profile; now: number },
): boolean {
  if (isProofWaived(domain, profile)) return true;
  return provedAt !== null && now - provedAt < proofLifetimeSeconds;
}

/** Whether nothing has to be proved: a developer's own machine, which is accepted only in `dev`. */
export function isProofWaived(domain: string, profile: Profile): boolean {
  return profile === "dev" && isLocalDomain(domain);
}

/** @throws {Problem} invalid_request */
export function parseEnvironment(text: string): Environment {
  if (text === "live" || text === "sandbox") return text;
  throw invalidRequest("environment must be live or sandbox");
}

/**
 * Reads a domain: a public host name in lower case, international names in their `xn--` form, no port, no trailing dot,
 * not itself a suffix under which strangers register. In `dev` also `localhost` and `localhost:<port>`.
 *
 * @throws {Problem} invalid_request
 */
export function parseDomain(text: string, profile: Profile): string {
  if (isProofWaived(text, profile)) return text;
  if (!isPublicName(text)) {
    const more = profile === "dev" ? ", or localhost with an optional port" : "";
    throw invalidRequest(
      `domain must be a public host name in lower case, such as shop.example.com${more}`,
    );
  }
  if (isSharedSuffix(text))
    throw invalidRequest(`domain must belong to one company; many register under ${text}`);
  return text;
}

const callbackHostsMax = 20;

/**
 * Reads the hosts that callbacks may have, as they appear in the callback's URL, with a port if the URL names one.
 *
 * @returns each once, in their order
 * @throws {Problem} invalid_request
 */
export function parseCallbackHosts(texts: readonly string[], profile: Profile): string[] {
  const hosts = [...new Set(texts)];
  if (hosts.length === 0 || hosts.length > callbackHostsMax)
    throw invalidRequest(`1 to ${callbackHostsMax} hosts can be listed`);
  for (const host of hosts) {
    const scheme = /^(?:localhost|127\.0\.0\.1)(?::|$)/.test(host) ? "http" : "https";
    const url = parsePublicUrl(`${scheme}://${host}/`, { profile, ownHosts: [] });
    // A text that a URL parser extends or spells differently would never equal a callback's host.
    if ("refused" in url || url.host !== host || url.pathname !== "/" || url.search !== "")
      throw invalidRequest(
        "a host is a public name in lower case, with a port other than 443 where one is used",
      );
  }
  return hosts;
}

/** Whether the domain is this machine, in the form that `dev` accepts. */
function isLocalDomain(text: string): boolean {
  const port = /^localhost(?::([1-9]\d{0,4}))?$/.exec(text);
  return port !== null && Number(port[1] ?? 1) <= 65_535;
}

/** Whether `host` is the domain or a subdomain of it. */
export function liesUnder(host: string, domain: string): boolean {
  return host === domain || host.endsWith(`.${domain}`);
}

/** The two places where a proof may be published, and its content; one of the two is enough. */
export function proofOf(domain: Pick<ClientDomain, "domain" | "proofToken">): {
  txtName: string;
  url: string;
  content: string;
} {
  return {
    txtName: `_svc-challenge.${domain.domain}`,
    url: `https://${domain.domain}/.well-known/svc-domain-proof`,
    content: `svc-domain-proof=${domain.proofToken}`,
  };
}

/** Second-level labels under which country registries sell names: `co.uk`, `com.au`. */
const registryLabels = new Set(
  "ac co com edu go gob gov gouv ltd me mil ne net nom or org plc sch web".split(" "),
);

/** Suffixes under which strangers get names: proving one of these would claim all of its users. */
const hostingSuffixes = new Set(
  [
    "appspot.com azurewebsites.net cloudfront.net firebaseapp.com fly.dev github.io gitlab.io herokuapp.com",
    "netlify.app ngrok.app ngrok.dev ngrok.io onrender.com pages.dev railway.app vercel.app web.app workers.dev",
  ]
    .join(" ")
    .split(" "),
);

/** A short list, not the Public Suffix List: the proof itself already needs control of the name. */
function isSharedSuffix(name: string): boolean {
  const labels = name.split(".");
  const [first = "", second = ""] = labels;
  const isRegistry = labels.length === 2 && second.length === 2 && registryLabels.has(first);
  return isRegistry || hostingSuffixes.has(name);
}
