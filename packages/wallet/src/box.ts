import { base64urlOfBytes, bytesOfBase64url, bytesOfText, textOfBytes } from "@svc/protocol";
import { ownBytes, type CipherKey } from "./passphrase-cipher.ts";

const nonceLength = 12;

/** What a text is sealed with; `about` is authenticated, so that a text of one kind is never accepted as another. */
export interface BoxKey {
  readonly cipher: CipherKey;
  readonly about: string;
}

/** Seals a text by AES-256-GCM. @returns base64url of nonce, ciphertext and tag */
export async function sealText(
  text: string,
  { cipher, about }: BoxKey,
  random: (length: number) => Uint8Array,
): Promise<string> {
  const nonce = random(nonceLength);
  const options = algorithmOf(nonce, about);
  const sealed = await crypto.subtle.encrypt(options, cipher, ownBytes(bytesOfText(text)));
  const box = new Uint8Array(nonceLength + sealed.byteLength);
  box.set(nonce);
  box.set(new Uint8Array(sealed), nonceLength);
  return base64urlOfBytes(box);
}

/** Null if the text was not sealed with this key and this `about`. */
export async function openText(box: string, { cipher, about }: BoxKey): Promise<string | null> {
  const bytes = bytesOfBase64url(box);
  if (bytes === null || bytes.length <= nonceLength) return null;
  const options = algorithmOf(bytes.subarray(0, nonceLength), about);
  try {
    const sealed = ownBytes(bytes.subarray(nonceLength));
    return textOfBytes(new Uint8Array(await crypto.subtle.decrypt(options, cipher, sealed)));
  } catch {
    return null;
  }
}

function algorithmOf(
  nonce: Uint8Array,
  about: string,
): { name: string; iv: Uint8Array<ArrayBuffer>; additionalData: Uint8Array<ArrayBuffer> } {
  const additionalData = ownBytes(bytesOfText(about));
  return { name: "AES-GCM", iv: ownBytes(nonce), additionalData };
}
