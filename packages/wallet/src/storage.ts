import { sha256 } from "@noble/hashes/sha2";
import { bytesOfText, hexOfBytes } from "@svc/protocol";
import { WalletRefusal } from "./refusal.ts";

/** The folder that a key begins with: one for each kind of state. */
export type StorageFolder =
  | "broker"
  | "chain"
  | "claim"
  | "credential"
  | "founding"
  | "history"
  | "identity"
  | "keys"
  | "shown"
  | "transaction"
  | "vote";
/** `<folder>/<name>`; the name is 1 to 64 of `a-z 0-9 _ -`. */
export type StorageKey = `${StorageFolder}/${string}`;

/**
 * Where a wallet keeps its state. Each value is a small separate text, so that two wallets over one storage never
 * overwrite each other's values: nothing is read, changed and written back.
 */
export interface WalletStorage {
  get(key: StorageKey): Promise<string | null>;
  /**
   * Replaces the value atomically: a reader sees either the old or the new one.
   *
   * @param before only this value is replaced
   * @throws {WalletRefusal} invalid_input if another one is stored
   */
  put(key: StorageKey, text: string, before?: string): Promise<void>;
  /** Writes the value only if there is none. @returns what is stored afterwards: this text, or the earlier one */
  add(key: StorageKey, text: string): Promise<string>;
  /** It is not an error if there is none. */
  remove(key: StorageKey): Promise<void>;
  list(folder: StorageFolder): Promise<readonly StorageKey[]>;
  /** Called for a value that a list leaves out because it cannot be read. */
  tellDamaged?(key: StorageKey): void;
}

/** The key for a value that is looked up by arbitrary texts: their hash. */
export function hashedKey(folder: StorageFolder, ...parts: readonly string[]): StorageKey {
  const hash = hexOfBytes(sha256(bytesOfText(JSON.stringify(parts))));
  return `${folder}/${hash.slice(2, 42)}`;
}

/** The error if another value is stored than the one that was to be replaced. */
export function changedMeanwhile(key: StorageKey): WalletRefusal {
  return new WalletRefusal("invalid_input", `${key} was changed meanwhile: nothing was written`);
}

/** A storage that lasts as long as the program. */
export function memoryStorage(): WalletStorage {
  const values = new Map<StorageKey, string>();
  return {
    get: async (key) => values.get(key) ?? null,
    async put(key, text, before) {
      if (before !== undefined && values.get(key) !== before) throw changedMeanwhile(key);
      values.set(key, text);
    },
    async add(key, text) {
      const present = values.get(key);
      if (present === undefined) values.set(key, text);
      return present ?? text;
    },
    remove: async (key) => void values.delete(key),
    list: async (folder) => [...values.keys()].filter((key) => key.startsWith(`${folder}/`)),
  };
}
