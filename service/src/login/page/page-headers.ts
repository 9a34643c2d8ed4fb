/**
 * Headers of every page: no script, style or frame that is not ours, no copy in a cache, no address handed on.
 *
 * A form may lead to the client, whose own redirects from there Chromium counts as the form's targets too. Where they
 * lead nobody knows here, so a page of a client allows `https:` and the scheme of the client's address; any other page
 * keeps its forms here. A page of a client may be a popup whose opener waits for it to close or to say how it went, so
 * it does not part from its opener, which can send it elsewhere but not look into it.
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
    // Nothing is told to other origins. Under no-referrer browsers would blank the Origin of our own forms, which is checked.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    ...(leadsTo === undefined ? { "cross-origin-opener-policy": "same-origin" } : {}),
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
  };
}
