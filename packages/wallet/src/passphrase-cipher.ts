import { scrypt } from "#scrypt";
import { bytesOfText } from "@svc/protocol";
import { WalletRefusal } from "./refusal.ts";

// The name of the type differs between browsers' and Node's declarations.
export type CipherKey = Awaited<ReturnType<typeof crypto.subtle.importKey>>;

const passphraseLengthMin = 8;

/** @throws {WalletRefusal} invalid_input for fewer than 8 characters */
export function checkNewPassphrase(passphrase: string): void {
  if (passphrase.length < passphraseLengthMin)
    throw new WalletRefusal(
      "invalid_input",
      `a passphrase has at least ${passphraseLengthMin} characters`,
    );
}

/** The AES-256-GCM key of a passphrase: scrypt with N 2^17, r 8, p 1. */
export async function cipherOfPassphrase(passphrase: string, salt: Uint8Array): Promise<CipherKey> {
  return cipherOfKey(await scrypt(bytesOfText(passphrase.normalize("NFKC")), salt));
}

/** An AES-256-GCM key from 32 bytes. */
export async function cipherOfKey(key: Uint8Array): Promise<CipherKey> {
  return crypto.subtle.importKey("raw", ownBytes(key), "AES-GCM", false, ["encrypt", "decrypt"]);
}

/** WebCrypto does not accept bytes of shared memory, and the type says so. */
export function ownBytes(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return Uint8Array.from(bytes);
}
