/**
 * Headers of every page: no script, style or frame that is not ours, no copy in a cache, no address handed on.
 * A redirect after a form counts as its target in Chromium, so the page of a client names the client's redirect URI.
 *
 * @param options.formTargets redirect URIs or origins that a form of this page may end at
 * @see https://www.w3.org/TR/CSP3/#directive-form-action
 */
export function pageHeaders(options: { formTargets: readonly string[] }): Record<string, string> {
  const targets = new Set(options.formTargets.map(sourceOf));
  return {
    "content-type": "text/html; charset=utf-8",
    "content-security-policy": [
      "default-src 'none'",
      "script-src 'self'",
      "style-src 'self'",
      "img-src 'self' data:",
      "connect-src 'self'",
      `form-action ${["'self'", ...targets].join(" ")}`,
      "frame-ancestors 'none'",
      "base-uri 'none'",
    ].join("; "),
    "x-frame-options": "DENY",
    "x-content-type-options": "nosniff",
    // Nothing is told to other origins. Under no-referrer browsers would blank the Origin of our own forms, which is checked.
    "referrer-policy": "same-origin",
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "permissions-policy": "camera=(), microphone=(), geolocation=(), payment=(), usb=()",
  };
}

/**
 * The origin of a web address. An app's own scheme (RFC 8252 section 7.1) has no origin, and neither an IPv6 literal nor a
 * host name with other characters than a domain's has a place in the policy's grammar: these are named by their scheme.
 */
function sourceOf(target: string): string {
  const url = new URL(target);
  return /^[A-Za-z0-9+.-]+:\/\/[A-Za-z0-9.-]+(?::\d+)?$/.test(url.origin)
    ? url.origin
    : url.protocol;
}
