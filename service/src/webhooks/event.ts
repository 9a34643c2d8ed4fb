/** The API that an event belongs to; each signs in its own way. */
export type Channel = "kyc" | "kyb";

/** An event to announce. */
export interface AnnouncedEvent {
  /** The same in every delivery: `newEventId` for orders, a ULID for businesses. */
  readonly id: string;
  /** The id of what it is about, such as an order. */
  readonly streamId: string;
  /** Counts the events of its stream from 1 without a gap; the caller keeps the count in the row that has changed. */
  readonly sequence: number;
  readonly kind: string;
  readonly clientDomainId: string;
  /** Sent byte for byte by every attempt. */
  readonly body: string;
  /** Whether the body holds personal data: then it is stored sealed, and purged. */
  readonly isPersonal: boolean;
  /** Unix seconds: when a personal body is purged at the latest, delivered or not. */
  readonly payloadExpiresAt: number | null;
}

/** An event of an order, sent to the callback that the order names. */
export interface KycEvent extends AnnouncedEvent {
  readonly channel: "kyc";
  /** Id of the package whose signing key signs it when it is sent. */
  readonly keyId: string;
  readonly url: string;
}

/** An event for its client domain's endpoint: sent to the URL it then has, held while it is in quarantine. */
export interface KybEvent extends AnnouncedEvent {
  readonly channel: "kyb";
}

export type NewEvent = KycEvent | KybEvent;

const day = 86_400;

/** A body without personal data is kept this long if no attempt is made, as during a quarantine. */
const bodySeconds = 35 * day;
/** After an attempt it is kept at least this long, so that it can be sent again (decisions section 7, Outbox). */
export const resendSeconds = 30 * day;
/** A personal body of an order is purged this long after it was delivered (decisions section 5, Purge). */
export const deliveredDataSeconds = day;
/** Undelivered bodies of a forgotten stream are purged after this: the whole schedule of attempts takes less. */
export const forgottenSeconds = 7 * day;

/** When the body is purged if no attempt is ever made, Unix seconds. */
export function purgeTimeOf(event: NewEvent, now: number): number {
  return event.payloadExpiresAt ?? now + bodySeconds;
}

/** Of bodies above this size only a few are sent at a time; many at once would fill the memory. */
export const largeBytes = 64 * 1024;

export function isLarge(event: NewEvent): boolean {
  return Buffer.byteLength(event.body) > largeBytes;
}
