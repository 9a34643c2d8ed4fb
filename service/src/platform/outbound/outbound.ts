// The one client for hosts a caller chose: webhooks, back-channel logout, push, jwks_uri, domain
// proofs, relay. Decisions section 7, "Address policy". Such a host is an adversary: it must not
// make us reach our own network, follow it elsewhere, wait for it or hold what it sends.
import assert from "node:assert/strict";
import { isIP } from "node:net";
import type { LookupFunction } from "node:net";
import type * as Undici from "undici";
import { type AddressPolicy, isPublicAddress, parsePublicUrl } from "./address-policy.ts";
import { boundedConnector } from "./answer-bound.ts";
import { KeptConnections } from "./kept-connections.ts";
import { type Resolver, systemResolver } from "./resolver.ts";
import { orAborted, timeoutMsMax } from "./time-limit.ts";

export interface OutboundRequest {
  method: "GET" | "POST";
  url: string;
  /**
   * Lower or upper case names; headers that frame the message, name the host or carry cookies are set by us, and
   * passing one throws.
   */
  headers?: Record<string, string>;
  body?: string | Uint8Array;
  /** For everything together: DNS, connection, TLS, headers and the end of the body. At most 60,000. */
  timeoutMs: number;
  /** Of the body; the headers may take 16 KiB of their own. At most 8 MiB. */
  responseBytesMax: number;
  /** Keeps the connection for the next such request whose name leads to the same checked addresses. Default false. */
  keepAlive?: boolean;
}

/**
 * `answered`: the body ended inside the limits; a redirect is an answer like any other and is not followed; header
 * names are lower case, repeated ones joined by `, `, `set-cookie` left out; the body is as sent, never decompressed.
 *
 * `failed`: the reason is for our records. Show the owner of the address only one class for all failures, because
 * otherwise the results would map our network. `head` is present if the answer had begun.
 */
export type OutboundResult =
  | ({ kind: "answered"; body: Uint8Array } & AnswerHead)
  | {
      kind: "failed";
      reason: "blocked" | "unreachable" | "timeout" | "too_large";
      head?: AnswerHead;
    };

interface AnswerHead {
  status: number;
  headers: Record<string, string>;
}

export interface Outbound {
  /**
   * Makes one attempt, on a separate connection that is closed afterwards unless `keepAlive` is set. A kept connection
   * that the peer had closed in the meantime is replaced once: the peer never gets a request again that it has begun to
   * answer.
   *
   * @throws {Error} when the request itself is wrong (bounds, reserved headers), after `close`, and for a request cut
   *   off by `close`: our shutdown is not a failure of the receiver
   */
  send(request: OutboundRequest): Promise<OutboundResult>;
  /** Cuts off what is under way and resolves when it has ended. Callers that drain wait for their requests first. */
  close(): Promise<void>;
}

/**
 * Plays the internet in a test: connections to a checked address go to `addressOf` it, and only `ca` is trusted. It
 * contains a function, so no setting can express it.
 */
export interface FakeInternet {
  ca: string;
  addressOf(address: string): string;
}

interface OutboundOptions extends AddressPolicy {
  resolve?: Resolver;
  connect?: FakeInternet;
}

const responseBytesLimit = 8 * 1024 * 1024;
const headerBytesMax = 16 * 1024;
/** How long an idle connection is kept; shorter if the peer says so. */
const keptMs = 10_000;
/** All addresses are checked, but a name with hundreds of addresses does not get hundreds of connections. */
const addressesTriedMax = 8;
/**
 * How long an address has to accept before the next one is tried. Node gives each but the last 250 ms: too little for a
 * process that stood still meanwhile, a lost packet or the other side of the world.
 */
const acceptsWithinMs = 2_000;

/** Opens the guarded client. The environment's proxy and TLS variables have no effect on it. */
export function createOutbound(options: OutboundOptions): Outbound {
  const underWay = new Map<AbortController, Promise<OutboundResult>>();
  const kept = new KeptConnections();
  let loaded: typeof Undici | undefined;
  let isClosed = false;

  const send = async (request: OutboundRequest): Promise<OutboundResult> => {
    checkRequest(request);
    if (isClosed) throw new Error("The outbound client is closed");
    // Loaded by the first request, outside of its time limit: a process that makes none does not load it. A load that
    // fails, for want of a file descriptor, is tried again by the next request.
    const undici = (loaded ??= await import("undici"));
    if (isClosed) throw new Error("The outbound client was closed");

    const stop = new AbortController();
    const timer = setTimeout(() => stop.abort(), request.timeoutMs);
    let head: AnswerHead | undefined;
    const onHead = (begun: AnswerHead): void => {
      head = begun;
    };
    const result = attempt({ ...options, kept, undici }, { ...request, onHead }, stop.signal);
    underWay.set(stop, result);
    try {
      return await result;
    } catch (error) {
      if (isClosed) throw new Error("The outbound client was closed", { cause: error });
      const reason = reasonOf(error, stop.signal);
      return { kind: "failed", reason, ...(head !== undefined && { head }) };
    } finally {
      clearTimeout(timer);
      underWay.delete(stop);
    }
  };

  const close = async (): Promise<void> => {
    isClosed = true;
    for (const stop of underWay.keys()) stop.abort();
    await Promise.allSettled(underWay.values());
    kept.close();
  };

  return { send, close };
}

