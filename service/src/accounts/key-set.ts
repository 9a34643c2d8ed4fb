import { createPublicKey, type KeyObject } from "node:crypto";
import { isRecord } from "@svc/protocol";
import { invalidRequest } from "../platform/http/problems.ts";

/** A public key of a client, reduced to the members that matter (RFC 7517). */
export interface ClientJwk {
  readonly kty: "RSA" | "EC";
  readonly kid?: string;
  readonly alg: "RS256" | "ES256";
  readonly n?: string;
  readonly e?: string;
  readonly crv?: "P-256";
  readonly x?: string;
  readonly y?: string;
}

export interface ClientKeySet {
  readonly keys: readonly ClientJwk[];
}

const keysMax = 10;
const kidLengthMax = 100;
/**
 * The RSA keys that clients may sign with. The upper bounds are for speed: under an exponent as long as the modulus a
 * signature takes a hundred times as long to verify.
 */
export const rsaBounds = {
  modulusBitsMin: 2048,
  modulusBitsMax: 8192,
  exponentMin: 3n,
  exponentMax: 0xffff_ffffn,
} as const;
const privateMembers = ["d", "p", "q", "dp", "dq", "qi", "oth", "k"];

/** Whether a JWK holds what only its owner may know, so that its key is not secret any more (RFC 7518 section 6). */
export function isPrivateJwk(jwk: object): boolean {
  return privateMembers.some((member) => Object.hasOwn(jwk, member));
}

/**
 * Reads the key set of a `private_key_jwt` client: 1 to 10 public keys, RSA of 2048 bits or more for RS256, P-256 for
 * ES256. Private members are refused, not dropped: the owner must learn that the private key has been disclosed.
 *
 * @throws {Problem} invalid_request naming the key
 */
export function parseKeySet(value: unknown): ClientKeySet {
  const keys = isRecord(value) ? value["keys"] : undefined;
  if (!Array.isArray(keys) || keys.length === 0 || keys.length > keysMax) {
    throw invalidRequest(`jwks must be { "keys": [..] } with 1 to ${keysMax} keys`);
  }
  const parsed = keys.map((key: unknown, index) => parseKey(key, `jwks.keys[${index}]`));
  const kids = parsed.map((key) => key.kid);
  if (new Set(kids).size !== kids.length)
    throw invalidRequest("jwks holds two keys without different kid");
  return { keys: parsed };
}

function parseKey(value: unknown, name: string): ClientJwk {
  if (!isRecord(value)) throw invalidRequest(`${name} is not an object`);
  if (isPrivateJwk(value))
    throw invalidRequest(`${name} holds private members; register the public key alone`);
  const { kid, use } = value;
  if (use !== undefined && use !== "sig") throw invalidRequest(`${name} is not for signatures`);
  if (kid !== undefined && (typeof kid !== "string" || kid === "" || kid.length > kidLengthMax))
    throw invalidRequest(`${name} has an unusable kid`);
  const alg = value["kty"] === "RSA" ? "RS256" : "ES256";
  if (value["alg"] !== undefined && value["alg"] !== alg)
    throw invalidRequest(`${name} must have the alg RS256 (RSA) or ES256 (P-256)`);
  const named = typeof kid === "string" ? { kid } : {};
  if (value["kty"] === "RSA") return { kty: "RSA", ...named, alg, ...parseRsa(value, name) };
  if (value["kty"] === "EC" && value["crv"] === "P-256")
    return { kty: "EC", ...named, alg, crv: "P-256", ...parsePoint(value, name) };
  throw invalidRequest(`${name} must be RSA or EC P-256`);
}

function parseRsa(value: Record<string, unknown>, name: string): { n: string; e: string } {
  const [n, e] = [memberOf(value, "n", name), memberOf(value, "e", name)];
  const key = importKey({ kty: "RSA", n, e }, name);
  const { modulusLength = 0, publicExponent = 0n } = key.asymmetricKeyDetails ?? {};
  const { modulusBitsMin, modulusBitsMax, exponentMin, exponentMax } = rsaBounds;
  if (modulusLength < modulusBitsMin || modulusLength > modulusBitsMax)
    throw invalidRequest(`${name} must have ${modulusBitsMin} to ${modulusBitsMax} bits`);
  // An exponent of 1 makes every text its own signature.
  if (publicExponent < exponentMin || publicExponent > exponentMax || publicExponent % 2n === 0n)
    throw invalidRequest(`${name} has an unusable exponent`);
  return { n, e };
}

function parsePoint(value: Record<string, unknown>, name: string): { x: string; y: string } {
  const [x, y] = [memberOf(value, "x", name), memberOf(value, "y", name)];
  importKey({ kty: "EC", crv: "P-256", x, y }, name);
  return { x, y };
}

function memberOf(value: Record<string, unknown>, member: string, name: string): string {
  const text = value[member];
  if (typeof text !== "string" || !/^[A-Za-z0-9_-]{2,2000}$/.test(text))
    throw invalidRequest(`${name}.${member} is not base64url`);
  return text;
}

function importKey(key: Record<string, string>, name: string): KeyObject {
  try {
    return createPublicKey({ key, format: "jwk" });
  } catch {
    throw invalidRequest(`${name} is not a valid public key`);
  }
}
