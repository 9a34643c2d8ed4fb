// Which addresses a caller may make us connect to: decisions section 7, "Address policy".
// Everything here is pure; outbound.ts applies it when storing and again when sending.
import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { Config, Profile } from "../config/config.ts";

/** The facts that decide which URLs are refused. */
export interface AddressPolicy {
  readonly profile: Profile;
  /**
   * Our own hosts, `name` or `name:port`; the name is refused on every port. Loopback entries are compared by port,
   * since the receivers of a developer share the machine.
   */
  readonly ownHosts: readonly string[];
}

/** The policy of this installation, which never calls itself for somebody else. */
export function addressPolicyOf({
  profile,
  baseUrl,
}: Pick<Config, "profile" | "baseUrl">): AddressPolicy {
  return { profile, ownHosts: [new URL(baseUrl).host] };
}

type UrlFault =
  | "too_long"
  | "malformed"
  | "userinfo"
  | "fragment"
  | "scheme"
  | "ip_literal"
  | "not_public_name"
  | "port"
  | "own_host";

/** Limits the text, and its normalised form, in which each byte of a character beyond ASCII takes three. */
const urlLengthMax = 2048;

/**
 * Checks a URL a caller chose, before it is stored and again before each connection.
 * Store the `href` of the answer, never the text: it is the normalised form that was checked.
 *
 * The name is not looked up here; what it resolves to is checked when sending.
 */
export function parsePublicUrl(text: string, policy: AddressPolicy): URL | { refused: UrlFault } {
  const fault = faultOfText(text);
  if (fault !== undefined) return { refused: fault };

  const url = URL.parse(text);
  if (url === null) return { refused: "malformed" };
  if (url.href.length > urlLengthMax) return { refused: "too_long" };
  if (url.protocol === "http:") return parseLoopbackUrl(text, url, policy);

  if (url.hostname.startsWith("[") || isIPv4(url.hostname)) return { refused: "ip_literal" };
  if (!isPublicName(url.hostname)) return { refused: "not_public_name" };
  if (!isAllowedPort(url.port === "" ? 443 : Number(url.port))) return { refused: "port" };
  const isOwn = policy.ownHosts.some((own) => parseOwnHost(own).hostname === url.hostname);
  return isOwn ? { refused: "own_host" } : url;
}

/**
 * Texts that the URL parser would silently repair or shorten are refused, so that nobody can read them in another way.
 */
