import { hkdf } from "@noble/hashes/hkdf";
import { sha256 } from "@noble/hashes/sha2";
import { HDKey } from "@scure/bip32";
import { generateMnemonic, mnemonicToSeed, validateMnemonic } from "@scure/bip39";
import { wordlist } from "@scure/bip39/wordlists/english";
import {
  addressOfPrivateKey,
  bytesOfHex,
  bytesOfText,
  isHexOf,
  signDigest,
  type Address,
  type Hex,
} from "@svc/protocol";
import { WalletRefusal } from "./refusal.ts";

/** An account that can sign. Asynchronous, so that the key may be stored where the wallet cannot read it. */
export interface Identity {
  readonly address: Address;
  /** @param digest 32 bytes @returns 65 bytes, low s */
  sign(digest: Uint8Array): Promise<Hex>;
  /** 32 bytes that only this identity can derive, the same each time, with which the wallet seals its records. */
  deriveKey(purpose: "records"): Promise<Uint8Array>;
}

/** The secret that an identity is made from, and that a vault stores. */
export type IdentitySecret =
  | { readonly kind: "private-key"; readonly privateKey: Hex }
  | {
      readonly kind: "mnemonic";
      /** 12 to 24 English words of BIP-39. */
      readonly mnemonic: string;
      /** Which account: the last number of `m/44'/60'/0'/0/i`. */
      readonly index: number;
    };

const indexMax = 0x7fffffff;

/**
 * Makes the identity of a secret: a private key as it is, or account `m/44'/60'/0'/0/<index>` of a mnemonic
 * without a BIP-39 password, as other Ethereum wallets do.
 *
 * @throws {WalletRefusal} invalid_input, never quoting the secret
 */
export async function openIdentity(secret: IdentitySecret): Promise<Identity> {
  const privateKey = await privateKeyOf(secret);
  try {
    const address = addressOfPrivateKey(privateKey);
    return {
      address,
      sign: async (digest) => signDigest(digest, privateKey),
      deriveKey: async (purpose) =>
        hkdf(sha256, privateKey, undefined, bytesOfText(`svc-wallet-${purpose}-v1`), 32),
    };
  } catch {
    throw new WalletRefusal("invalid_input", "the private key is not one of secp256k1");
  }
}

/** 12 new words: 128 random bits. */
export function newMnemonic(): string {
  return generateMnemonic(wordlist, 128);
}

async function privateKeyOf(secret: IdentitySecret): Promise<Uint8Array> {
  if (secret.kind === "private-key") {
    const bytes = isHexOf(secret.privateKey, 32) ? bytesOfHex(secret.privateKey) : null;
    if (bytes === null)
      throw new WalletRefusal("invalid_input", "a private key must be 0x and 64 hex digits");
    return bytes;
  }
  const { index } = secret;
  const mnemonic = secret.mnemonic.normalize("NFKD").trim().split(/\s+/).join(" ").toLowerCase();
  if (!validateMnemonic(mnemonic, wordlist))
    throw new WalletRefusal("invalid_input", "the words are not a BIP-39 mnemonic");
  if (!Number.isInteger(index) || index < 0 || index > indexMax)
    throw new WalletRefusal("invalid_input", `the index must be a whole number up to ${indexMax}`);
  const seed = await mnemonicToSeed(mnemonic);
  const { privateKey } = HDKey.fromMasterSeed(seed).derive(`m/44'/60'/0'/0/${index}`);
  if (privateKey === null) throw new WalletRefusal("invalid_input", "the account has no key");
  return privateKey;
}
