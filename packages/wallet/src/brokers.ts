import { WalletRefusal } from "./refusal.ts";
import { hashedKey, type StorageKey, type WalletStorage } from "./storage.ts";
import { requireSecure } from "./transport.ts";

/**
 * The brokers that may say who asks: those the wallet came with and those its owner added, in that order. Every broker
 * on this list can make a domain appear as verified, so the list grows only by an explicit act.
 */
export async function listBrokers(
  storage: WalletStorage,
  seeded: readonly string[],
): Promise<readonly string[]> {
  const added = await listAdded(storage);
  return [...new Set([...seeded.map(originOf), ...added.map(({ origin }) => origin)])];
}

/**
 * Adds a broker by its origin, after the others; one that is already on the list keeps its place.
 *
 * @throws {WalletRefusal} invalid_input, unreachable without https
 */
export async function addBroker(storage: WalletStorage, url: string): Promise<string> {
  const origin = originOf(url);
  const added = await listAdded(storage);
  if (added.some((each) => each.origin === origin)) return origin;
  const place = 1 + Math.max(0, ...added.map((each) => each.place));
  // This also replaces a record that cannot be read.
  await storage.put(hashedKey("broker", origin), `${origin} ${place}`);
  return origin;
}

/** Takes a broker off the list; a broker that the wallet came with stays. */
export async function removeBroker(storage: WalletStorage, url: string): Promise<string> {
  const origin = originOf(url);
  await storage.remove(hashedKey("broker", origin));
  return origin;
}

interface AddedBroker {
  readonly origin: string;
  /** Brokers that were added before this was stored have 0. */
  readonly place: number;
}

async function listAdded(storage: WalletStorage): Promise<AddedBroker[]> {
  const keys = await storage.list("broker");
  const added = await Promise.all(keys.map(async (key) => readBroker(storage, key)));
  return added
    .filter((each) => each !== null)
    .toSorted((a, b) => a.place - b.place || (a.origin < b.origin ? -1 : 1));
}

/** Null if it was removed meanwhile or cannot be read; the storage is told of the latter. */
async function readBroker(storage: WalletStorage, key: StorageKey): Promise<AddedBroker | null> {
  const text = await storage.get(key);
  if (text === null) return null;
  const [origin = "", place = "0"] = text.split(" ");
  if (isOrigin(origin) && /^[0-9]{1,9}$/.test(place)) return { origin, place: Number(place) };
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
