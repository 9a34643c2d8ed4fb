import { type KeyObject, sign, verify } from "node:crypto";
import { bytesOfBase64url } from "@svc/protocol";

/** `typ` of access tokens (RFC 9068 section 2.1) and of id tokens: one can never pass for the other. */
export const accessTokenTyp = "at+jwt";
export const idTokenTyp = "JWT";

/** A key pair, and what a header says about it. */
export interface JwtKey {
  readonly kid: string;
  readonly algorithm: "RS256" | "ES256";
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
  /** Encoded headers by `typ`, filled as they are first used. */
  readonly headers: Map<string, string>;
}

/** The encoded header of a token; always the same text for one key and `typ`, so a token of ours is known by it. */
export function headerSegment(key: JwtKey, typ: string): string {
  const known = key.headers.get(typ);
  if (known !== undefined) return known;
  const made = encode({ alg: key.algorithm, typ, kid: key.kid });
  key.headers.set(typ, made);
  return made;
}

/** Signs a JWT in compact form (RFC 7519). `typ` is a literal of the code, never input. */
export function signJwt(key: JwtKey, typ: string, claims: object): string {
  const input = `${headerSegment(key, typ)}.${encode(claims)}`;
  const signature = sign("sha256", Buffer.from(input), key.privateKey);
  const bytes = key.algorithm === "ES256" ? joseSignature(signature) : signature;
  return `${input}.${bytes.toString("base64url")}`;
}

/** Whether the last segment of a token is this key's signature over the rest, in canonical base64url. */
export function isSignedWith(key: JwtKey, token: string): boolean {
  const at = token.lastIndexOf(".");
  const signature = bytesOfBase64url(token.slice(at + 1));
  if (signature === null) return false;
  const input = Buffer.from(token.slice(0, at));
  if (key.algorithm === "RS256") return verify("sha256", input, key.publicKey, signature);
  return verify("sha256", input, { key: key.publicKey, dsaEncoding: "ieee-p1363" }, signature);
}

function encode(value: object): string {
  return Buffer.from(JSON.stringify(value)).toString("base64url");
}

const scalarBytes = 32;

/**
 * Turns a DER signature on P-256 into the 64 bytes that JOSE wants (RFC 7518 section 3.4). Node signs twice as fast in
 * DER as in that form.
 */
function joseSignature(der: Buffer): Buffer {
  const rLength = der.readUInt8(3);
  const sLength = der.readUInt8(5 + rLength);
  const joined = Buffer.alloc(2 * scalarBytes);
  putScalar(joined.subarray(0, scalarBytes), der.subarray(4, 4 + rLength));
  putScalar(joined.subarray(scalarBytes), der.subarray(6 + rLength, 6 + rLength + sLength));
  return joined;
}

/** A DER integer may have one leading zero too many, or lack some. */
function putScalar(target: Buffer, integer: Buffer): void {
  const bytes = integer.subarray(Math.max(0, integer.length - scalarBytes));
  bytes.copy(target, scalarBytes - bytes.length);
}
