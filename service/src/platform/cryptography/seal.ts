import assert from "node:assert/strict";
import {
  type CipherGCMTypes,
  createCipheriv,
  createDecipheriv,
  createSecretKey,
  hash,
  hkdfSync,
  type KeyObject,
  randomBytes,
  randomFillSync,
} from "node:crypto";

/**
 * The place of a sealed value. The seal is bound to it: a value that is moved to another row or column does not open.
 * `id` is the row's id as PostgreSQL writes it as text (`id::text`; bytes as `\x` and hex).
 */
export interface Place {
  readonly table: string;
  readonly id: string;
  readonly column: string;
}

/** A column of sealed values. Each is bound to the place that {@link placeIn} names; null values are skipped. */
export interface SealedColumn {
  readonly table: string;
  /** Unique, and sortable by an index. */
  readonly idColumn: string;
  readonly column: string;
}

/** The place of a column's value in the row with this id. */
export function placeIn({ table, column }: SealedColumn, id: string): Place {
  return { table, id, column };
}

/**
 * Seals secrets and personal data for the database: AES-256-GCM under a fresh key per value, which is wrapped by the
 * newest master key. A sealed value is 81 bytes longer than the plain one.
 */
export interface Seal {
  seal(plain: Uint8Array, place: Place): Buffer;
  /** @throws {SealBroken} if the bytes were changed or moved, or no configured key wrapped them */
  open(sealed: Uint8Array, place: Place): Buffer;
  /** The same value under the newest master key; null if it is already under that key. @throws {SealBroken} */
  rewrap(sealed: Uint8Array, place: Place): Buffer | null;
}

/** A value that cannot be opened here: it was changed, moved or cut off, or is under a key that is not configured. */
export class SealBroken extends Error {
  /** True if it names a master key that is not configured here; another process, or a later one, may have that key. */
  readonly isKeyMissing: boolean;

  constructor(where: string, { isKeyMissing = false } = {}) {
    super(`a sealed value does not open: ${where}`);
    this.name = "SealBroken";
    this.isKeyMissing = isKeyMissing;
  }
}

/** For how long data that is sealed with an unknown master key waits for a process that knows it. */
const keyWithinSeconds = 72 * 3600;

/** Whether another process may still be able to open what did not open here, as during a change of keys. */
export function mayOpenElsewhere(error: SealBroken, waitedSeconds: number): boolean {
  return error.isKeyMissing && waitedSeconds < keyWithinSeconds;
}

// version 1 | key id 4 | nonce 12 | wrapped row key 32 | tag 16 | content | tag 16
const version = 1;
const keyIdAt = 1;
const nonceAt = 5;
const wrappedAt = 17;
const wrapTagAt = 49;
const contentAt = 65;
const tagBytes = 16;
const keyBytes = 32;
const nonceBytes = 12;
const overheadBytes = contentAt + tagBytes;
const algorithm: CipherGCMTypes = "aes-256-gcm";
const gcmOptions = { authTagLength: tagBytes };

/** A row key only ever seals one content, so its nonce may be fixed. */
const rowNonce = Buffer.alloc(nonceBytes);

interface MasterKey {
  readonly id: number;
  readonly key: KeyObject;
}

/**
 * @param masterKeys 64 hex digits each, newest first: the first seals, the others only open what they sealed
 */
export function createSeal(masterKeys: readonly string[]): Seal {
  const keys = masterKeys.map(readMasterKey);
  const [newest] = keys;
  assert(newest !== undefined, "at least one master key");
  const byId = new Map(keys.map((each) => [each.id, each]));
  assert.equal(byId.size, keys.length, "master keys differ in their ids");

  const unwrap = (sealed: Buffer, place: Place): { rowKey: Buffer; aad: Buffer } => {
    const where = `${place.table}.${place.column}`;
    if (sealed.length < overheadBytes || sealed[0] !== version) throw new SealBroken(where);
    const master = byId.get(sealed.readUInt32BE(keyIdAt));
    if (master === undefined)
      throw new SealBroken(`${where}, its master key is not configured (MASTER_KEY)`, {
        isKeyMissing: true,
      });
    const aad = aadOf(place);
    const parts = {
      nonce: sealed.subarray(nonceAt, wrappedAt),
      content: sealed.subarray(wrappedAt, wrapTagAt),
      tag: sealed.subarray(wrapTagAt, contentAt),
      aad,
    };
    return { rowKey: decrypt(master.key, parts, where), aad };
  };

  return {
    seal(plain, place) {
      const sealed = Buffer.allocUnsafe(overheadBytes + plain.length);
      const aad = aadOf(place);
      const rowKey = randomBytes(keyBytes);
      wrap(newest, { rowKey, aad, into: sealed });
      const key = keyOf(rowKey);
      const tag = encrypt(key, { nonce: rowNonce, plain, aad }, sealed.subarray(contentAt));
      tag.copy(sealed, contentAt + plain.length);
      return sealed;
    },
    open(given, place) {
      const sealed = asBuffer(given);
      const { rowKey, aad } = unwrap(sealed, place);
      const end = sealed.length - tagBytes;
      const parts = {
        nonce: rowNonce,
        content: sealed.subarray(contentAt, end),
        tag: sealed.subarray(end),
        aad,
      };
      return decrypt(keyOf(rowKey), parts, `${place.table}.${place.column}`);
    },
    rewrap(given, place) {
      const sealed = asBuffer(given);
      const { rowKey, aad } = unwrap(sealed, place);
      if (sealed.readUInt32BE(keyIdAt) === newest.id) return null;
      const fresh = Buffer.from(sealed);
      wrap(newest, { rowKey, aad, into: fresh });
      return fresh;
    },
  };
}

