import { type KeyObject, verify } from "node:crypto";
import { bytesOfBase64url, isRecord } from "@svc/protocol";
import { rsaBounds } from "../../accounts/index.ts";

/** Algorithms in which clients may sign assertions and proofs: asymmetric ones alone. */
export const foreignAlgorithms = ["ES256", "RS256"] as const;

export type ForeignAlgorithm = (typeof foreignAlgorithms)[number];

/** A JWT of somebody else, parsed; nothing in it is proved before {@link isSignedBy}. */
export interface ForeignJwt {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  readonly signingInput: string;
  readonly signature: Uint8Array;
}

const jwtLengthMax = 8192;
const jtiLengthMax = 256;

/** Reads the compact form (RFC 7515 section 3.1); null for anything else. */
export function parseForeignJwt(text: string): ForeignJwt | null {
  if (text.length > jwtLengthMax || !/^[\w-]+\.[\w-]+\.[\w-]+$/.test(text)) return null;
  const [headerText = "", claimsText = "", signatureText = ""] = text.split(".");
  const header = parseSegment(headerText);
  const claims = parseSegment(claimsText);
  const signature = bytesOfBase64url(signatureText);
  if (header === null || claims === null || signature === null) return null;
  // We understand no critical extension, so a JWT with one must be rejected (RFC 7515 section 4.1.11).
  if (header["crit"] !== undefined || header["b64"] !== undefined) return null;
  return { header, claims, signingInput: `${headerText}.${claimsText}`, signature };
}

export function isForeignAlgorithm(value: unknown): value is ForeignAlgorithm {
  return foreignAlgorithms.some((algorithm) => algorithm === value);
}

/** What is wrong with the id by which a JWT is spent, or null. */
export function checkJti({ jwt }: { readonly jwt: ForeignJwt }): string | null {
  const { jti } = jwt.claims;
  const isUsable = typeof jti === "string" && jti !== "" && jti.length <= jtiLengthMax;
  return isUsable ? null : "jti is missing or too long";
}

/** Whether a key is of the kind and size that its algorithm demands. */
function fits(key: KeyObject, algorithm: ForeignAlgorithm): boolean {
  const { modulusLength = 0, publicExponent = 0n, namedCurve } = key.asymmetricKeyDetails ?? {};
  if (algorithm === "ES256") return key.asymmetricKeyType === "ec" && namedCurve === "prime256v1";
  return (
    key.asymmetricKeyType === "rsa" &&
    modulusLength >= rsaBounds.modulusBitsMin &&
    modulusLength <= rsaBounds.modulusBitsMax &&
    publicExponent >= rsaBounds.exponentMin &&
    publicExponent <= rsaBounds.exponentMax
  );
}

/** Whether this key made the signature, in the algorithm that the caller has allowed. */
export function isSignedBy(jwt: ForeignJwt, key: KeyObject, algorithm: ForeignAlgorithm): boolean {
  if (!fits(key, algorithm)) return false;
  const input = Buffer.from(jwt.signingInput);
  if (algorithm === "RS256") return verify("sha256", input, key, jwt.signature);
  return verify("sha256", input, { key, dsaEncoding: "ieee-p1363" }, jwt.signature);
}

function parseSegment(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(Buffer.from(text, "base64url").toString("utf8"));
    return isRecord(value) ? value : null;
  } catch {
    return null;
  }
}
