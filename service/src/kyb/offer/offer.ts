import { buildLink, type Hex32, organizationIdentity, universalLinkOf } from "@svc/protocol";
import type { Environment } from "../../accounts/index.ts";
import { equalBytes } from "../../platform/cryptography/mac.ts";
import type { KybContext } from "../kyb-context.ts";
import type { DataTerms } from "../request/data-request-terms.ts";
import type { ReadDocument } from "../request/document.ts";

type OfferKind = "data_request" | "signature_request";
export type OfferStatus = "OPEN" | "CLAIMED" | "CANCELLED" | "EXPIRED";

/** A request in a QR code, which a member who scans it can take for a business. */
export interface Offer {
  readonly id: string;
  readonly clientDomainId: string;
  readonly organizationId: string;
  readonly environment: Environment;
  readonly kind: OfferKind;
  /** The verified domain of the requester when the offer was made; empty if none was verified. */
  readonly requester: string;
  readonly createdAt: number;
  readonly expiresAt: number;
  readonly cancelledAt: number | null;
  readonly claimedAt: number | null;
  readonly business: string | null;
  /** The member who took it; purged later. */
  readonly claimant: string | null;
  readonly requestId: string | null;
  /** The digest of an offered document, which stays when the document is purged; null for a data request. */
  readonly digest: Hex32 | null;
}

/** What is asked of the business that takes the offer, sealed with the offer. */
export type OfferedRequest =
  | ({ readonly kind: "data_request" } & DataTerms)
  | (ReadDocument & {
      readonly kind: "signature_request";
      readonly purpose: string;
      readonly expiresInSeconds: number | null;
    });

const windowSeconds = { min: 300, default: 1800, max: 3600 };
const macBytes = 16;

/** How long an offer is open, in seconds: as requested within 5 minutes to an hour, by default 30 minutes. */
export function clampOfferWindow(asked: number | undefined): number {
  return Math.min(Math.max(asked ?? windowSeconds.default, windowSeconds.min), windowSeconds.max);
}

export function offerStatusOf(
  offer: Pick<Offer, "claimedAt" | "cancelledAt" | "expiresAt">,
  now: number,
): OfferStatus {
  if (offer.claimedAt !== null) return "CLAIMED";
  if (offer.cancelledAt !== null) return "CANCELLED";
  return offer.expiresAt < now ? "EXPIRED" : "OPEN";
}

/** The token in the link. It is derived from the id by a secret key, so it need not be stored. */
function offerTokenOf(ctx: Pick<KybContext, "keys">, id: string): string {
  const mac = ctx.keys.mac("kyb-offer", id).subarray(0, macBytes);
  return `${id}.${mac.toString("base64url")}`;
}

/** The offer's id in a genuine token; null for any other text. */
export function offerIdOf(ctx: Pick<KybContext, "keys">, token: string): string | null {
  const [id = ""] = token.split(".", 1);
  return equalBytes(Buffer.from(token), Buffer.from(offerTokenOf(ctx, id))) ? id : null;
}

/** `conn` of the offer's link. */
function connectionOfOffer(ctx: Pick<KybContext, "keys" | "config">, id: string): string {
  return `${ctx.config.baseUrl}/w/f/${offerTokenOf(ctx, id)}`;
}

/** The links of an offer, always the same. */
export function linksOf(
  ctx: Pick<KybContext, "keys" | "config">,
  offer: Offer,
): { link: string; universalLink: string } {
  const route = {
    connection: connectionOfOffer(ctx, offer.id),
    deadline: offer.expiresAt,
    returnType: "callback",
  } as const;
  const { digest } = offer;
  const link =
    digest === null
      ? buildLink({
          action: "request",
          ...route,
          from: organizationIdentity(offer.organizationId),
          attributes: ["business"],
          id: offer.id,
        })
      : buildLink({ action: "sign", ...route, data: digest });
  return { link, universalLink: universalLinkOf(ctx.config.walletOrigin, link) };
}
