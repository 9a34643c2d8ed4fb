// Stands for `#scrypt` of the wallet in the processes of a test run, where the same vaults are opened again and again:
// a quarter of the CPU time of the wallet's tests.
import { scrypt as derive } from "../packages/wallet/src/scrypt-node.ts";

const keys = new Map<string, Promise<Uint8Array>>();

/** As `scrypt` of the wallet; the same passphrase with the same salt is computed once. */
export async function scrypt(passphrase: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  const id = [salt, passphrase].map((bytes) => Buffer.from(bytes).toString("hex")).join(" ");
  const key = keys.get(id) ?? derive(passphrase, salt);
  keys.set(id, key);
  return Uint8Array.from(await key);
}
