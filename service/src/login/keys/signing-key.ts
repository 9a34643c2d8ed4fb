import { createHash } from "node:crypto";
import type { PublishedDocument } from "../../platform/http/published-document.ts";
import type { JwtKey } from "./jwt.ts";

/** What a key signs. Wallet keys are never published together with login keys (decisions section 3). */
export const keyPurposes = ["login-rs256", "login-es256", "wallet-es256"] as const;

export type KeyPurpose = (typeof keyPurposes)[number];
export type KeySetName = "login" | "wallet";

export interface SigningKey extends JwtKey {
  readonly purpose: KeyPurpose;
  readonly publicJwk: Readonly<Record<string, string>>;
  /** Unix seconds; it signs from then until the next one starts. */
  readonly startsAt: number;
}

export function algorithmOf(purpose: KeyPurpose): "RS256" | "ES256" {
  return purpose === "login-rs256" ? "RS256" : "ES256";
}

export function keySetOf(purpose: KeyPurpose): KeySetName {
  return purpose === "wallet-es256" ? "wallet" : "login";
}

type Slot = Pick<SigningKey, "kid" | "purpose" | "startsAt">;

/** The key of a purpose that signs at this moment, or null. */
export function currentOf<K extends Slot>(
  keys: readonly K[],
  purpose: KeyPurpose,
  now: number,
): K | null {
  return keys.reduce<K | null>((found, key) => {
    const isStarted = key.purpose === purpose && key.startsAt <= now;
    return isStarted && (found === null || key.startsAt > found.startsAt) ? key : found;
  }, null);
}

/** What has to be done so that a purpose has a key that signs and its successor. */
export interface KeyPlan {
  /** This key, already published, must start now. */
  readonly start: string | null;
  /** Keys to make, by the time they start. */
  readonly make: readonly number[];
}

/**
 * Plans the keys of one purpose. Keys start at whole multiples of the lifetime, so processes that plan at once plan
 * the same slots and the unique index lets one key into each.
 */
export function planKeys(
  keys: readonly Slot[],
  purpose: KeyPurpose,
  { now, lifetimeSeconds }: { now: number; lifetimeSeconds: number },
): KeyPlan {
  const slot = now - (now % lifetimeSeconds);
  const following = slot + lifetimeSeconds;
  const ahead = keys
    .filter((key) => key.purpose === purpose && key.startsAt > now)
    .toSorted((a, b) => a.startsAt - b.startsAt);
  if (currentOf(keys, purpose, now) !== null)
    return { start: null, make: ahead.length === 0 ? [following] : [] };
  // The current one was revoked: its successor is in every cache of the key set, a new one would be in none.
  const [next, ...later] = ahead;
  if (next !== undefined) return { start: next.kid, make: later.length === 0 ? [following] : [] };
  return { start: null, make: [slot, following] };
}

/**
 * The keys of a set that a verifier may need: those that sign, those that will, and those whose last tokens live on.
 *
 * @param options.retentionSeconds longest life of anything they sign
 */
export function publishedOf(
  keys: readonly SigningKey[],
  set: KeySetName,
  { now, retentionSeconds }: { now: number; retentionSeconds: number },
): SigningKey[] {
  return keys.filter((key) => {
    const successor = keys
      .filter((other) => other.purpose === key.purpose && other.startsAt > key.startsAt)
      .toSorted((a, b) => a.startsAt - b.startsAt)[0];
    const isRetired = successor !== undefined && successor.startsAt + retentionSeconds <= now;
    return keySetOf(key.purpose) === set && !isRetired;
  });
}

export function keySetDocument(keys: readonly SigningKey[]): PublishedDocument {
  const body = JSON.stringify({
    keys: keys.map((key) => ({
      ...key.publicJwk,
      use: "sig",
      alg: key.algorithm,
      kid: key.kid,
    })),
  });
  return { body, etag: etagOf(body) };
}

export function etagOf(body: string): string {
  return `"${createHash("sha256").update(body).digest("base64url").slice(0, 27)}"`;
}