/** Only we set these: framing (request smuggling), the host (also the TLS name), cookies, coding. */
const reservedHeaders = new Set(
  "accept-encoding connection content-length cookie expect host http2-settings keep-alive proxy-authorization proxy-connection te trailer transfer-encoding upgrade".split(
    " ",
  ),
);

function checkRequest(request: OutboundRequest): void {
  const { timeoutMs, responseBytesMax } = request;
  assert(timeoutMs > 0 && timeoutMs <= timeoutMsMax, "timeoutMs out of bounds");
  assert(Number.isInteger(responseBytesMax), "responseBytesMax is not an integer");
  assert(
    responseBytesMax >= 0 && responseBytesMax <= responseBytesLimit,
    "responseBytesMax out of bounds",
  );
  assert(request.method === "POST" || request.body === undefined, "a GET has no body");
  for (const [name, value] of Object.entries(request.headers ?? {})) {
    assert(/^[a-z0-9-]+$/i.test(name), "a header name is malformed");
    assert(!reservedHeaders.has(name.toLowerCase()), `the header ${name} is reserved`);
    assert(/^[\t\x20-\x7e]*$/.test(value), `the value of the header ${name} is malformed`);
  }
}

type WatchedRequest = OutboundRequest & { onHead: (head: AnswerHead) => void };

/** The means of a request. */
type Means = OutboundOptions & { kept: KeptConnections; undici: typeof Undici };

/** Where a request goes: only to these addresses, all of them checked. */
interface Peer {
  readonly url: URL;
  readonly addresses: readonly string[];
}

type BoundedRequest = WatchedRequest & { signal: AbortSignal };

async function attempt(
  means: Means,
  request: WatchedRequest,
  signal: AbortSignal,
): Promise<OutboundResult> {
  const url = parsePublicUrl(request.url, means);
  if ("refused" in url) return { kind: "failed", reason: "blocked" };
  const addresses = await findAddresses(url, means.resolve ?? systemResolver, signal);
  if (addresses === "blocked") return { kind: "failed", reason: "blocked" };
  const peer = { url, addresses };
  const bounded = { ...request, signal };
  const answered = request.keepAlive === true ? await sendOnKept(means, peer, bounded) : null;
  return answered ?? sendOnNew(means, peer, bounded);
}

/** @returns null if the peer seems to have closed the kept connection before it began to answer */
async function sendOnKept(
  means: Means,
  peer: Peer,
  request: BoundedRequest,
): Promise<OutboundResult | null> {
  const { url, addresses } = peer;
  const key = [url.origin, request.responseBytesMax, ...addresses.toSorted()].join(" ");
  const pool = means.kept.find(key, () => openPool(means, peer, request));
  let mayBeClosed = pool.stats.free > 0;
  const onHead = (head: AnswerHead): void => {
    mayBeClosed = false;
    request.onHead(head);
  };
  try {
    const exchanged = exchange(pool, url, { ...request, reset: false, onHead });
    return await orAborted(exchanged, request.signal);
  } catch (error) {
    // Most likely the peer closed the connection just as we used it. That cannot be so for a new connection, or for
    // an answer that broke off.
    if (request.signal.aborted || !mayBeClosed || !brokenCodes.has(codeOf(error))) throw error;
    return null;
  }
}

/**
 * A client of its own for each request: no socket, TLS session or pinned address outlives it, so a name that changes its
 * address between two requests gains nothing from the first.
 */
