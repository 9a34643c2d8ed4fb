// Replaces scrypt.ts when Node runs the wallet (`imports` of package.json): it takes half the time, and runs on a
// thread of its own.
import { scrypt as derive } from "node:crypto";
import { promisify } from "node:util";

const deriveKey = promisify<Uint8Array, Uint8Array, number, object, Uint8Array>(derive);
/** `maxmem`: N and r need 128 MiB, and Node's default is 32. */
const cost = { N: 2 ** 17, r: 8, p: 1, maxmem: 2 ** 28 } as const;

/** As `scrypt` of scrypt.ts. */
export async function scrypt(passphrase: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  return Uint8Array.from(await deriveKey(passphrase, salt, 32, cost));
}
