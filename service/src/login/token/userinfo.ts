import { addressOfSubject } from "@svc/protocol";
import { type Form, valueOf } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { type AccessTokenClaims, familyOf, readAccessToken } from "./access-token.ts";
import { extOf } from "../business/business-claims.ts";
import { readLiveClaims } from "./live-claims.ts";
import { checkDpopProof, type DpopProof, type ProvedCall } from "./dpop.ts";
import type { TokenContext } from "../token-context.ts";

/** A call to `/userinfo`. */
export interface UserinfoCall {
  readonly method: "GET" | "POST";
  readonly authorization: string | undefined;
  /** The `DPoP` header. */
  readonly dpop: string | undefined;
  /** The body of a POST that has one. */
  readonly form: Form;
  readonly query: Form;
}

export interface Userinfo {
  readonly sub: string;
  readonly ext: Readonly<Record<string, unknown>>;
}

type Scheme = "Bearer" | "DPoP";

/** The input of the checks. */
interface Asked {
  readonly ctx: TokenContext;
  readonly call: UserinfoCall;
  readonly scheme: Scheme;
  readonly text: string;
  readonly token: AccessTokenClaims;
  readonly now: number;
}

export const userinfoPath = "/userinfo";

type Check = (asked: Asked) => void | Promise<void>;

const checkExpiry: Check = ({ token, now, scheme }) => {
  if (token.exp <= now) refuse(scheme, "the access token has expired");
};

const checkClient: Check = async ({ ctx, token, scheme }) => {
  if ((await ctx.clients.find(token.client_id)) === null)
    refuse(scheme, "the access token's client is disabled");
};

/** A bound token needs its proof, and one that is not bound must not pass for a bound one (RFC 9449 section 7.1). */
const checkScheme: Check = ({ token, scheme }) => {
  if (token.cnf !== undefined && scheme === "Bearer")
    refuse("DPoP", "the access token is bound to a DPoP key");
  if (token.cnf === undefined && scheme === "DPoP")
    refuse("Bearer", "the access token is not bound to a DPoP key");
};

const checkUser: Check = ({ token, scheme }) => {
  const isUser = addressOfSubject(token.sub) !== null && token.scp.includes("openid");
  if (!isUser)
    throw new OAuthProblem(
      "insufficient_scope",
      "an access token of a user with openid is needed",
      {
        challenge: scheme,
      },
    );
};

/** In this order, before the database is asked. */
const checks: readonly Check[] = [checkExpiry, checkScheme, checkClient, checkUser];

/**
 * Answers who the user behind an access token is (OpenID Connect Core section 5.3), in one database call.
 *
 * @throws {OAuthProblem} of RFC 6750 section 3.1 or RFC 9449 section 7.1, with a challenge
 */
export async function readUserinfo(ctx: TokenContext, call: UserinfoCall): Promise<Userinfo> {
  const { scheme, text } = readToken(call);
  const token = readAccessToken(ctx, text);
  if (token === null) return refuse(scheme, "this is no access token of this service");
  const asked = { ctx, call, scheme, text, token, now: ctx.clock.now() };
  for (const check of checks) await check(asked);
  const proof = scheme === "DPoP" ? checkProof(asked) : null;
  const live = await readLiveClaims(ctx, familyOf(token), {
    now: asked.now,
    oneTime: proof === null ? [] : [proof.oneTime],
    refuseReplay: () => refuseProof("the DPoP proof was used before"),
  });
  if (live === null) return refuse(scheme, "the access token was revoked");
  return { sub: token.sub, ext: extOf(ctx, live, token.scope) };
}

function checkProof({ ctx, call, text, token, now }: Asked): DpopProof {
  if (call.dpop === undefined) return refuseProof("the DPoP proof is missing");
  const url = `${ctx.config.baseUrl}${userinfoPath}`;
  const proof = proveAtResource(call.dpop, { method: call.method, url, now, accessToken: text });
  if (proof.jkt !== token.cnf?.jkt) refuse("DPoP", "the access token is bound to another DPoP key");
  return proof;
}

/** At a resource a bad proof is answered like a bad token: 401 with a challenge. */
function proveAtResource(header: string, call: ProvedCall): DpopProof {
  try {
    return checkDpopProof(header, call);
  } catch (error) {
    if (!(error instanceof OAuthProblem)) throw error;
    return refuseProof(error.message);
  }
}

/**
 * Takes the token from exactly one of the places of RFC 6750 section 2. The query string is none of them; a token there
 * is refused even beside a proper one.
 */
function readToken(call: UserinfoCall): { scheme: Scheme; text: string } {
  const { authorization, form, query } = call;
  const inBody = valueOf(form, "access_token");
  const given = [authorization, inBody, query["access_token"]].filter(
    (each) => (each ?? "") !== "",
  );
  if (given.length > 1)
    throw new OAuthProblem("invalid_request", "send the access token in one way only", {
      challenge: "Bearer",
    });
  if (inBody !== undefined) return { scheme: "Bearer", text: inBody };
  const [, scheme, text] = /^(Bearer|DPoP) +(\S+)$/i.exec(authorization ?? "") ?? [];
  if (scheme === undefined || text === undefined) return refuseAbsent();
  return { scheme: scheme.toLowerCase() === "dpop" ? "DPoP" : "Bearer", text };
}

/** RFC 6750 section 3.1: a caller that sent nothing is told how to ask, not what went wrong. */
function refuseAbsent(): never {
  throw new OAuthProblem(
    "invalid_token",
    "an access token is required: Authorization: Bearer <token>",
    {
      headers: { "www-authenticate": 'Bearer realm="svc", DPoP realm="svc", algs="ES256 RS256"' },
    },
  );
}

function refuse(scheme: Scheme, fault: string): never {
  throw new OAuthProblem("invalid_token", fault, { challenge: scheme });
}

function refuseProof(fault: string): never {
  throw new OAuthProblem("invalid_dpop_proof", fault, { status: 401, challenge: "DPoP" });
}
