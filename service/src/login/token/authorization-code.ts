import type { Random } from "../../platform/context.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";

/** A code names its login, so that it is found by the row's own key and needs no index that every change would write. */
export interface AuthorizationCode {
  readonly text: string;
  readonly loginId: string;
  readonly sha256: Buffer;
}

const secretBytes = 32;

export function makeCode(random: Random, loginId: string): AuthorizationCode {
  return codeOf(`${loginId}.${random.bytes(secretBytes).toString("base64url")}`);
}

/** Any text; one that is no code of ours names a login that is not there. */
export function codeOf(text: string): AuthorizationCode {
  const [loginId = ""] = text.split(".", 1);
  return { text, loginId, sha256: sha256(text) };
}
