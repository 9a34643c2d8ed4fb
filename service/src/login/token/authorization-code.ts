import type { Random } from "../../platform/context.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";

/** A code names its login, and is found by its primary key: an index on codes would cost every change a write. */
export interface AuthorizationCode {
  readonly text: string;
  readonly loginId: string;
  readonly sha256: Buffer;
}

const secretBytes = 32;

export function makeCode(random: Random, loginId: string): AuthorizationCode {
  return codeOf(`${loginId}.${random.bytes(secretBytes).toString("base64url")}`);
}

/** Reads any text; one that is no code of ours names a login that does not exist. */
export function codeOf(text: string): AuthorizationCode {
  const [loginId = ""] = text.split(".", 1);
  return { text, loginId, sha256: sha256(text) };
}
