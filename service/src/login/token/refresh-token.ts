import type { KeyObject } from "node:crypto";
import { equalBytes, mac } from "../../platform/cryptography/mac.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import { bytesOfUuid, uuidOfBytes } from "../../platform/ids.ts";

/** A genuine refresh token: its mac shows that this installation made it, whatever has become of it since. */
export interface RefreshToken {
  readonly text: string;
  readonly familyId: string;
  readonly generation: number;
  /** Stored in place of the token. */
  readonly sha256: Buffer;
}

const secretBytes = 32;
const macBytes = 16;
const pattern = /^([\w-]{22})\.(0|[1-9]\d{0,8})\.([\w-]{43})\.([\w-]{22})$/;

/**
 * Makes the refresh token of a generation: `<family>.<generation>.<256 random bits>.<mac>`. The mac proves that a token
 * of an older generation is genuine, so nobody can have a family revoked for reuse with a made-up token.
 */
export function makeRefreshToken(
  key: KeyObject,
  family: { readonly id: string; readonly generation: number },
  random: { bytes(length: number): Buffer },
): RefreshToken {
  const secret = random.bytes(secretBytes).toString("base64url");
  const body = `${bytesOfUuid(family.id).toString("base64url")}.${family.generation}.${secret}`;
  const text = `${body}.${macOf(key, body).toString("base64url")}`;
  return { text, familyId: family.id, generation: family.generation, sha256: sha256(text) };
}

/** Reads a refresh token; null unless this installation made it. Asks no database. */
export function parseRefreshToken(key: KeyObject, text: string): RefreshToken | null {
  const [, family, generation, secret, given] = pattern.exec(text) ?? [];
  if (family === undefined || given === undefined) return null;
  const expected = macOf(key, `${family}.${generation}.${secret}`).toString("base64url");
  if (!equalBytes(Buffer.from(expected), Buffer.from(given))) return null;
  const familyId = uuidOfBytes(Buffer.from(family, "base64url"));
  return { text, familyId, generation: Number(generation), sha256: sha256(text) };
}

function macOf(key: KeyObject, body: string): Buffer {
  return mac(key, body).subarray(0, macBytes);
}
