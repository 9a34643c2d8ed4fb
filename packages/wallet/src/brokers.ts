import { WalletRefusal } from "./refusal.ts";
import { hashedKey, type StorageKey, type WalletStorage } from "./storage.ts";
import { requireSecure } from "./transport.ts";

/**
 * The brokers that may say who asks: those the wallet came with and those its owner added. On this list
 * stands whoever can make a domain appear as verified, so it grows by an explicit act alone.
 */
export async function listBrokers(
  storage: WalletStorage,
  seeded: readonly string[],
): Promise<readonly string[]> {
  const keys = await storage.list("broker");
  const added = await Promise.all(keys.map(async (key) => readBroker(storage, key)));
  const origins = added.filter((origin) => origin !== null);
  return [...new Set([...seeded.map(originOf), ...origins])];
}

/**
 * Adds a broker by its origin; one that is on the list already stays.
 *
 * @throws {WalletRefusal} invalid_input, unreachable without https
 */
export async function addBroker(storage: WalletStorage, url: string): Promise<string> {
  const origin = originOf(url);
  // Also over one that cannot be read.
  await storage.put(hashedKey("broker", origin), origin);
  return origin;
}

/** Takes a broker off the list; one that the wallet came with stays. */
export async function removeBroker(storage: WalletStorage, url: string): Promise<string> {
  const origin = originOf(url);
  await storage.remove(hashedKey("broker", origin));
  return origin;
}

/** Null where it was removed meanwhile, or cannot be read, which the storage is told. */
async function readBroker(storage: WalletStorage, key: StorageKey): Promise<string | null> {
  const text = await storage.get(key);
  if (text === null || isOrigin(text)) return text;
  storage.tellDamaged?.(key);
  return null;
}

const isOrigin = (text: string): boolean => URL.canParse(text) && new URL(text).origin === text;

function originOf(text: string): string {
  const url = URL.canParse(text) ? new URL(text) : null;
  const isBare = url !== null && (url.href === `${text}/` || url.href === text);
  if (url === null || !isBare || url.href !== `${url.origin}/`)
    throw new WalletRefusal("invalid_input", "a broker is named by its origin: https://<host>");
  requireSecure(url.href);
  return url.origin;
}
