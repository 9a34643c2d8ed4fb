import type { Client } from "../../accounts/index.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";

/** The audiences that a request names, by `audience` or its alias `resource` (RFC 8707 section 2). */
export function askedAudience(given: Form): readonly string[] {
  const named = [given["audience"] ?? [], given["resource"] ?? []].flat();
  return [...new Set(named)].filter((value) => value !== "");
}

/**
 * The audience that a request asks for: at most one, exactly as registered. Empty when it asks for none; the token's
 * `aud` is the client id then.
 *
 * @throws {OAuthProblem} invalid_target
 */
export function resolveAudience(given: Form, client: Client): readonly string[] {
  const [audience, second] = askedAudience(given);
  if (second !== undefined)
    throw new OAuthProblem("invalid_target", "ask for one audience or resource at a time");
  if (audience === undefined) return [];
  if (!client.audiences.includes(audience))
    throw new OAuthProblem(
      "invalid_target",
      "audience or resource is none that is registered for this client, character by character",
    );
  return [audience];
}

/** The audiences that access tokens of the client may have now: its registered ones, and the client itself. */
export function audiencesOf(client: Client): readonly string[] {
  return [...client.audiences, client.id];
}

/** The fault of a grant for an audience that the client has lost since; null while it has them all. */
export function lostAudienceFault(granted: readonly string[], client: Client): OAuthProblem | null {
  const present = audiencesOf(client);
  return granted.every((audience) => present.includes(audience))
    ? null
    : new OAuthProblem("invalid_target", "this audience is not registered for the client any more");
}
