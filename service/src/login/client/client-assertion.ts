import type { Client } from "../../accounts/index.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { isSignedByClient, type Untried } from "./client-keys.ts";
import {
  checkJti,
  type ForeignAlgorithm,
  type ForeignJwt,
  isForeignAlgorithm,
  isSignedBy,
  parseForeignJwt,
} from "./foreign-jwt.ts";
import type { TokenContext } from "../token-context.ts";
import type { OneTimeValue } from "../token/used-once-store.ts";

/** An assertion as presented: readable, not yet believed. */
export interface PresentedAssertion {
  readonly jwt: ForeignJwt;
  readonly algorithm: ForeignAlgorithm;
  readonly clientId: string;
}

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
const lifetimeSecondsMax = 300;
/** For clocks of clients that run ahead of ours. */
const leewaySeconds = 30;

/** Reads the two parameters of RFC 7521 section 4.2. @throws {OAuthProblem} invalid_request, invalid_client */
export function readAssertion(
  text: string | undefined,
  type: string | undefined,
): PresentedAssertion {
  if (type !== assertionType)
    throw new OAuthProblem("invalid_request", `client_assertion_type must be ${assertionType}`);
  if (text === undefined) throw new OAuthProblem("invalid_request", "client_assertion is missing");
  const jwt = parseForeignJwt(text);
  const subject = jwt?.claims["sub"];
  const algorithm = jwt?.header["alg"];
  if (jwt === null || typeof subject !== "string")
    throw new OAuthProblem("invalid_client", "the client assertion is not a JWT with a sub");
  if (!isForeignAlgorithm(algorithm))
    throw new OAuthProblem(
      "invalid_client",
      "the client assertion must be signed with RS256 or ES256",
    );
  return { jwt, algorithm, clientId: subject };
}

/** The input of a check. */
interface Asked {
  readonly jwt: ForeignJwt;
  readonly client: Client;
  readonly issuer: string;
  readonly now: number;
}

type Check = (asked: Asked) => string | null;

/** A media type: neither case nor the prefix counts (RFC 7515 section 4.1.9). */
const checkType: Check = ({ jwt }) => {
  const { typ = "JWT" } = jwt.header;
  const isKnown =
    typeof typ === "string" && /^(?:application\/)?(?:client-authentication\+)?jwt$/i.test(typ);
  return isKnown ? null : "typ must be JWT or client-authentication+jwt";
};

const checkNames: Check = ({ jwt, client }) =>
  jwt.claims["iss"] === client.id && jwt.claims["sub"] === client.id
    ? null
    : "iss and sub must both be the client id";

/** One string and the issuer: an assertion for several servers could be replayed by any of them. */
const checkAudience: Check = ({ jwt, issuer }) =>
  jwt.claims["aud"] === issuer ? null : `aud must be the issuer ${issuer}, as one string`;

const checkTimes: Check = ({ jwt, now }) => {
  const { exp, iat, nbf } = jwt.claims;
  if (typeof exp !== "number" || exp <= now) return "exp is missing or past";
  if (exp > now + lifetimeSecondsMax + leewaySeconds)
    return `exp is more than ${lifetimeSecondsMax} seconds ahead`;
  const isAhead = [iat, nbf].some(
    (time) => time !== undefined && !(typeof time === "number" && time <= now + leewaySeconds),
  );
  return isAhead ? "iat or nbf is no time, or lies in the future" : null;
};

const checks: readonly Check[] = [checkType, checkNames, checkAudience, checkTimes, checkJti];

/** Why a client is not believed. */
export interface Disproved {
  readonly fault: string;
  /** Whether it counts as a guess; not if there was no key to try, for instance. */
  readonly isGuess: boolean;
}

/** Judges an assertion of this client (RFC 7523 section 3, decisions section 2, Client types). Its `jti` is still to be spent. */
export async function checkAssertion(
  ctx: TokenContext,
  client: Client,
  { jwt, algorithm }: PresentedAssertion,
): Promise<{ oneTime: readonly OneTimeValue[] } | Disproved> {
  const asked = { jwt, client, issuer: ctx.config.baseUrl, now: ctx.clock.now() };
  for (const check of checks) {
    const fault = check(asked);
    if (fault !== null) return { fault: `client assertion: ${fault}`, isGuess: true };
  }
  const isSigned = await isSignedByClient(ctx, client, {
    kid: keyIdOf(jwt),
    isBy: (key) => isSignedBy(jwt, key, algorithm),
  });
  if (typeof isSigned === "string")
    return { fault: `client assertion: ${faults[isSigned]}`, isGuess: false };
  if (!isSigned)
    return {
      fault: "client assertion: no key of the client, or none with this kid, made the signature",
      isGuess: true,
    };
  const { exp, jti } = jwt.claims;
  const oneTime = {
    kind: "assertion",
    sha256: sha256(`${client.id} ${String(jti)}`),
    expiresAt: Math.ceil(Number(exp)) + 1,
  } as const;
  return { oneTime: [oneTime] };
}

const faults: Record<Untried, string> = {
  "cannot be fetched": "the keys at jwks_uri cannot be fetched",
  lately: "jwks_uri had no such key a moment ago, and is not asked again yet",
};

function keyIdOf(jwt: ForeignJwt): string | null {
  const { kid } = jwt.header;
  return typeof kid === "string" ? kid : null;
}
