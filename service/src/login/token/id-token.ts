import type { Client } from "../../accounts/index.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { idTokenTyp, signJwt } from "../keys/jwt.ts";
import { purposeFor } from "../keys/signing-key.ts";
import type { TokenContext } from "../token-context.ts";

/** How the user proved itself (RFC 8176): by possession of the key in its wallet. */
const authenticationMethods = ["pop"] as const;

/** The input of an id token (OpenID Connect Core section 2). */
export interface IdTokenInput {
  readonly client: Client;
  readonly subject: string;
  readonly accessToken: string;
  readonly sessionId: string | null;
  readonly acr: string | null;
  readonly authenticatedAt: number | null;
  readonly nonce?: string;
  /** For a login for a business; empty for a person's, whose id token has no `ext`. */
  readonly ext: Readonly<Record<string, unknown>>;
  readonly now: number;
  readonly expiresAt: number;
}

export function signIdToken(
  ctx: Pick<TokenContext, "config" | "signingKeys">,
  input: IdTokenInput,
): string {
  const claims = {
    iss: ctx.config.baseUrl,
    sub: input.subject,
    aud: [input.client.id],
    exp: input.expiresAt,
    iat: input.now,
    ...(input.authenticatedAt === null ? {} : { auth_time: input.authenticatedAt }),
    ...(input.nonce === undefined ? {} : { nonce: input.nonce }),
    at_hash: leftHalfHash(input.accessToken),
    ...(input.sessionId === null ? {} : { sid: input.sessionId }),
    ...(input.acr === null ? {} : { acr: input.acr }),
    amr: authenticationMethods,
    ...(Object.keys(input.ext).length === 0 ? {} : { ext: input.ext }),
  };
  return signJwt(ctx.signingKeys.current(purposeFor(input.client)), idTokenTyp, claims);
}

/** OpenID Connect Core section 3.1.3.6; both algorithms in use hash with SHA-256. */
function leftHalfHash(accessToken: string): string {
  const digest = sha256(accessToken);
  return digest.subarray(0, digest.length / 2).toString("base64url");
}
