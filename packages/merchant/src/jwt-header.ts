import { bytesOfBase64url } from "@svc/protocol";
import { decodeProtectedHeader, type ProtectedHeaderParameters } from "jose";

/**
 * Decodes the header of a signed JWT without verifying anything; null if the text is no JWT. A signature that is not
 * canonical base64url is null too: jose ignores white space, padding and spare bits there, so that one token would have
 * many spellings (RFC 7515 section 5.2).
 */
export function parseHeader(jwt: string): ProtectedHeaderParameters | null {
  try {
    const signature = bytesOfBase64url(jwt.slice(jwt.lastIndexOf(".") + 1));
    return signature === null ? null : decodeProtectedHeader(jwt);
  } catch {
    return null;
  }
}
