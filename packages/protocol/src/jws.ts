import { p256 } from "@noble/curves/nist";
import { sha256 } from "@noble/hashes/sha2";

import { bytesOfBase64url, bytesOfText, isRecord, textOfBytes } from "./encoding.ts";

/** A P-256 public key as JWK (RFC 7517); other members are ignored. */
export interface EcPublicJwk {
  kty: string;
  crv: string;
  /** base64url of 32 bytes. */
  x: string;
  /** base64url of 32 bytes. */
  y: string;
  kid?: string;
}

/** A verified JWS. */
export interface Jws {
  header: Readonly<Record<string, unknown>> & { alg: "ES256"; typ: string; kid?: string };
  payload: Readonly<Record<string, unknown>>;
}

/** Thrown for a token that is not genuine; the message never holds any of it. */
export class JwsFault extends Error {
  override name = "JwsFault";
}

const compactLengthMax = 65_536;

/**
 * Verifies a compact JWS (RFC 7515) and returns its content. `alg` is ES256 and nothing else, `typ` is present, `crit`,
 * `b64` and keys inside the header are refused, every part has its one base64url spelling, the payload is a JSON
 * object.
 *
 * @param keys one key, or a key set from which `kid` picks; without `kid` the set must hold one P-256 key
 * @param options.typ the media type that `typ` must name (RFC 8725, section 3.11), compared exactly
 * @throws {JwsFault}
 */
export function verifyEs256Jws(
  compact: string,
  keys: EcPublicJwk | { readonly keys: readonly EcPublicJwk[] },
  options: { typ?: string } = {},
): Jws {
  if (compact.length > compactLengthMax) throw new JwsFault("the token is too long");
  const [head = "", body = "", tail = "", ...rest] = compact.split(".");
  if (rest.length > 0 || tail === "") throw new JwsFault("the token does not have three parts");
  const header = readHeader(head);
  if (options.typ !== undefined && header.typ !== options.typ) {
    throw new JwsFault(`the token is not a ${options.typ}`);
  }
  const publicKey = pointOf("keys" in keys ? pick(keys.keys, header.kid) : keys);
  const signature = bytesOfBase64url(tail);
  if (signature?.length !== 64) throw new JwsFault("the signature is not 64 bytes");
  const digest = sha256(bytesOfText(`${head}.${body}`));
  // JWS knows no low-s rule (RFC 7518, section 3.4). Without a format, 64 bytes in DER would be a second spelling.
  const format = { format: "compact", lowS: false, prehash: false } as const;
  if (!p256.verify(signature, digest, publicKey, format))
    throw new JwsFault("the signature does not match");
  return { header, payload: readObject(body, "payload") };
}

function readHeader(head: string): Jws["header"] {
  const header = readObject(head, "header");
  const { alg, typ, kid } = header;
  if (alg !== "ES256") throw new JwsFault("the token is not signed with ES256");
  if (typeof typ !== "string" || typ === "") throw new JwsFault("the token does not name its typ");
  if (kid !== undefined && typeof kid !== "string") throw new JwsFault("the kid is not a text");
  const forbidden = ["crit", "b64", "jwk", "jku", "x5c", "x5u"].find((name) =>
    Object.hasOwn(header, name),
  );
  if (forbidden !== undefined) throw new JwsFault(`the header must not hold ${forbidden}`);
  return { ...header, alg, typ, ...(kid === undefined ? {} : { kid }) };
}

function readObject(part: string, what: string): Record<string, unknown> {
  const bytes = bytesOfBase64url(part);
  const text = bytes === null ? null : textOfBytes(bytes);
  if (text === null) throw new JwsFault(`the ${what} is not base64url of UTF-8`);
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    throw new JwsFault(`the ${what} is not JSON`);
  }
  if (!isRecord(value)) throw new JwsFault(`the ${what} is not a JSON object`);
  return value;
}

function pick(keys: readonly EcPublicJwk[], kid: string | undefined): EcPublicJwk {
  // A fetched key set may hold anything that its host wrote.
  const fitting = keys
    .filter(isRecord)
    .filter(
      (key) => key.kty === "EC" && key.crv === "P-256" && (kid === undefined || key.kid === kid),
    );
  const [key, second] = fitting;
  if (key === undefined || second !== undefined) throw new JwsFault("no one key fits the token");
  return key;
}

/** The key as an uncompressed point; `verify` checks that it lies on the curve. */
function pointOf(jwk: EcPublicJwk): Uint8Array {
  const x = typeof jwk.x === "string" ? bytesOfBase64url(jwk.x) : null;
  const y = typeof jwk.y === "string" ? bytesOfBase64url(jwk.y) : null;
  if (jwk.kty !== "EC" || jwk.crv !== "P-256" || x?.length !== 32 || y?.length !== 32) {
    throw new JwsFault("the key is not a P-256 key");
  }
  return Uint8Array.of(4, ...x, ...y);
}
