import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";

import { parseCookies, type CookieJar } from "./cookies.ts";
import type { Page } from "./pages.ts";

/** A logout token is about one kilobyte. */
const bytesMax = 64 * 1024;

/** One request, read. */
export interface Visit {
  method: string;
  url: URL;
  cookies: CookieJar;
  origin: string | undefined;
  /** `Sec-Fetch-Site`: the browser's own word on where the request comes from. */
  site: string | undefined;
  headers: IncomingHttpHeaders;
  form: () => Promise<URLSearchParams>;
  /** The bytes as received; null if there are more than `sizeMax`. */
  body: (sizeMax: number) => Promise<Buffer | null>;
}

/** One answer, before it is sent. */
export interface Reply {
  status: number;
  headers?: Record<string, string>;
  cookies?: string[];
  body?: string;
  /** True if the page follows its own state: it may run our script, and call us. */
  isLive?: boolean;
}

export function readVisit(request: IncomingMessage, shopUrl: string): Visit {
  return {
    method: request.method === "HEAD" ? "GET" : (request.method ?? ""),
    url: readUrl(request.url, shopUrl),
    cookies: parseCookies(request.headers.cookie),
    origin: request.headers.origin,
    site: request.headers["sec-fetch-site"]?.toString(),
    headers: request.headers,
    form: () => readForm(request),
    body: (sizeMax) => readBody(request, sizeMax),
  };
}

/**
 * Whether a POST comes from our own page. If both headers are missing it does not come from a browser, so it carries
 * nobody's cookies.
 */
export function isFromHere({ site, origin }: Visit, shopUrl: string): boolean {
  if (site !== undefined) return site === "same-origin";
  return origin === undefined || origin === shopUrl;
}

export function page({ status, markup }: Page): Reply {
  return { status, headers: { "content-type": "text/html; charset=utf-8" }, body: markup };
}

export function redirect(location: string, cookies: string[] = []): Reply {
  return { status: 303, headers: { location }, cookies };
}

export function send(response: ServerResponse, reply: Reply, { issuer }: { issuer: string }): void {
  // The buttons' forms are redirected to the broker, and browsers apply form-action to that, too.
  const formTargets = `'self' ${new URL(issuer).origin}`;
  const live = reply.isLive === true ? "script-src 'self'; connect-src 'self'; " : "";
  response.writeHead(reply.status, {
    // A QR code is an image in the page itself.
    "content-security-policy": `default-src 'none'; ${live}style-src 'self'; img-src 'self' data:; form-action ${formTargets}; base-uri 'none'; frame-ancestors 'none'`,
    // The callback's URL contains a code, which must not reach other sites. (no-referrer would blank the Origin of our
    // own forms.)
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
    "cache-control": "no-store",
    ...(reply.cookies !== undefined && reply.cookies.length > 0 && { "set-cookie": reply.cookies }),
    ...reply.headers,
  });
  response.end(reply.body);
}

/** The path as our own URL; anything that is not a path (`//elsewhere`, `*`) becomes a page that does not exist. */
function readUrl(target = "", shopUrl: string): URL {
  const text = /^\/(?!\/)/.test(target) ? shopUrl + target : "";
  return URL.canParse(text) ? new URL(text) : new URL("/not-found", shopUrl);
}

async function readForm(request: IncomingMessage): Promise<URLSearchParams> {
  const body = await readBody(request, bytesMax);
  return new URLSearchParams(body?.toString("utf8") ?? "");
}

async function readBody(request: IncomingMessage, sizeMax: number): Promise<Buffer | null> {
  const chunks: Buffer[] = [];
  let size = 0;
  for await (const chunk of request.iterator({ destroyOnReturn: false })) {
    const bytes = chunk as Buffer;
    size += bytes.length;
    if (size > sizeMax) break;
    chunks.push(bytes);
  }
  if (size <= sizeMax) return Buffer.concat(chunks);
  // The rest is discarded, so that the caller gets the answer, and the connection's next request is read.
  request.resume();
  return null;
}
