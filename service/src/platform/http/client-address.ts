// Where a request came from, as far as it can be known; pure.
import { BlockList, isIPv4, isIPv6 } from "node:net";
import type { FastifyRequest } from "fastify";
import type { Config } from "../config/config.ts";

/** The address that a request comes from, also after its caller has gone; see {@link clientAddressOf}. */
export function callerAddressOf(
  { config }: { readonly config: Pick<Config, "trustedProxies"> },
  { socket, headers }: Pick<FastifyRequest, "socket" | "headers">,
): string {
  const peer = socket.remoteAddress ?? "";
  return clientAddressOf(peer, headers["x-forwarded-for"], config.trustedProxies);
}

/**
 * The address of the client. `X-Forwarded-For` counts only when the peer is a trusted proxy; it is then read from the
 * right, and the first address that is not a trusted proxy is the client's. Anyone may have written whatever is to the
 * left of it. If the header ends or becomes unreadable, the last trusted proxy counts as the client.
 *
 * @param peer the other end of the connection
 * @param trustedProxies addresses or CIDR blocks, IPv4 or IPv6 (settings: `TRUSTED_PROXIES`)
 * @returns the address in its canonical form; IPv4 inside IPv6 (`::ffff:192.0.2.1`) as IPv4
 */
export function clientAddressOf(
  peer: string,
  xForwardedFor: string | readonly string[] | undefined,
  trustedProxies: readonly string[],
): string {
  let client = canonicalAddress(peer) ?? unknownAddress;
  if (trustedProxies.length === 0 || xForwardedFor === undefined) return client;
  const trusted = parseNetworks(trustedProxies);
  const hops = [xForwardedFor].flat().join(",").split(",").toReversed();
  for (const hop of hops) {
    if (!isIn(trusted, client)) return client;
    const next = canonicalAddress(withoutPort(hop.trim()));
    if (next === null) return client;
    client = next;
  }
  return client;
}

/** The network two devices of one place share: /24 of IPv4, /48 of IPv6 (decisions section 2, rule 5). */
export function networkOf(address: string): string {
  return prefixOf(address, { ipv4Bits: 24, ipv6Bits: 48 });
}

/**
 * The network that a limit per address counts: a whole IPv4 address, or a /64 of IPv6, which belongs to a single
 * subscriber.
 */
export function limitNetworkOf(address: string): string {
  return prefixOf(address, { ipv4Bits: 32, ipv6Bits: 64 });
}

/** Whether the address is this machine: 127.0.0.0/8 or ::1. */
export function isLoopbackAddress(address: string): boolean {
  const canonical = canonicalAddress(address);
  return canonical !== null && (canonical === "::1" || canonical.startsWith("127."));
}

/** Loopback in `dev`, unless `LIMIT_LOOPBACK` says otherwise (decisions section 8, Rate limits). */
export function isUnlimited(
  { config }: { readonly config: Pick<Config, "limitLoopback"> },
  address: string,
): boolean {
  return !config.limitLoopback && isLoopbackAddress(address);
}

/** Whether the text is an address or a CIDR block, as {@link clientAddressOf} accepts it. */
export function isNetwork(text: string): boolean {
  return parseNetwork(text) !== null;
}

/** Stands for a peer without an address (a Unix socket); no proxy list contains it. */
const unknownAddress = "::";

const parsedNetworks = new WeakMap<readonly string[], BlockList>();

function parseNetworks(networks: readonly string[]): BlockList {
  const known = parsedNetworks.get(networks);
  if (known !== undefined) return known;
  const list = new BlockList();
  for (const text of networks) {
    const network = parseNetwork(text);
    if (network === null) throw new Error(`${text} is neither an address nor a CIDR block`);
    list.addSubnet(network.address, network.bits, network.family);
  }
  parsedNetworks.set(networks, list);
  return list;
}

