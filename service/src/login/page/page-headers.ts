/**
 * Headers of every page: no foreign script, style or frame, no copy in a cache, no address passed on.
 *
 * A form may lead to the client, and Chromium applies `form-action` to the redirects that follow as well, the client's
 * own included. We cannot know where those lead, so a page of a client allows `https:` and the scheme of the client's
 * address; forms of any other page lead only to us. A page of a client may be a popup whose opener waits for it to
 * close or to report the outcome, so it keeps its opener, which can navigate it but not look into it.
 *
 * @param options.leadsTo the client's address that a form of this page ends at
 * @see https://www.w3.org/TR/CSP3/#directive-form-action
 */
export function pageHeaders(
  options: { leadsTo?: string | undefined } = {},
): Record<string, string> {
  const { leadsTo } = options;
  const beyond = leadsTo === undefined ? [] : ["https:", new URL(leadsTo).protocol];
  const targets = new Set(["'self'", ...beyond]);
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      `form-action ${[...targets].join(" ")}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join("; "),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    // Other origins get no referrer. With no-referrer, browsers would blank the Origin of our own forms, which is
    // checked.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    ...(leadsTo === undefined ? { "cross-origin-opener-policy": "same-origin" } : {}),
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
  };
}
