import type { Client } from "../../accounts/index.ts";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import {
  authenticateClient,
  type ClientCall,
  refuseReplayedAssertion,
} from "../client/client-authentication.ts";
import { checkDpopProof, refuseReplayedProof } from "./dpop.ts";
import type { TokenContext } from "../token-context.ts";
import type { OneTimeValue } from "./used-once-store.ts";

/** A call to the token endpoint. */
export interface TokenCall extends ClientCall {
  /** The `DPoP` header. */
  readonly dpop: string | undefined;
}

/** A call whose client is known and whose proof of possession holds. */
export interface TokenRequest {
  readonly form: Form;
  readonly client: Client;
  readonly isConfidential: boolean;
  /** Thumbprint of the key that the tokens will be bound to; null for bearer tokens. */
  readonly dpopJkt: string | null;
  /** To be spent together with the grant. */
  readonly oneTime: readonly OneTimeValue[];
  readonly now: number;
}

/** The answer of the token endpoint (RFC 6749 section 5.1). */
export interface TokenResponse {
  readonly access_token: string;
  readonly token_type: "bearer" | "DPoP";
  readonly expires_in: number;
  readonly scope: string;
  readonly id_token?: string;
  readonly refresh_token?: string;
}

export const tokenPath = "/oauth2/token";

/** Finds out who calls and with which key, before any grant is looked at. @throws {OAuthProblem} | {Problem} */
export async function readTokenRequest(ctx: TokenContext, call: TokenCall): Promise<TokenRequest> {
  const { client, isConfidential, oneTime } = await authenticateClient(ctx, call);
  if (client.dpopRequired && call.dpop === undefined)
    throw new OAuthProblem("invalid_request", "this client must send a DPoP proof");
  const now = ctx.clock.now();
  const url = `${ctx.config.baseUrl}${tokenPath}`;
  const proof =
    call.dpop === undefined ? null : checkDpopProof(call.dpop, { method: "POST", url, now });
  return {
    form: call.form,
    client,
    isConfidential,
    dpopJkt: proof?.jkt ?? null,
    oneTime: proof === null ? oneTime : [...oneTime, proof.oneTime],
    now,
  };
}

/** Ends a call whose assertion or proof was seen before. */
export function refuseReplays(request: TokenRequest, spent: readonly string[]): void {
  const replayed = request.oneTime.find((value) => !spent.includes(value.kind));
  if (replayed === undefined) return;
  if (replayed.kind === "assertion") refuseReplayedAssertion();
  refuseReplayedProof();
}

/** A required parameter. @throws {OAuthProblem} invalid_request */
export function getValue(form: Form, name: string): string {
  const value = valueOf(form, name);
  if (value === undefined) throw new OAuthProblem("invalid_request", `${name} is missing`);
  return value;
}

/** The refusal of a code or refresh token that does not hold (RFC 6749 section 5.2). */
export function grantFault(description: string): OAuthProblem {
  return new OAuthProblem("invalid_grant", description);
}
