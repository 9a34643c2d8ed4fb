import {
  base64urlOfBytes,
  bytesOfBase64url,
  canonicalJson,
  isRecord,
  parseAddress,
  type Address,
  type Hex,
} from "@svc/protocol";
import { openText, sealText } from "./box.ts";
import { openIdentity, type Identity, type IdentitySecret } from "./identity.ts";
import { WalletRefusal } from "./refusal.ts";
import { checkNewPassphrase, cipherOfPassphrase } from "./passphrase-cipher.ts";
import { changedMeanwhile, type StorageKey, type WalletStorage } from "./storage.ts";

/**
 * The vault: one sealed text for each named identity, so that two programs can add identities at the same time. The key
 * is scrypt of the passphrase with a salt of its own (N 2^17, r 8, p 1: 128 MiB), the cipher AES-256-GCM; name and
 * address are readable, and part of what is authenticated. The version fixes every parameter: a changed file cannot ask
 * for a weaker one.
 */
interface SealedIdentity {
  readonly version: 1;
  readonly name: string;
  readonly address: Address;
  /** base64url of 16 bytes. */
  readonly salt: string;
  /** base64url of 12 bytes; with `sealed` behind it, what `sealText` writes. */
  readonly nonce: string;
  /** base64url of ciphertext and tag. */
  readonly sealed: string;
}

/** The characters of a nonce: 12 bytes fill them, so that what follows is base64url too. */
const nonceLength = 16;

export interface VaultEntry {
  readonly name: string;
  readonly address: Address;
}

/** What sealing needs from outside. */
export interface VaultContext {
  readonly storage: WalletStorage;
  readonly random: (length: number) => Uint8Array;
}

/**
 * Seals an identity under a name.
 *
 * @param given.mends replaces a file of this name that was cut off or emptied, unless it was that of another identity
 * @throws {WalletRefusal} invalid_input for a secret, name or passphrase (at least 8 characters) of the wrong form, and
 * if the name is taken
 */
export async function sealIdentity(
  { storage, random }: VaultContext,
  given: { name: string; secret: IdentitySecret; passphrase: string; mends?: true },
): Promise<VaultEntry> {
  const { name, secret, passphrase, mends } = given;
  const key = keyOf(name);
  checkNewPassphrase(passphrase);
  const taken = new WalletRefusal("invalid_input", `the vault holds an identity ${name} already`);
  const present = await storage.get(key);
  const isMended = present !== null && mends === true;
  if (present !== null && !isMended) throw taken;
  const { address } = await openIdentity(secret);
  if (isMended && !isRuinOf(present, address)) throw taken;
  const text = await sealedText(random, { name, address, secret, passphrase });
  if (isMended) await storage.put(key, text, present);
  else if ((await storage.add(key, text)) !== text) throw taken;
  return { name, address };
}

/** The file of an identity, sealed with a salt and nonce of its own. */
async function sealedText(
  random: VaultContext["random"],
  given: VaultEntry & { secret: IdentitySecret; passphrase: string },
): Promise<string> {
  const { name, address, secret, passphrase } = given;
  const salt = random(16);
  const cipher = await cipherOfPassphrase(passphrase, salt);
  const box = await sealText(JSON.stringify(secret), { cipher, about: aboutOf(given) }, random);
  const file: SealedIdentity = {
    version: 1,
    name,
    address,
    salt: base64urlOfBytes(salt),
    nonce: box.slice(0, nonceLength),
    sealed: box.slice(nonceLength),
  };
  return JSON.stringify(file);
}

/**
 * Seals an identity again: from then on the new passphrase opens it in this vault, while the old one still opens
 * earlier copies.
 *
 * @param given.next called once the present passphrase has opened it
 * @throws {WalletRefusal} as `unsealIdentity`; invalid_input for a new passphrase of the wrong form, and if the
 * identity was changed meanwhile
 */
export async function changePassphrase(
  { storage, random }: VaultContext,
  given: { name: string; passphrase: string; next: () => Promise<string> },
): Promise<VaultEntry> {
  const { name, passphrase } = given;
  const key = keyOf(name);
  const before = (await storage.get(key)) ?? undefined;
  const secret = await unsealSecret(storage, { name, passphrase }).catch((cause: unknown) => {
    if (!(cause instanceof WalletRefusal) || cause.code !== "wrong_passphrase") throw cause;
    const way = "if a change was cut short, the new one may";
    throw new WalletRefusal(cause.code, `${cause.message}; ${way}`, { cause });
  });
  const { address } = await openIdentity(secret);
  const next = await given.next();
  checkNewPassphrase(next);
  const text = await sealedText(random, { name, address, secret, passphrase: next });
  // That took time: meanwhile another call may have removed the identity, or created another one of that name.
  if ((await storage.get(key)) !== before) throw changedMeanwhile(key);
  await storage.put(key, text, before);
  return { name, address };
}

/**
 * Takes an identity out of the vault, for good.
 *
 * @throws {WalletRefusal} not_found, damaged_state; invalid_input if another call wrote it anew meanwhile
 */
export async function removeIdentity(storage: WalletStorage, name: string): Promise<VaultEntry> {
  const entry = await requireIdentity(storage, name);
  await storage.remove(keyOf(name));
  if (await hasIdentity(storage, name))
    throw new WalletRefusal(
      "invalid_input",
      `${name} was written again meanwhile and is still there`,
    );
  return entry;
}

