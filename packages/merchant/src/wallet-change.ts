import type { Address } from "@svc/protocol";

import { refused, verifyClaims, type AttestationChecks } from "./kyb-claims.ts";
import { type AnyKybEvent, walletChanged } from "./kyb-event.ts";
import { openMembers, type Members } from "./members.ts";

/** The verified fact that a business continues in another wallet. */
export interface WalletChange {
  /** The event's id: store it, so that you handle the event only once. */
  eventId: string;
  /** The wallet that you know: what it has signed stays with it. */
  business: Address;
  /**
   * The wallet in which the business says it continues. Nobody asked that wallet: treat it as another company until
   * somebody has logged in for it and said that both are one.
   */
  newBusiness: Address;
  /** Unix seconds, as every time here. */
  changedAt: number;
  issuedAt: number;
  expiresAt: number;
  livemode: boolean;
}

/**
 * Verifies the service's statement that a business continues in another wallet: what {@link verifyClaims} checks, then
 * that the attestation is about a move, and that each member of the envelope's `data` is what was signed (decisions,
 * section 6, Webhook events). It proves what the old wallet said, and nothing about the new one.
 *
 * @param attestation of the event
 * @param checks `event` may be absent for an attestation that you have stored
 * @throws {MerchantError} attestation_refused, its `reason` names the check; issuer_unreachable; rate_limited;
 * response_invalid; configuration_invalid
 */
export async function verifyWalletChange(
  attestation: string,
  checks: AttestationChecks,
): Promise<WalletChange> {
  const claims = openMembers(await verifyClaims(attestation, checks), refused);
  // A release signed by the same key is not a move, whatever else it contains.
  if (claims.text("event") !== walletChanged) throw refused("event");
  const change = readChange(claims);
  if (checks.event !== undefined) checkEnvelope(change, checks.event);
  return change;
}

function readChange(claims: Members): WalletChange {
  const business = claims.address("business_wallet_address");
  if (claims.address("sub") !== business) throw refused("sub");
  const newBusiness = claims.address("new_business_wallet_address");
  if (newBusiness === business) throw refused("new_business_wallet_address");
  return {
    eventId: claims.text("jti"),
    business,
    newBusiness,
    changedAt: claims.count("changed_at"),
    issuedAt: claims.count("iat"),
    expiresAt: claims.count("exp"),
    livemode: claims.flag("livemode"),
  };
}

function checkEnvelope(change: WalletChange, event: AnyKybEvent): void {
  if (event.event !== walletChanged) throw refused("event");
  if (event.livemode !== change.livemode) throw refused("livemode");
  if (event.business !== change.business) throw refused("business_wallet_address");
  if (event.newBusiness !== change.newBusiness) throw refused("new_business_wallet_address");
  if (event.changedAt !== change.changedAt) throw refused("changed_at");
}
