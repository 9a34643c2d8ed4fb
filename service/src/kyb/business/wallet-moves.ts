// Announces moves to the organizations that know the business (decisions section 6, Webhook events).
import type { Address } from "@svc/protocol";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { hasEndpoint } from "../../webhooks/index.ts";
import { attestationSeconds } from "../release/attestation-keys.ts";
import { listAcquaintedDomains } from "./acquaintance-store.ts";
import { findBusiness } from "./business-store.ts";
import { announce, type KybAnnouncement, newKybEventId } from "../event/events.ts";
import type { KybContext } from "../kyb-context.ts";

const event = "kyb.business.wallet_address_changed";

/**
 * Announces a move to every organization that is acquainted with the business, also by an earlier wallet, in the
 * transaction of the move: to each of its client domains in the same environment that has an endpoint. Each
 * announcement has its own stream, and an attestation, because receivers will verify future votes against the new
 * address.
 */
export async function announceWalletChanged(
  ctx: KybContext,
  tx: Queryable,
  address: Address,
): Promise<void> {
  const business = await findBusiness(tx, address);
  if (business === null || business.successor === null) return;
  const { environment, successor } = business;
  const announcements: KybAnnouncement[] = [];
  for (const clientDomainId of await listAcquaintedDomains(tx, { business: address, environment }))
    if (await hasEndpoint(tx, clientDomainId))
      announcements.push(
        await announcementOf(ctx, tx, { address, successor, environment, clientDomainId }),
      );
  if (announcements.length > 0) await announce(ctx, tx, announcements);
}

async function announcementOf(
  ctx: KybContext,
  tx: Queryable,
  of: Pick<KybAnnouncement, "clientDomainId" | "environment"> & {
    address: Address;
    successor: Address;
  },
): Promise<KybAnnouncement> {
  const { address, successor, environment, clientDomainId } = of;
  const now = ctx.clock.now();
  const eventId = newKybEventId(ctx);
  const streamId = ulid(ctx.clock, ctx.random);
  const sequence = 1;
  const payloadExpiresAt = now + attestationSeconds;
  const data = {
    business_wallet_address: address,
    new_business_wallet_address: successor,
    changed_at: now,
  };
  const attestation = await ctx.attestationKeys.sign(tx, {
    iss: `${ctx.config.baseUrl}/kyb`,
    aud: clientDomainId,
    sub: address,
    jti: eventId,
    iat: now,
    exp: payloadExpiresAt,
    event,
    stream_id: streamId,
    seq: sequence,
    livemode: environment === "live",
    ...data,
  });
  const place = { clientDomainId, environment, streamId, sequence, event, eventId } as const;
  return { ...place, data, attestation, payloadExpiresAt };
}
