import { createHash, type KeyObject } from "node:crypto";

/** A key that signs attestations. */
export interface AttestationKey {
  readonly kid: string;
  readonly privateKey: KeyObject;
  readonly publicJwk: Readonly<Record<string, string>>;
  /** Unix seconds; it signs from then until the next one starts. */
  readonly startsAt: number;
}

type Slot = Pick<AttestationKey, "startsAt">;

/** The key that signs at this moment, or null. */
export function currentOf<K extends Slot>(keys: readonly K[], now: number): K | null {
  return keys.reduce<K | null>((found, key) => {
    const isBetter = key.startsAt <= now && (found === null || key.startsAt > found.startsAt);
    return isBetter ? key : found;
  }, null);
}

/**
 * When the missing keys start: one that signs now, and its successor, which is published long before it signs. Keys
 * start at whole multiples of the lifetime, so processes that plan at once plan the same slots.
 */
export function missingStarts(
  keys: readonly Slot[],
  { now, lifetimeSeconds }: { now: number; lifetimeSeconds: number },
): { current: number | null; next: number | null } {
  const slot = now - (now % lifetimeSeconds);
  const hasNext = keys.some(({ startsAt }) => startsAt > now);
  return {
    current: currentOf(keys, now) === null ? slot : null,
    next: hasNext ? null : slot + lifetimeSeconds,
  };
}

/** Keys that a verifier may need: those that sign or will, and those whose last attestations are still good. */
export function publishedOf<K extends Slot>(
  keys: readonly K[],
  { now, retentionSeconds }: { now: number; retentionSeconds: number },
): K[] {
  return keys.filter((key) => {
    const successor = keys
      .filter((other) => other.startsAt > key.startsAt)
      .toSorted((a, b) => a.startsAt - b.startsAt)[0];
    return successor === undefined || successor.startsAt + retentionSeconds > now;
  });
}

/** A key set as it goes over the wire (RFC 7517). */
export function keySetOf(keys: readonly Pick<AttestationKey, "kid" | "publicJwk">[]): {
  body: string;
  etag: string;
} {
  const body = JSON.stringify({
    keys: keys.map(({ kid, publicJwk }) => ({ ...publicJwk, use: "sig", alg: "RS256", kid })),
  });
  const digest = createHash("sha256").update(body).digest("base64url");
  return { body, etag: `"${digest.slice(0, 27)}"` };
}
