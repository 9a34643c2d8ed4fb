import type { Address, Link } from "@svc/protocol";
import { openText, sealText, type BoxKey } from "./box.ts";
import type { Identity } from "./identity.ts";
import { cipherOfKey } from "./passphrase-cipher.ts";
import { WalletRefusal } from "./refusal.ts";
import { hashedKey, type StorageKey, type WalletStorage } from "./storage.ts";

/** What is needed to read and write records. */
export interface RecordContext {
  readonly identity: Identity;
  readonly storage: WalletStorage;
  readonly random: (length: number) => Uint8Array;
}

/** Kinds of records. They are personal data, so they are sealed with a key that only their identity can derive. */
export type RecordFolder = "credential" | "founding" | "history" | "shown" | "transaction" | "vote";

/** A record with the key under which it is stored. */
export interface StoredRecord {
  readonly key: StorageKey;
  readonly value: unknown;
}

/** 64 bits of the address keep the records of identities apart; access depends on the sealing key. */
const prefixLength = 16;

/** The key of a record. @param name at most 47 of `a-z 0-9 _ -`; names sort as their records do */
export function recordKey(folder: RecordFolder, owner: Address, name: string): StorageKey {
  return `${folder}/${owner.slice(2, 2 + prefixLength)}_${name}`;
}

/** The key of an identity's record about what these texts name, by their hash. */
export function hashedRecordKey(
  folder: RecordFolder,
  owner: Address,
  ...parts: readonly string[]
): StorageKey {
  const [, name = ""] = hashedKey(folder, ...parts).split("/");
  return recordKey(folder, owner, name);
}

/** The key of an identity's record about a link. */
export function linkKey(folder: RecordFolder, owner: Address, link: Link): StorageKey {
  return hashedRecordKey(folder, owner, JSON.stringify(link));
}

export async function putRecord(ctx: RecordContext, key: StorageKey, value: object): Promise<void> {
  await ctx.storage.put(key, await sealRecord(ctx, key, value));
}

/** Writes the record only if there is none. @returns the one that is stored afterwards */
export async function addRecord(
  ctx: RecordContext,
  key: StorageKey,
  value: object,
): Promise<unknown> {
  const stored = await ctx.storage.add(key, await sealRecord(ctx, key, value));
  return openRecord(ctx, key, stored);
}

/** Null if there is none. @throws {WalletRefusal} damaged_state */
export async function getRecord(ctx: RecordContext, key: StorageKey): Promise<unknown> {
  const box = await ctx.storage.get(key);
  return box === null ? null : openRecord(ctx, key, box);
}

/** As `getRecord`, but a record that cannot be read is silently removed. */
export async function getDroppingDamaged(ctx: RecordContext, key: StorageKey): Promise<unknown> {
  return getReadable(ctx, key, async () => ctx.storage.remove(key));
}

/** The identity's records by key, which sorts them. @throws {WalletRefusal} damaged_state if one cannot be read */
export async function readRecords(
  ctx: RecordContext,
  folder: RecordFolder,
): Promise<readonly StoredRecord[]> {
  const keys = await listRecordKeys(ctx, folder);
  const found = await Promise.all(
    keys.map(async (key) => ({ key, value: await getRecord(ctx, key) })),
  );
  return found.filter(({ value }) => value !== null);
}

/**
 * As `readRecords`, but a record that cannot be read is left out, and the storage is told so.
 *
 * @param last so many at most, of those that sort last
 */
export async function listRecords(
  ctx: RecordContext,
  folder: RecordFolder,
  last = Infinity,
): Promise<readonly StoredRecord[]> {
  const keys = (await listRecordKeys(ctx, folder)).slice(-last);
  return readReadable(ctx, keys, (key) => ctx.storage.tellDamaged?.(key));
}

/** As `readRecords`, but a record that cannot be read is silently removed. */
export async function listDroppingDamaged(
  ctx: RecordContext,
  folder: RecordFolder,
): Promise<readonly StoredRecord[]> {
  return listReadable(ctx, folder, async (key) => ctx.storage.remove(key));
}

/** As `readRecords`, but a record that cannot be read is left out. @param onDamaged called with its key */
export async function listReadable(
  ctx: RecordContext,
  folder: RecordFolder,
  onDamaged: (key: StorageKey) => unknown,
): Promise<readonly StoredRecord[]> {
  return readReadable(ctx, await listRecordKeys(ctx, folder), onDamaged);
}

async function readReadable(
  ctx: RecordContext,
  keys: readonly StorageKey[],
  onDamaged: (key: StorageKey) => unknown,
): Promise<readonly StoredRecord[]> {
  const found = await Promise.all(
    keys.map(async (key) => ({ key, value: await getReadable(ctx, key, onDamaged) })),
  );
  return found.filter(({ value }) => value !== null);
}

async function getReadable(
  ctx: RecordContext,
  key: StorageKey,
  onDamaged: (key: StorageKey) => unknown,
): Promise<unknown> {
  try {
    return await getRecord(ctx, key);
  } catch (error) {
    if (!(error instanceof WalletRefusal) || error.code !== "damaged_state") throw error;
    await onDamaged(key);
    return null;
  }
}

export async function listRecordKeys(
  { storage, identity }: RecordContext,
  folder: RecordFolder,
): Promise<readonly StorageKey[]> {
  return listKeysOf(storage, identity.address, folder);
}

/** Needs no key: the records of an identity are told apart by its address. */
export async function listKeysOf(
  storage: WalletStorage,
  owner: Address,
  folder: RecordFolder,
): Promise<readonly StorageKey[]> {
  const prefix = recordKey(folder, owner, "");
  return (await storage.list(folder)).filter((key) => key.startsWith(prefix)).toSorted();
}

async function sealRecord(ctx: RecordContext, key: StorageKey, value: object): Promise<string> {
  return sealText(JSON.stringify(value), await boxKeyOf(ctx, key), ctx.random);
}

async function openRecord(ctx: RecordContext, key: StorageKey, box: string): Promise<unknown> {
  const text = await openText(box, await boxKeyOf(ctx, key));
  if (text === null) throw new WalletRefusal("damaged_state", `the wallet cannot read ${key}`);
  return JSON.parse(text) as unknown;
}

async function boxKeyOf({ identity }: RecordContext, key: StorageKey): Promise<BoxKey> {
  return { cipher: await cipherOfKey(await identity.deriveKey("records")), about: key };
}