async function sendOnNew(
  { undici, connect }: Means,
  { url, addresses }: Peer,
  request: BoundedRequest,
): Promise<OutboundResult> {
  const { signal } = request;
  const client = new undici.Client(url.origin, {
    // The signal bounds everything; these would count per phase or per chunk.
    ...boundsOf(request, undici, {
      ...connectOptions(connect, { url, addresses }),
      signal,
      timeout: 0,
    }),
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  try {
    return await orAborted(exchange(client, url, { ...request, reset: true }), signal);
  } finally {
    // Not awaited: it also waits for a peer that never finishes its TLS handshake.
    client.destroy().catch(() => undefined);
  }
}

/** Connects only to the checked addresses, with as many connections as there are requests under way. */
function openPool(
  { undici, connect }: Means,
  { url, addresses }: Peer,
  request: OutboundRequest,
): Undici.Pool {
  return new undici.Pool(url.origin, {
    ...boundsOf(request, undici, {
      ...connectOptions(connect, { url, addresses }),
      // If a request has given up, its connection may still be connecting.
      timeout: timeoutMsMax,
    }),
    headersTimeout: 0,
    bodyTimeout: 0,
    keepAliveTimeout: keptMs,
    keepAliveMaxTimeout: keptMs,
  });
}

/** How much a connection for such requests may deliver. */
function boundsOf(
  { responseBytesMax }: OutboundRequest,
  undici: typeof Undici,
  connect: Undici.buildConnector.BuildOptions,
) {
  const longest = { headerBytes: headerBytesMax, bodyBytes: responseBytesMax };
  return {
    connect: boundedConnector(undici, { ...connect, allowH2: false }, longest),
    allowH2: false,
    maxHeaderSize: headerBytesMax,
    maxResponseSize: responseBytesMax,
  };
}

const brokenCodes = new Set(["UND_ERR_SOCKET", "ECONNRESET", "EPIPE"]);
const tooLargeCodes = new Set(["UND_ERR_RES_EXCEEDED_MAX_SIZE", "UND_ERR_HEADERS_OVERFLOW"]);

function codeOf(error: unknown): string {
  return error instanceof Error ? ((error as NodeJS.ErrnoException).code ?? "") : "";
}

async function exchange(
  client: Undici.Dispatcher,
  url: URL,
  request: BoundedRequest & { reset: boolean },
): Promise<OutboundResult> {
  const response = await client.request({
    origin: url.origin,
    path: `${url.pathname}${url.search}`,
    method: request.method,
    headers: { ...request.headers, "accept-encoding": "identity" },
    body: request.body ?? null,
    signal: request.signal,
    reset: request.reset,
  });
  const head = { status: response.statusCode, headers: headersOf(response.headers) };
  request.onHead(head);
  return { kind: "answered", ...head, body: await response.body.bytes() };
}

function headersOf(raw: Record<string, string | string[] | undefined>): Record<string, string> {
  const entries = Object.entries(raw).filter(([name]) => name !== "set-cookie");
  return Object.fromEntries(
    entries.map(([name, value = ""]) => [name, Array.isArray(value) ? value.join(", ") : value]),
  );
}

/** The addresses to connect to, every one of them checked; one that is not public blocks them all. */
async function findAddresses(
  url: URL,
  resolver: Resolver,
  signal: AbortSignal,
): Promise<readonly string[] | "blocked"> {
  // Only `http://localhost` and `http://127.0.0.1` in dev have this scheme. The name means this machine, whatever a
  // resolver says.
  if (url.protocol === "http:") return ["127.0.0.1", "::1"];

  const addresses = await orAborted(resolver.addresses(url.hostname, signal), signal);
  if (addresses.length === 0) throw new Error("The name has no address");
  return addresses.every((address) => isPublicAddress(address)) ? addresses : "blocked";
}

/**
 * Pins the connection: whatever `lookup` is asked, it returns the checked addresses. TLS still proves the host name.
 */
function connectOptions(fake: FakeInternet | undefined, { url, addresses }: Peer) {
  const pinned = addresses.slice(0, addressesTriedMax).map((checked) => {
    const address = fake === undefined ? checked : fake.addressOf(checked);
    return { address, family: isIP(address) };
  });
  const lookup: LookupFunction = (_name, _options, callback) => callback(null, pinned);
  // Without `autoSelectFamily` Node would ask for a single address and refuse the list.
  return {
    lookup,
    autoSelectFamily: true,
    // This machine refuses at once where nobody listens.
    autoSelectFamilyAttemptTimeout: url.protocol === "http:" ? timeoutMsMax : acceptsWithinMs,
    rejectUnauthorized: true,
    ...(fake === undefined ? {} : { ca: fake.ca }),
  };
}

function reasonOf(error: unknown, signal: AbortSignal): "timeout" | "too_large" | "unreachable" {
  if (signal.aborted) return "timeout";
  return tooLargeCodes.has(codeOf(error)) ? "too_large" : "unreachable";
}
