import { endedForAll, type Clock } from "../clock.ts";

/** A signing key among those of one purpose. */
export interface ScheduledKey {
  readonly kid: string;
  /** Unix seconds; it signs from then until the next one starts. */
  readonly startsAt: number;
}

/** The key that signs at this moment, or null. */
export function currentOf<K extends ScheduledKey>(keys: readonly K[], now: number): K | null {
  return keys.reduce<K | null>((found, key) => {
    const isBetter = key.startsAt <= now && (found === null || key.startsAt > found.startsAt);
    return isBetter ? key : found;
  }, null);
}

/** The key that signs after the current one, published already; or null. */
function nextOf<K extends ScheduledKey>(keys: readonly K[], now: number): K | null {
  return keys.reduce<K | null>((found, key) => {
    const isBetter = key.startsAt > now && (found === null || key.startsAt < found.startsAt);
    return isBetter ? key : found;
  }, null);
}

/** A `next` key is already published and signs from `startsAt`; what a `retired` key signed may still be valid. */
type KeyStatus = "retired" | "current" | "next";

/** A key as operators see it. */
export interface KeyRecord<Purpose extends string> extends ScheduledKey {
  readonly purpose: Purpose;
  readonly status: KeyStatus;
  readonly createdAt: number;
}

export function statusOf(
  keys: readonly ScheduledKey[],
  { kid, startsAt }: ScheduledKey,
  now: number,
): KeyStatus {
  if (currentOf(keys, now)?.kid === kid) return "current";
  return startsAt > now ? "next" : "retired";
}

/** The steps that lead to a signing key and a successor. */
export interface KeyPlan {
  /** This key, already published, must start now. */
  readonly start: string | null;
  /** Keys to make, by the time they start. */
  readonly make: readonly number[];
}

/**
 * A key is published for at least a day before it signs, since verifiers cache key sets; for half of its lifetime if
 * that is shorter.
 */
const noticeSecondsMax = 86_400;

/**
 * Plans the keys of one purpose. Keys start at whole multiples of the lifetime, so processes that plan at once plan
 * the same slots and the unique index lets one key into each. A slot that begins too soon for a new key is left out.
 */
export function planKeys(
  keys: readonly ScheduledKey[],
  { now, lifetimeSeconds }: { now: number; lifetimeSeconds: number },
): KeyPlan {
  const slot = now - (now % lifetimeSeconds);
  const noticeSeconds = Math.min(noticeSecondsMax, lifetimeSeconds / 2);
  const isSoon = slot + lifetimeSeconds - now < noticeSeconds;
  const following = slot + lifetimeSeconds * (isSoon ? 2 : 1);
  const next = nextOf(keys, now);
  if (currentOf(keys, now) !== null) return { start: null, make: next === null ? [following] : [] };
  if (next === null) return { start: null, make: [slot, following] };
  // The current key was revoked: its successor is in the caches of the key set, and a new key would not be.
  const isLast = nextOf(keys, next.startsAt) === null;
  return { start: next.kid, make: isLast ? [following] : [] };
}

/**
 * The key that may start now; null if there is no next key, or if one has started this second, since two never start in
 * the same second.
 */
export function planRotation<K extends ScheduledKey>(keys: readonly K[], now: number): K | null {
  return currentOf(keys, now)?.startsAt === now ? null : nextOf(keys, now);
}

/** The key that takes over once one is revoked. */
export interface Takeover {
  /** Null if no key is left that could take over: a new one has to be made. */
  readonly kid: string | null;
  readonly startsAt: number;
}

/**
 * Which key takes over from a revoked one, and when it starts: early enough to sign at once in every process. In one
 * whose clock is behind, no key would sign otherwise, or an older one, which others may already have removed.
 */
export function planTakeover(
  keys: readonly ScheduledKey[],
  revoked: string,
  clock: Clock,
): Takeover {
  const now = clock.now();
  const left = keys.filter(({ kid }) => kid !== revoked);
  const signer = (currentOf(keys, now)?.kid === revoked ? nextOf : currentOf)(left, now);
  const others = left.filter((key) => key !== signer);
  const before = currentOf(others, now);
  // Two keys never start in the same second.
  const free = before === null ? 0 : before.startsAt + 1;
  return { kid: signer?.kid ?? null, startsAt: Math.max(endedForAll(clock), free) };
}

/**
 * The keys that a verifier may need: those that sign, those that will, and those whose last signatures are still good.
 *
 * @param options.retentionSeconds longest life of anything they sign
 */
export function publishedOf<K extends ScheduledKey>(
  keys: readonly K[],
  { now, retentionSeconds }: { now: number; retentionSeconds: number },
): K[] {
  return keys.filter((key) => {
    const successor = nextOf(keys, key.startsAt);
    return successor === null || successor.startsAt + retentionSeconds > now;
  });
}
