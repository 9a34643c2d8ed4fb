import { scryptAsync } from "@noble/hashes/scrypt";

/** 128 MiB and about half a second, which an attacker who tries passphrases has to spend on each. */
const cost = { N: 2 ** 17, r: 8, p: 1, dkLen: 32 } as const;

/** scrypt with N 2^17, r 8, p 1: the 32 bytes of a key. */
export async function scrypt(passphrase: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  return scryptAsync(passphrase, salt, cost);
}
