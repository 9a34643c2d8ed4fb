/** Who an event is for; each channel signs in its own way. */
export type Channel = "kyc" | "kyb";

/** A complete event to announce: nothing is added to it later. */
export interface AnnouncedEvent {
  /** The same in every delivery: `newEventId` for orders, a ULID for businesses. */
  readonly id: string;
  /** What it is about, such as an order. */
  readonly streamId: string;
  /** Counts the events of its stream from 1 without a gap; the caller keeps the count in the row that it changes. */
  readonly sequence: number;
  readonly kind: string;
  readonly clientDomainId: string;
  /** Sent byte for byte by every attempt. */
  readonly body: string;
  /** Its body is stored sealed only, and purged. */
  readonly isPersonal: boolean;
  /** Unix seconds: when a personal body is purged at the latest, delivered or not. */
  readonly payloadExpiresAt: number | null;
}

/** An event of an order, which names its receiver itself. */
export interface KycEvent extends AnnouncedEvent {
  readonly channel: "kyc";
  /** The package whose key signs it when it is sent. */
  readonly keyId: string;
  readonly url: string;
}

/** An event for the endpoint of its client domain: sent to the address of that time, held while it is in quarantine. */
export interface KybEvent extends AnnouncedEvent {
  readonly channel: "kyb";
}

export type NewEvent = KycEvent | KybEvent;

const day = 86_400;

/** A body without personal data is kept this long if no attempt is made: longer than a quarantine holds it. */
const bodySeconds = 35 * day;
/** After an attempt it is kept for a resend, for this long at least (decisions section 7, Outbox). */
export const resendSeconds = 30 * day;
/** A personal body of an order is purged this long after it was delivered (decisions section 5, Purge). */
export const deliveredDataSeconds = day;
/** Undelivered bodies of a forgotten stream are purged after this long at the latest: longer than their attempts take. */
export const forgottenSeconds = 7 * day;

/** When the body is purged if nothing is ever sent, Unix seconds. */
export function purgeTimeOf(event: NewEvent, now: number): number {
  return event.payloadExpiresAt ?? now + bodySeconds;
}

/** Bodies above this size are sent a few at a time; many at once would fill the memory. */
export const largeBytes = 64 * 1024;

export function isLarge(event: NewEvent): boolean {
  return Buffer.byteLength(event.body) > largeBytes;
}
