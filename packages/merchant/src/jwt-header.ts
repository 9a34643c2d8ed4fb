import { bytesOfBase64url } from "@svc/protocol";
import { decodeProtectedHeader, type ProtectedHeaderParameters } from "jose";

/**
 * The header of a signed JWT, before anything of it is verified; null if it is none, or if its signature is spelled in
 * another way than its one. The verification that follows would skip white space, padding and spare bits there (RFC
 * 7515, section 5.2).
 */
export function parseHeader(jwt: string): ProtectedHeaderParameters | null {
  try {
    const signature = bytesOfBase64url(jwt.slice(jwt.lastIndexOf(".") + 1));
    return signature === null ? null : decodeProtectedHeader(jwt);
  } catch {
    return null;
  }
}
