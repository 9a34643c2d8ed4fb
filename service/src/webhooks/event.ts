/** Who an event is for; each channel signs in its own way. */
export type Channel = "kyc" | "kyb";

/** An event to announce, complete: nothing is added to it later. */
export interface AnnouncedEvent {
  /** The same in every delivery: `newEventId` for orders, a ULID for businesses. */
  readonly id: string;
  /** What it tells of, such as an order. */
  readonly streamId: string;
  /** From 1 and without a gap in its stream: the caller keeps it in the row that it changes. */
  readonly sequence: number;
  readonly kind: string;
  readonly clientDomainId: string;
  /** The bytes of every attempt. */
  readonly body: string;
  /** Stored only sealed, and purged. */
  readonly isPersonal: boolean;
  /** Unix seconds: when a personal body goes at the latest, delivered or not. */
  readonly payloadExpiresAt: number | null;
}

/** An event of an order: it names where it goes. */
export interface KycEvent extends AnnouncedEvent {
  readonly channel: "kyc";
  /** Whose key signs it when it is sent: the package. */
  readonly keyId: string;
  readonly url: string;
}

/** An event for the endpoint of its client domain, wherever that is when it is sent, and held while it is quarantined. */
export interface KybEvent extends AnnouncedEvent {
  readonly channel: "kyb";
}

export type NewEvent = KycEvent | KybEvent;

const day = 86_400;

/** A body without personal data stays this long if no attempt is made: longer than a quarantine holds it. */
const bodySeconds = 35 * day;
/** After an attempt it stays this long at least for a resend (decisions section 7, Outbox). */
export const resendSeconds = 30 * day;
/** A personal body of an order goes this long after it was delivered (decisions section 5, Purge). */
export const deliveredDataSeconds = day;
/** What is still to be told of a forgotten stream goes then at the latest: longer than its attempts take. */
export const forgottenSeconds = 7 * day;

/** When the body goes if nothing is ever sent, Unix seconds. */
export function purgeTimeOf(event: NewEvent, now: number): number {
  return event.payloadExpiresAt ?? now + bodySeconds;
}

/** Bodies above this size are sent a few at a time: together they would fill the memory. */
export const largeBytes = 64 * 1024;

export function isLarge(event: NewEvent): boolean {
  return Buffer.byteLength(event.body) > largeBytes;
}