/**
 * Seals a value under a secret that only its holder can present again (HKDF-SHA256, then AES-256-GCM), so a copy of the
 * database alone does not open it. 29 bytes longer than the plain value.
 *
 * @param keyMaterial at least 16 bytes of high entropy, such as a generated token; never a password
 * @param context what the value is for; the same words open it
 */
export function sealWith(keyMaterial: Uint8Array, plain: Uint8Array, context: string): Buffer {
  const sealed = Buffer.allocUnsafe(1 + nonceBytes + plain.length + tagBytes);
  sealed[0] = version;
  const nonce = sealed.subarray(1, 1 + nonceBytes);
  randomFillSync(nonce);
  const aad = Buffer.from(context);
  const key = deriveKey(keyMaterial, context);
  const tag = encrypt(key, { nonce, plain, aad }, sealed.subarray(1 + nonceBytes));
  tag.copy(sealed, sealed.length - tagBytes);
  return sealed;
}

/** Opens what {@link sealWith} sealed. @throws {SealBroken} for another secret, another context or changed bytes */
export function openWith(keyMaterial: Uint8Array, sealed: Uint8Array, context: string): Buffer {
  const bytes = asBuffer(sealed);
  if (bytes.length < 1 + nonceBytes + tagBytes || bytes[0] !== version)
    throw new SealBroken(context);
  const end = bytes.length - tagBytes;
  const parts = {
    nonce: bytes.subarray(1, 1 + nonceBytes),
    content: bytes.subarray(1 + nonceBytes, end),
    tag: bytes.subarray(end),
    aad: Buffer.from(context),
  };
  return decrypt(deriveKey(keyMaterial, context), parts, context);
}

function readMasterKey(hex: string): MasterKey {
  assert.match(hex, /^[0-9a-f]{64}$/, "a master key is 64 lower-case hex digits");
  const bytes = Buffer.from(hex, "hex");
  const id = hash("sha256", bytes, "buffer").readUInt32BE(0);
  return { id, key: createSecretKey(bytes) };
}

function aadOf({ table, id, column }: Place): Buffer {
  return Buffer.from(JSON.stringify(["svc-seal-v1", table, id, column]));
}

function wrap(master: MasterKey, work: { rowKey: Buffer; aad: Buffer; into: Buffer }): void {
  const { rowKey, aad, into } = work;
  into[0] = version;
  into.writeUInt32BE(master.id, keyIdAt);
  const nonce = into.subarray(nonceAt, wrappedAt);
  randomFillSync(nonce);
  const tag = encrypt(master.key, { nonce, plain: rowKey, aad }, into.subarray(wrappedAt));
  tag.copy(into, wrapTagAt);
}

/** Raw bytes cost each use three times as much, since Node tries to use them as an object first. */
function keyOf(bytes: Uint8Array): KeyObject {
  return createSecretKey(bytes);
}

function deriveKey(keyMaterial: Uint8Array, context: string): KeyObject {
  assert(keyMaterial.length >= 16, "key material has at least 128 bits");
  const derived = hkdfSync("sha256", keyOf(keyMaterial), "svc-seal-v1", context, keyBytes);
  return keyOf(new Uint8Array(derived));
}

/** Writes the ciphertext to the start of `into` and returns the tag. */
function encrypt(
  key: KeyObject,
  from: { nonce: Buffer; plain: Uint8Array; aad: Buffer },
  into: Buffer,
): Buffer {
  const cipher = createCipheriv(algorithm, key, from.nonce, gcmOptions);
  cipher.setAAD(from.aad);
  cipher.update(from.plain).copy(into);
  cipher.final();
  return cipher.getAuthTag();
}

function decrypt(
  key: KeyObject,
  from: { nonce: Buffer; content: Buffer; tag: Buffer; aad: Buffer },
  where: string,
): Buffer {
  const decipher = createDecipheriv(algorithm, key, from.nonce, gcmOptions);
  decipher.setAAD(from.aad);
  decipher.setAuthTag(from.tag);
  const plain = decipher.update(from.content);
  try {
    decipher.final();
  } catch {
    throw new SealBroken(where);
  }
  return plain;
}

function asBuffer(bytes: Uint8Array): Buffer {
  return Buffer.isBuffer(bytes)
    ? bytes
    : Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
}
