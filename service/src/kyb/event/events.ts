import type { Environment } from "../../accounts/index.ts";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { enqueueEvents } from "../../webhooks/index.ts";
import type { KybContext } from "../kyb-context.ts";

/** All kinds of events for KYB endpoints (decisions section 6, Webhook events). */
export const kybEventKinds = [
  "kyb.data_request.pending_approval",
  "kyb.data_request.released",
  "kyb.data_request.refused",
  "kyb.data_request.cancelled",
  "kyb.data_request.failed",
  "kyb.signature_request.pending_approval",
  "kyb.signature_request.signed",
  "kyb.signature_request.refused",
  "kyb.signature_request.expired",
  "kyb.signature_request.cancelled",
  "kyb.signature_request.failed",
  "kyb.business.wallet_address_changed",
  "kyb.endpoint.test",
] as const;

export type KybEventKind = (typeof kybEventKinds)[number];

/** One change to announce to the merchant. */
export interface KybAnnouncement {
  readonly clientDomainId: string;
  readonly environment: Environment;
  /** The id of the request; for tests and moves an id of their own. */
  readonly streamId: string;
  /** From 1 without a gap; the caller keeps the count in the row that has changed. */
  readonly sequence: number;
  readonly event: KybEventKind;
  /** In snake_case; without personal data, which only an attestation carries. */
  readonly data: Readonly<Record<string, unknown>>;
  /** Given if the id was made before, because an attestation contains it. */
  readonly eventId?: string;
  /** The signed attestation; the body is then stored only sealed. */
  readonly attestation?: string;
  /** When a body with an attestation is deleted, Unix seconds. */
  readonly payloadExpiresAt?: number;
}

const apiVersion = "v1";

/** An id for a new event: a ULID. */
export function newKybEventId(ctx: Pick<KybContext, "clock" | "random">): string {
  return ulid(ctx.clock, ctx.random);
}

/** Announces changes in the caller's transaction. @returns the ids of the events, in order */
export async function announce(
  ctx: Pick<KybContext, "clock" | "random" | "seal">,
  tx: Queryable,
  announcements: readonly KybAnnouncement[],
): Promise<string[]> {
  const now = ctx.clock.now();
  const events = announcements.map((each) => {
    const id = each.eventId ?? newKybEventId(ctx);
    const { event, streamId, sequence, data, attestation } = each;
    const body = {
      event,
      event_id: id,
      stream_id: streamId,
      seq: sequence,
      timestamp: now,
      api_version: apiVersion,
      livemode: each.environment === "live",
      data,
      ...(attestation === undefined ? {} : { attestation }),
    };
    return {
      id,
      streamId,
      sequence,
      kind: event,
      channel: "kyb" as const,
      clientDomainId: each.clientDomainId,
      body: JSON.stringify(body),
      isPersonal: attestation !== undefined,
      payloadExpiresAt: each.payloadExpiresAt ?? null,
    };
  });
  await enqueueEvents(ctx, tx, events);
  return events.map(({ id }) => id);
}