function faultOfText(text: string): UrlFault | undefined {
  if (text.length > urlLengthMax) return "too_long";
  if (/[\s\p{Cc}\\]/u.test(text)) return "malformed";
  const scheme = /^([a-z][a-z0-9+.-]*):/i.exec(text)?.[1]?.toLowerCase();
  if (scheme === undefined) return "malformed";
  if (scheme !== "https" && scheme !== "http") return "scheme";
  const authority = /^[a-z]+:\/\/([^/?#]+)/i.exec(text)?.[1];
  if (authority === undefined) return "malformed";
  if (authority.includes("@")) return "userinfo";
  return text.includes("#") ? "fragment" : undefined;
}

/** `dev` takes exactly these two spellings of this machine: any other one is a mistake or a trick. */
function parseLoopbackUrl(
  text: string,
  url: URL,
  policy: AddressPolicy,
): URL | { refused: UrlFault } {
  const isExact = /^http:\/\/(?:localhost|127\.0\.0\.1):\d{1,5}(?:[/?]|$)/.test(text);
  if (policy.profile !== "dev" || !isExact) return { refused: "scheme" };
  if (!isAllowedPort(Number(url.port))) return { refused: "port" };
  const isOwn = policy.ownHosts
    .map((own) => parseOwnHost(own))
    .some((own) => isLoopbackName(own.hostname) && own.port === url.port);
  return isOwn ? { refused: "own_host" } : url;
}

function parseOwnHost(own: string): URL {
  return new URL(own.includes("://") ? own : `http://${own}`);
}

const isLoopbackName = (name: string): boolean => name === "localhost" || name === "127.0.0.1";

/** The low ports belong to mail, databases and shells, to which nobody should speak HTTP. */
const isAllowedPort = (port: number): boolean => port === 443 || port >= 1024;

/**
 * Top-level names that never mean a host of the public internet: RFC 6761, 6762, 7686, 8375, 9476, ICANN's `.internal`,
 * and usual private ones.
 */
const privateTopNames = new Set(
  "alt arpa cluster consul corp home i2p internal intranet invalid lan local localdomain localhost mail onion private svc test workgroup".split(
    " ",
  ),
);

/**
 * Whether the name could be a host of the public internet, by its form alone: at least two labels of letters, digits
 * and hyphens, and a top-level name that is not private. Expects the form that the URL parser returns (lower case,
 * punycode); a trailing dot is refused, because it would be a second spelling. `.example` passes: it resolves nowhere,
 * and documentation may use it.
 */
export function isPublicName(name: string): boolean {
  const labels = name.split(".");
  const top = labels.at(-1) ?? "";
  return (
    name.length <= 253 &&
    labels.length >= 2 &&
    labels.every((label) => /^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$/.test(label)) &&
    /^[a-z][a-z0-9-]*[a-z0-9]$/.test(top) &&
    !privateTopNames.has(top)
  );
}

/** IANA IPv4 special-purpose registry, multicast and reserved space. */
const specialIpv4 = blocks("ipv4", [
  "0.0.0.0/8", // this network
  "10.0.0.0/8", // private
  "100.64.0.0/10", // shared by carriers
  "127.0.0.0/8", // loopback
  "168.63.129.16/32", // not in the registry: Azure's platform endpoint, reachable from every machine there
  "169.254.0.0/16", // link-local, metadata of clouds
  "172.16.0.0/12", // private
  "192.0.0.0/24", // protocol assignments
  "192.0.2.0/24", // documentation
  "192.31.196.0/24", // AS112
  "192.52.193.0/24", // AMT
  "192.88.99.0/24", // 6to4 relays
  "192.168.0.0/16", // private
  "192.175.48.0/24", // AS112
  "198.18.0.0/15", // benchmarking
  "198.51.100.0/24", // documentation
  "203.0.113.0/24", // documentation
  "224.0.0.0/4", // multicast
  "240.0.0.0/4", // reserved, broadcast
]);

/**
 * Global unicast. IPv4-mapped, NAT64 (64:ff9b::/96, 64:ff9b:1::/48), private, link-local, SRv6 and multicast are
 * outside.
 */
const globalIpv6 = blocks("ipv6", ["2000::/3"]);

/** The parts of 2000::/3 that the IANA IPv6 special-purpose registry excludes. */
const specialIpv6 = blocks("ipv6", [
  "2001::/23", // protocol assignments: Teredo, benchmarking, AMT, AS112, ORCHID, drones
  "2001:db8::/32", // documentation
  "2002::/16", // 6to4, carries any IPv4 address
  "2620:4f:8000::/48", // AS112
  "3ffe::/16", // the former 6bone
  "3fff::/20", // documentation
]);

/**
 * Whether a resolved address belongs to the public internet: IPv4 outside the special ranges, IPv6
 * inside 2000::/3 minus the special ones. IPv4 inside IPv6 (mapped, NAT64, 6to4, Teredo) is never
 * public; text that is not one plain address (short forms, zones, brackets) is not either.
 */
export function isPublicAddress(ip: string): boolean {
  if (isIPv4(ip)) return !specialIpv4.check(ip, "ipv4");
  if (!isIPv6(ip) || ip.includes("%")) return false;
  return globalIpv6.check(ip, "ipv6") && !specialIpv6.check(ip, "ipv6");
}

function blocks(family: "ipv4" | "ipv6", subnets: readonly string[]): BlockList {
  const list = new BlockList();
  for (const subnet of subnets) {
    const [network = "", bits] = subnet.split("/");
    list.addSubnet(network, Number(bits), family);
  }
  return list;
}
