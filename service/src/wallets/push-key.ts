import { createECDH } from "node:crypto";
import type { Ctx } from "../platform/context.ts";

/** The key by which push services identify us (RFC 8292): P-256, both parts in base64url. */
export interface PushKey {
  /** 65 bytes, with which a browser subscribes. */
  readonly publicKey: string;
  readonly privateKey: string;
}

const triesMax = 8;

/**
 * The key pair of this installation, the same in every process: derived from an installation key, which is stored
 * sealed. A subscription is bound to it, so it never changes.
 */
export function pushKeyOf({ keys }: Pick<Ctx, "keys">): PushKey {
  for (let tries = 0; tries < triesMax; tries += 1) {
    const privateKey = keys.mac("push", `vapid-${tries}`);
    const ecdh = createECDH("prime256v1");
    try {
      ecdh.setPrivateKey(privateKey);
    } catch {
      // One of 2^32 numbers of this size is not a private key.
      continue;
    }
    return {
      publicKey: ecdh.getPublicKey("base64url"),
      privateKey: privateKey.toString("base64url"),
    };
  }
  throw new Error("the installation key makes no key for push services");
}
