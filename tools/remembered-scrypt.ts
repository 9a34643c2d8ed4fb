// Replaces `#scrypt` of the wallet in the processes of a test run: opening the same vaults again and again took a quarter
// of the CPU time of the wallet's tests.
import { createHash } from "node:crypto";
import { scrypt as derive } from "../packages/wallet/src/scrypt-node.ts";
import { remember } from "./remembered.ts";

/** As `scrypt` of the wallet; the same passphrase with the same salt is computed once. */
export async function scrypt(passphrase: Uint8Array, salt: Uint8Array): Promise<Uint8Array> {
  const id = createHash("sha256").update(salt).update(passphrase).digest("hex");
  return Uint8Array.from(await remember(`scrypt-${id}`, async () => derive(passphrase, salt)));
}
