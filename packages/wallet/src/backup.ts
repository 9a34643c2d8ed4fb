import { base64urlOfBytes, bytesOfBase64url } from "@svc/protocol";
import { openText, sealText } from "./box.ts";
import { keepCredential, listHeld, type HeldCredential } from "./held-credential.ts";
import { restoreHistory, savedEntryOf, type SavedEntry } from "./history.ts";
import { openIdentity, type IdentitySecret } from "./identity.ts";
import { checkNewPassphrase, cipherOfPassphrase } from "./passphrase-cipher.ts";
import {
  readRecords,
  type RecordContext,
  type RecordFolder,
  type StoredRecord,
} from "./records.ts";
import { WalletRefusal } from "./refusal.ts";
import { membersOf } from "./transport.ts";
import { parseSecret, type VaultContext, type VaultEntry } from "./vault.ts";

/** What a backup holds: everything that would be lost with a device. */
interface Content {
  readonly name: string;
  readonly secret: IdentitySecret;
  readonly credentials: readonly HeldCredential[];
  readonly history: readonly SavedEntry[];
}

/** What came back out of a backup. */
export interface Restored extends VaultEntry {
  readonly secret: IdentitySecret;
  readonly credentials: number;
}

const prefix = "svc-wallet-backup-v1";

/**
 * Writes an identity with its credentials and history as one text, sealed as the vault is: scrypt (N 2^17, r 8, p 1) of
 * the passphrase, AES-256-GCM. Services do not keep values that were collected: without a backup they are lost with the
 * device.
 *
 * @throws {WalletRefusal} invalid_input for a passphrase of fewer than 8 characters; damaged_state if a record that
 * belongs in it cannot be read, since an earlier backup may still hold it
 */
export async function writeBackup(
  { storage, random }: VaultContext,
  { name, secret, passphrase }: { name: string; secret: IdentitySecret; passphrase: string },
): Promise<string> {
  checkNewPassphrase(passphrase);
  const records = { identity: await openIdentity(secret), storage, random };
  const content: Content = {
    name,
    secret,
    credentials: (await readWhole(records, "credential")).map(
      ({ value }) => value as HeldCredential,
    ),
    history: (await readWhole(records, "history")).map(savedEntryOf),
  };
  const salt = random(16);
  const cipher = await cipherOfPassphrase(passphrase, salt);
  const box = await sealText(JSON.stringify(content), { cipher, about: prefix }, random);
  return `${prefix}.${base64urlOfBytes(salt)}.${box}`;
}

async function readWhole(
  ctx: RecordContext,
  folder: RecordFolder,
): Promise<readonly StoredRecord[]> {
  try {
    return await readRecords(ctx, folder);
  } catch (cause) {
    if (!(cause instanceof WalletRefusal)) throw cause;
    throw new WalletRefusal(
      cause.code,
      `${cause.message}, and the backup would lack it: first restore an earlier backup, or remove the damaged file`,
      { cause },
    );
  }
}

/**
 * Restores the credentials and the history of a backup; the caller has to store the identity's secret. Records that
 * exist stay, unless they cannot be read; unreadable entries of the history are removed even if nothing replaces them.
 *
 * @throws {WalletRefusal} invalid_input for a text that is not a backup; wrong_passphrase, also for a backup that was
 * changed
 */
export async function restoreBackup(
  { storage, random }: VaultContext,
  { text, passphrase }: { text: string; passphrase: string },
): Promise<Restored> {
  const { name, secret, credentials, history } = await openBackup(text, passphrase);
  const identity = await openIdentity(secret);
  const records = { identity, storage, random };
  const known = new Set((await listHeld(records)).map(({ broker, id }) => `${broker} ${id}`));
  for (const held of credentials)
    if (!known.has(`${held.broker} ${held.id}`)) await keepCredential(records, held);
  await restoreHistory(records, history);
  return { name, address: identity.address, secret, credentials: credentials.length };
}

async function openBackup(text: string, passphrase: string): Promise<Content> {
  const [version, saltText = "", box = "", ...rest] = text.trim().split(".");
  const salt = bytesOfBase64url(saltText);
  if (version !== prefix || salt?.length !== 16 || rest.length > 0)
    throw new WalletRefusal("invalid_input", "the text is not a backup of this wallet");
  const cipher = await cipherOfPassphrase(passphrase, salt);
  const json = await openText(box, { cipher, about: prefix });
  if (json === null)
    throw new WalletRefusal("wrong_passphrase", "the passphrase does not open the backup");
  // Not JSON.parse: its error would quote the text, and with it perhaps the words of a mnemonic.
  const content = membersOf(json);
  const secret = parseSecret(JSON.stringify(content["secret"] ?? null));
  if (secret === null) throw new WalletRefusal("invalid_input", "the backup holds no identity");
  // It was sealed by somebody who knows the passphrase, so its parts are trusted as this wallet's own.
  return { ...(content as unknown as Content), secret };
}