/** One identity of the vault. @throws {WalletRefusal} not_found, damaged_state if its file cannot be read */
export async function requireIdentity(storage: WalletStorage, name: string): Promise<VaultEntry> {
  const { address } = await requireFile(storage, name);
  return { name, address };
}

async function requireFile(storage: WalletStorage, name: string): Promise<SealedIdentity> {
  const file = await readFile(storage, keyOf(name));
  if (file === null) throw new WalletRefusal("not_found", `the vault holds no identity ${name}`);
  return file;
}

/**
 * The identities of the vault by name; needs no passphrase. A file that cannot be read is left out, and the storage is
 * told so.
 */
export async function listIdentities(storage: WalletStorage): Promise<readonly VaultEntry[]> {
  const keys = await storage.list("identity");
  const entries = await Promise.all(keys.map((key) => readEntry(storage, key)));
  return entries.filter((entry) => entry !== null).toSorted((a, b) => (a.name < b.name ? -1 : 1));
}

/** One identity of the vault; null if there is none, or if its file cannot be read, of which the storage is told. */
export async function findIdentity(
  storage: WalletStorage,
  name: string,
): Promise<VaultEntry | null> {
  return isIdentityName(name) ? readEntry(storage, keyOf(name)) : null;
}

async function readEntry(storage: WalletStorage, key: StorageKey): Promise<VaultEntry | null> {
  try {
    const file = await readFile(storage, key);
    return file === null ? null : { name: file.name, address: file.address };
  } catch (error) {
    if (!(error instanceof WalletRefusal)) throw error;
    storage.tellDamaged?.(key);
    return null;
  }
}

/**
 * Whether the text was cut off or emptied: complete JSON may come from a later version, and an address in it says whose
 * it was.
 */
function isRuinOf(text: string, owner: Address): boolean {
  const named = text.match(/0x[0-9a-f]{40}/gi) ?? [];
  return parseJson(text) === null && named.every((each) => parseAddress(each) === owner);
}

/** Whether the vault has an identity of this name; false for what cannot be a name. */
export async function hasIdentity(storage: WalletStorage, name: string): Promise<boolean> {
  return isIdentityName(name) && (await storage.get(keyOf(name))) !== null;
}

/** @throws {WalletRefusal} not_found, wrong_passphrase (also for a file that was changed), damaged_state */
export async function unsealIdentity(
  storage: WalletStorage,
  given: { name: string; passphrase: string },
): Promise<Identity> {
  return openIdentity(await unsealSecret(storage, given));
}

/** The secret of an identity, for a backup. @throws {WalletRefusal} as `unsealIdentity` */
export async function unsealSecret(
  storage: WalletStorage,
  { name, passphrase }: { name: string; passphrase: string },
): Promise<IdentitySecret> {
  const file = await requireFile(storage, name);
  const box = file.nonce + file.sealed;
  const salt = bytesOfBase64url(file.salt);
  if (salt === null || bytesOfBase64url(box) === null || file.name !== name) throw damaged(name);
  const cipher = await cipherOfPassphrase(passphrase, salt);
  const content = await openText(box, { cipher, about: aboutOf(file) });
  if (content === null)
    throw new WalletRefusal("wrong_passphrase", `the passphrase does not open ${name}`);
  const secret = parseSecret(content);
  if (secret === null || (await openIdentity(secret)).address !== file.address) throw damaged(name);
  return secret;
}

const isIdentityName = (name: string): boolean => /^[a-z0-9][a-z0-9_-]{0,31}$/.test(name);

function keyOf(name: string): StorageKey {
  if (!isIdentityName(name))
    throw new WalletRefusal(
      "invalid_input",
      "a name must be 1 to 32 characters of a-z, 0-9, _ and -",
    );
  return `identity/${name}`;
}

async function readFile(storage: WalletStorage, key: StorageKey): Promise<SealedIdentity | null> {
  const text = await storage.get(key);
  if (text === null) return null;
  const file = parseJson(text);
  if (!isRecord(file)) throw damaged(key);
  const { version, name, address, salt, nonce, sealed } = file;
  const owner = typeof address === "string" ? parseAddress(address) : null;
  const isRead =
    typeof name === "string" &&
    typeof salt === "string" &&
    typeof nonce === "string" &&
    typeof sealed === "string" &&
    version === 1 &&
    owner !== null;
  if (!isRead) throw damaged(key);
  return { version, name, address: owner, salt, nonce, sealed };
}

/** Reads the JSON of a secret; null for any other text. */
export function parseSecret(text: string): IdentitySecret | null {
  const value = parseJson(text);
  if (!isRecord(value)) return null;
  const { kind, privateKey, mnemonic, index } = value;
  if (kind === "private-key" && typeof privateKey === "string")
    return { kind, privateKey: privateKey as Hex };
  if (kind === "mnemonic" && typeof mnemonic === "string" && typeof index === "number")
    return { kind, mnemonic, index };
  return null;
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return null;
  }
}

function damaged(what: string): WalletRefusal {
  return new WalletRefusal("damaged_state", `the vault cannot be read at ${what}`);
}

const aboutOf = ({ name, address }: VaultEntry): string =>
  canonicalJson(["svc-wallet-vault-v1", name, address]);
