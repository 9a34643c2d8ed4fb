import { OAuthProblem } from "../../platform/http/problems.ts";

/** Scopes that a client may ask of a user. */
export const userScopes = ["openid", "offline", "offline_access", "business"] as const;

/** Either of them yields a refresh token. */
const refreshScopes: ReadonlySet<string> = new Set(["offline", "offline_access"]);

/**
 * Parses a scope parameter (RFC 6749 section 3.3); a repeated token counts once, the order stays.
 *
 * @throws {OAuthProblem} invalid_scope for a token that this service does not know, and for none at all
 */
export function parseScope(text: string | undefined): { scope: string; wantsRefresh: boolean } {
  const tokens = [...new Set((text ?? "").split(" ").filter((token) => token !== ""))];
  if (tokens.length === 0) throw new OAuthProblem("invalid_scope", "scope is missing");
  const unknown = tokens.some((token) => !userScopes.some((known) => known === token));
  if (unknown)
    throw new OAuthProblem(
      "invalid_scope",
      `scope may hold ${userScopes.join(", ")}, separated by spaces`,
    );
  return {
    scope: tokens.join(" "),
    wantsRefresh: tokens.some((token) => refreshScopes.has(token)),
  };
}

/** Whether a login for a business is asked (decisions section 2, Business login). */
export function isBusinessScope(scope: string): boolean {
  return scope.split(" ").includes("business");
}

/** The scope without what yields refresh tokens: a browser session never grants that anew (decisions section 2, Session). */
export function withoutRefresh(scope: string): string {
  return scope
    .split(" ")
    .filter((token) => !refreshScopes.has(token))
    .join(" ");
}
