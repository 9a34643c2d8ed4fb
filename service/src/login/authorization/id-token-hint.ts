import { addressOfSubject, type Address } from "@svc/protocol";
import { readOwnJwt } from "../token/access-token.ts";
import { idTokenTyp } from "../keys/jwt.ts";
import type { TokenContext } from "../token-context.ts";

/** The login of a genuine id token, expired or not. */
export interface IdTokenHint {
  readonly clientId: string;
  readonly user: Address;
  readonly sessionId: string | null;
}

/**
 * Reads an id token that this installation issued. An expired one is accepted: as a hint it says who is meant, and
 * proves nothing else (OpenID Connect RP-Initiated Logout section 2).
 */
export function readIdTokenHint(ctx: TokenContext, token: string): IdTokenHint | null {
  const claims = readOwnJwt(ctx, token, idTokenTyp);
  if (claims === null || claims["iss"] !== ctx.config.baseUrl) return null;
  const [clientId] = claims["aud"] as string[];
  const user = addressOfSubject(String(claims["sub"]));
  if (clientId === undefined || user === null) return null;
  const sid = claims["sid"];
  return { clientId, user, sessionId: typeof sid === "string" ? sid : null };
}

/** The user of an id token that was issued to this client, expired or not; null when it is not one. */
export function userOfIdToken(ctx: TokenContext, token: string, clientId: string): Address | null {
  const hint = readIdTokenHint(ctx, token);
  return hint !== null && hint.clientId === clientId ? hint.user : null;
}