function parseNetwork(
  text: string,
): { address: string; bits: number; family: "ipv4" | "ipv6" } | null {
  const [address = "", bitsText, ...more] = text.split("/");
  const family = familyOf(address);
  if (family === null || address.includes("%") || more.length > 0) return null;
  const bitsMax = family === "ipv4" ? 32 : 128;
  const bits = bitsText === undefined ? bitsMax : Number(bitsText);
  if (bitsText !== undefined && (!/^\d{1,3}$/.test(bitsText) || bits > bitsMax)) return null;
  return { address, bits, family };
}

function isIn(networks: BlockList, address: string): boolean {
  return networks.check(address, familyOf(address) ?? "ipv6");
}

function familyOf(address: string): "ipv4" | "ipv6" | null {
  if (isIPv4(address)) return "ipv4";
  return isIPv6(address) ? "ipv6" : null;
}

/** Some proxies write `192.0.2.1:4711` or `[2001:db8::1]:4711`. */
function withoutPort(hop: string): string {
  return /^\[([^\]]*)\](?::\d+)?$/.exec(hop)?.[1] ?? /^([\d.]+):\d+$/.exec(hop)?.[1] ?? hop;
}

type Parsed = { readonly ipv4: string } | { readonly groups: readonly number[] } | null;

/** The address is needed several times per request, and the same clients come again. */
const parsedMax = 2000;
const parsedAddresses = new Map<string, Parsed>();

function parseAddress(text: string): Parsed {
  const known = parsedAddresses.get(text);
  if (known !== undefined) return known;
  const parsed = readAddress(text);
  if (parsedAddresses.size >= parsedMax) parsedAddresses.clear();
  if (text.length <= 64) parsedAddresses.set(text, parsed);
  return parsed;
}

/** Eight groups of an IPv6 address, or the four bytes of an IPv4 one; null for anything else. */
function readAddress(text: string): Parsed {
  const [address = ""] = text.split("%", 1);
  if (isIPv4(address)) return { ipv4: address };
  if (!isIPv6(address)) return null;
  // The URL parser writes every IPv6 address in one form (RFC 5952), embedded IPv4 as two groups.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = Array.from({ length: 8 - left.length - right.length }, () => "0");
  const groups = [...left, ...zeros, ...right].map((group) => Number.parseInt(group, 16));
  const isMapped = groups.slice(0, 5).every((group) => group === 0) && groups[5] === 0xffff;
  const [high = 0, low = 0] = groups.slice(6);
  if (isMapped) return { ipv4: [high >> 8, high & 255, low >> 8, low & 255].join(".") };
  return { groups };
}

function canonicalAddress(text: string): string | null {
  const parsed = parseAddress(text);
  if (parsed === null) return null;
  return "ipv4" in parsed ? parsed.ipv4 : formatGroups(parsed.groups);
}

const formattedGroups = new WeakMap<readonly number[], string>();

function formatGroups(groups: readonly number[]): string {
  const known = formattedGroups.get(groups);
  if (known !== undefined) return known;
  const text = groups.map((group) => group.toString(16)).join(":");
  const formatted = new URL(`http://[${text}]`).hostname.slice(1, -1);
  formattedGroups.set(groups, formatted);
  return formatted;
}

/** A text that is not an address is its own network. */
function prefixOf(address: string, bits: { ipv4Bits: 24 | 32; ipv6Bits: 48 | 64 }): string {
  const parsed = parseAddress(address);
  if (parsed === null) return address;
  if ("ipv4" in parsed) {
    const { ipv4 } = parsed;
    const kept = bits.ipv4Bits === 32 ? ipv4 : `${ipv4.slice(0, ipv4.lastIndexOf("."))}.0`;
    return `${kept}/${bits.ipv4Bits}`;
  }
  const kept = parsed.groups.map((group, at) => (at < bits.ipv6Bits / 16 ? group : 0));
  return `${formatGroups(kept)}/${bits.ipv6Bits}`;
}
