import { sha256 } from "@noble/hashes/sha2";

import { base64urlOfBytes, bytesOfBase64url } from "./encoding.ts";

/** The three parts of the session string of a login's QR code (decisions, section 2, the QR page, rule 2). */
export interface LoginSession {
  /** 16 random bytes as base64url: 22 characters. */
  loginId: string;
  /** The 4-second interval since 1970 that the code was shown in, or 0 for a single code that does not rotate. */
  step: number;
  /** HMAC-SHA256 over the step, truncated to 16 bytes, as base64url: 22 characters. */
  mac: string;
}

// 16 bytes leave four spare bits in the last character, so only four characters can end the text.
const sixteenBytes = "[A-Za-z0-9_-]{21}[AQgw]";
const loginIdPattern = new RegExp(`^${sixteenBytes}$`);
const sessionPattern = new RegExp(`^(${sixteenBytes})\\.(0|[1-9][0-9]{0,11})\\.(${sixteenBytes})$`);

/** Whether a text is spelled as a login id; the `sess` of a same-device link is one alone. */
export function isLoginId(text: string): boolean {
  return loginIdPattern.test(text);
}

/** Reads `<loginId>.<step>.<mac>`; null for any other spelling. The mac is the service's to verify. */
export function parseLoginSession(text: string): LoginSession | null {
  const [, loginId, step, mac] = sessionPattern.exec(text) ?? [];
  if (loginId === undefined || step === undefined || mac === undefined) return null;
  return { loginId, step: Number(step), mac };
}

/** Writes what `parseLoginSession` reads. */
export function buildLoginSession(session: LoginSession): string {
  return `${session.loginId}.${session.step}.${session.mac}`;
}

/** Whether a text is a claim or its secret: base64url of exactly 32 bytes. */
export function isClaim(text: string): boolean {
  return /^[A-Za-z0-9_-]{42}[AEIMQUYcgkosw048]$/.test(text);
}

/**
 * The claim that a wallet posts for the secret it keeps: base64url of SHA-256 of the secret's 32 bytes
 * (decisions, section 2, the QR page, rule 3).
 *
 * @param secret base64url of 32 random bytes, 43 characters
 * @throws {TypeError} for a secret of another form; `isClaim` tells beforehand
 */
export function claimOf(secret: string): string {
  const bytes = isClaim(secret) ? bytesOfBase64url(secret) : null;
  if (bytes === null) throw new TypeError("a claim secret is base64url of 32 bytes");
  return base64urlOfBytes(sha256(bytes));
}
