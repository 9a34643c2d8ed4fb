import { createPublicKey, type KeyObject } from "node:crypto";
import { isPrivateJwk } from "../../accounts/index.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import {
  checkJti,
  type ForeignAlgorithm,
  type ForeignJwt,
  isForeignAlgorithm,
  isSignedBy,
  parseForeignJwt,
} from "../client/foreign-jwt.ts";
import type { OneTimeValue } from "./used-once-store.ts";

/** A proof of possession that is valid for this call (RFC 9449 section 4.3), once its `jti` is spent. */
export interface DpopProof {
  /** Thumbprint of its key (RFC 7638). */
  readonly jkt: string;
  readonly oneTime: OneTimeValue;
}

/** The call that a proof must be for. */
export interface ProvedCall {
  readonly method: string;
  /** Without query and fragment, as the issuer publishes it. */
  readonly url: string;
  readonly now: number;
  /** At a resource: the token that the proof must name by its hash. */
  readonly accessToken?: string;
}

/** How far `iat` may lie from our clock, either way. */
const windowSeconds = 60;

interface Proof {
  readonly jwt: ForeignJwt;
  readonly algorithm: ForeignAlgorithm;
  readonly key: KeyObject;
}

type Check = (proof: Proof, call: ProvedCall) => string | null;

const checkSignature: Check = ({ jwt, key, algorithm }) =>
  isSignedBy(jwt, key, algorithm) ? null : "its signature is wrong";

const checkMethod: Check = ({ jwt }, call) =>
  jwt.claims["htm"] === call.method ? null : "htm is not the method of this call";

/** Everything but query and fragment is compared, a user name included. */
const checkUrl: Check = ({ jwt }, call) => {
  const htu = jwt.claims["htu"];
  const url = typeof htu === "string" ? URL.parse(htu) : null;
  if (url !== null) Object.assign(url, { search: "", hash: "" });
  return url?.href === call.url ? null : "htu is not the address of this call";
};

const checkTime: Check = ({ jwt }, call) => {
  const iat = jwt.claims["iat"];
  const isNow = typeof iat === "number" && Math.abs(call.now - iat) <= windowSeconds;
  return isNow ? null : `iat is not within ${windowSeconds} seconds of now`;
};

/** A client may narrow the window, as in any JWT (RFC 7519 sections 4.1.4 and 4.1.5); `nbf` has the slack of `iat`. */
const checkLife: Check = ({ jwt }, call) => {
  const { exp, nbf } = jwt.claims;
  if (exp !== undefined && !(typeof exp === "number" && exp > call.now)) return "exp is past";
  const hasBegun =
    nbf === undefined || (typeof nbf === "number" && nbf <= call.now + windowSeconds);
  return hasBegun ? null : "nbf lies in the future";
};

const checkTokenHash: Check = ({ jwt }, call) => {
  if (call.accessToken === undefined) return null;
  const expected = sha256(call.accessToken).toString("base64url");
  const ath = jwt.claims["ath"];
  const isSame = typeof ath === "string" && equalBytes(Buffer.from(ath), Buffer.from(expected));
  return isSame ? null : "ath is not the hash of the access token";
};

/** Cheap checks first, the signature before anything is believed. */
const checks: readonly Check[] = [
  checkMethod,
  checkUrl,
  checkTime,
  checkLife,
  checkJti,
  checkTokenHash,
  checkSignature,
];

/**
 * Checks the value of a `DPoP` header.
 *
 * @throws {OAuthProblem} invalid_dpop_proof
 */
export function checkDpopProof(header: string, call: ProvedCall): DpopProof {
  const proof = parseProof(header);
  for (const check of checks) {
    const fault = check(proof, call);
    if (fault !== null) refuse(fault);
  }
  const jkt = thumbprintOf(proof.key);
  const { iat, jti } = proof.jwt.claims;
  const oneTime = {
    kind: "dpop",
    sha256: sha256(`${jkt} ${String(jti)}`),
    expiresAt: Math.ceil(Number(iat) + windowSeconds + 1),
  } as const;
  return { jkt, oneTime };
}

/** The proof was good but has been seen before. */
export function refuseReplayedProof(): never {
  refuse("it was used before");
}

function refuse(fault: string): never {
  throw new OAuthProblem("invalid_dpop_proof", `the DPoP proof does not hold: ${fault}`);
}

function parseProof(header: string): Proof {
  const jwt = parseForeignJwt(header);
  if (jwt === null) return refuse("it is not one JWT");
  if (jwt.header["typ"] !== "dpop+jwt") refuse("typ must be dpop+jwt");
  const algorithm = jwt.header["alg"];
  if (!isForeignAlgorithm(algorithm)) return refuse("alg must be ES256 or RS256");
  return { jwt, algorithm, key: parseJwk(jwt.header["jwk"]) };
}

function parseJwk(value: unknown): KeyObject {
  if (typeof value !== "object" || value === null) return refuse("jwk is missing");
  if (isPrivateJwk(value)) refuse("jwk holds a private key; it is not secret any more");
  try {
    return createPublicKey({ key: value as Record<string, unknown>, format: "jwk" });
  } catch {
    return refuse("jwk is not a public key");
  }
}

/** RFC 7638 section 3, over the key as Node spells it, so that one key has one thumbprint. */
function thumbprintOf(key: KeyObject): string {
  const jwk = key.export({ format: "jwk" });
  const members =
    jwk.kty === "EC"
      ? { crv: jwk.crv, kty: jwk.kty, x: jwk.x, y: jwk.y }
      : { e: jwk.e, kty: jwk.kty, n: jwk.n };
  return sha256(JSON.stringify(members)).toString("base64url");
}
