import { type Address, organizationIdentity } from "@svc/protocol";
import { type ApiKey, readRequester, verifiedDomainOf } from "../../accounts/index.ts";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import { Problem } from "../../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import { holdBusiness } from "../business/business-store.ts";
import { checkEntitled } from "../entitlement.ts";
import { knownFields } from "../request/data-request-terms.ts";
import { requestData } from "../request/data-requests.ts";
import { refuseDocument } from "../request/document.ts";
import type { KybContext } from "../kyb-context.ts";
import {
  clampOfferWindow,
  type Offer,
  offerIdOf,
  type OfferedRequest,
  offerStatusOf,
} from "./offer.ts";
import * as store from "./offer-store.ts";
import { refuseUnheard } from "../request/request-checks.ts";
import { requestSignature, signingRequesterOf } from "../request/signature-requests.ts";

export const offeredRequestColumn: SealedColumn = {
  table: "kyb_offer",
  idColumn: "id",
  column: "request_sealed",
};

/** An offer with its request, which is null once it has been purged. */
export interface OpenedOffer {
  readonly offer: Offer;
  readonly request: OfferedRequest | null;
}

const offeredKeptSeconds = 86_400;

/**
 * Makes an offer, in the caller's transaction. Checks already now what does not depend on a business, so that there are
 * no offers that nobody can take.
 *
 * @throws {Problem} no_webhook_endpoint, unknown_field, document_refused
 */
export async function makeOffer(
  ctx: KybContext,
  tx: Queryable,
  given: { key: ApiKey; request: OfferedRequest; windowSeconds?: number | undefined },
): Promise<OpenedOffer> {
  const { key, request } = given;
  await refuseUnheard(tx, key);
  if (request.kind === "data_request") knownFields(request);
  else refuseDocument(request.document, signingRequesterOf(ctx, key));
  const now = ctx.clock.now();
  const id = ulid(ctx.clock, ctx.random);
  const offer: Offer = {
    id,
    clientDomainId: key.clientDomainId,
    organizationId: key.organizationId,
    environment: key.environment,
    kind: request.kind,
    requester: verifiedDomainOf(key),
    createdAt: now,
    expiresAt: now + clampOfferWindow(given.windowSeconds),
    cancelledAt: null,
    claimedAt: null,
    business: null,
    claimant: null,
    requestId: null,
    digest: request.kind === "signature_request" ? request.digest : null,
  };
  const sealed = ctx.seal.seal(
    Buffer.from(JSON.stringify(request)),
    placeIn(offeredRequestColumn, id),
  );
  await store.insertOffer(tx, offer, sealed);
  return { offer, request };
}

/** An offer of the caller's client domain. @throws {Problem} offer_not_found */
export async function getOffer(
  ctx: Pick<KybContext, "db" | "seal">,
  key: Pick<ApiKey, "clientDomainId">,
  id: string,
): Promise<OpenedOffer> {
  const found = await store.findOffer(ctx.db, id);
  if (found?.offer.clientDomainId !== key.clientDomainId) throw new Problem("offer_not_found");
  return open(ctx, found);
}

/** Ends an open offer, in the caller's transaction. @throws {Problem} offer_not_found, offer_not_open */
export async function cancelOffer(
  ctx: Pick<KybContext, "clock" | "seal">,
  tx: Queryable,
  given: { key: Pick<ApiKey, "clientDomainId">; id: string },
): Promise<OpenedOffer> {
  const found = await store.lockOffer(tx, given.id);
  if (found?.offer.clientDomainId !== given.key.clientDomainId)
    throw new Problem("offer_not_found");
  const now = ctx.clock.now();
  if (offerStatusOf(found.offer, now) !== "OPEN") throw new Problem("offer_not_open");
  await store.markCancelled(tx, given.id, now);
  return open(ctx, { ...found, offer: { ...found.offer, cancelledAt: now } });
}

/**
 * The signed request object behind an offer's link, which says who offers what; it is made once and stored (decisions
 * section 3, Request object). Until the offer expires it is also shown after it was taken, so that a member who took it
 * but did not get the answer can repeat the claim; others are refused there.
 *
 * @throws {Problem} offer_not_found, offer_not_open
 */
export async function openOffer(ctx: KybContext, token: string): Promise<string> {
  const { offer, request } = await findByToken(ctx, token);
  const now = ctx.clock.now();
  const status = offerStatusOf(offer, now);
  const isShown = status === "OPEN" || (status === "CLAIMED" && offer.expiresAt >= now);
  if (!isShown || request === null) throw new Problem("offer_not_open");
  const known = await store.findObject(ctx.db, offer.id);
  return known ?? store.keepObject(ctx.db, offer.id, await signObject(ctx, offer, request));
}

async function signObject(ctx: KybContext, offer: Offer, request: OfferedRequest): Promise<string> {
  const name = await store.findOrganizationName(ctx.db, offer.organizationId);
  const isData = request.kind === "data_request";
  return ctx.signRequestObject({
    iss: ctx.config.baseUrl,
    aud: "svc-wallet",
    action: isData ? "request" : "sign",
    id: offer.id,
    client_name: name ?? "",
    domain: offer.requester,
    from: organizationIdentity(offer.organizationId),
    required: isData ? request.fields : [],
    optional: isData ? request.optionalFields : [],
    ...(isData ? { callback_host: new URL(ctx.config.baseUrl).host } : {}),
    scopes: [],
    purpose: request.purpose,
    iat: offer.createdAt,
    exp: offer.expiresAt,
  });
}

/** A member takes an offer for its business. */
export interface Claim {
  readonly token: string;
  readonly member: Address;
  readonly business: Address;
}

/** The request that a claim has started. */
export interface ClaimedOffer {
  readonly offerId: string;
  readonly requestId: string;
  /** Unix seconds: until when members may vote. */
  readonly expiresAt: number;
}

/**
 * Takes an offer for a business: makes the request, which members then find in their inbox. The same claim gets the
 * same answer again; for anybody else an offer that was taken is over.
 *
 * @throws {Problem} offer_not_found, offer_not_open, not_a_member, and the refusals of a request of that kind
 */
export async function claimOffer(ctx: KybContext, claim: Claim): Promise<ClaimedOffer> {
  const id = offerIdOf(ctx, claim.token);
  if (id === null) throw new Problem("offer_not_found");
  return ctx.db.transaction(async (tx) => {
    const found = await store.lockOffer(tx, id);
    if (found === null) throw new Problem("offer_not_found");
    const { offer, request } = open(ctx, found);
    await refuseStranger(tx, claim, offer);
    const now = ctx.clock.now();
    const { requestId } = offer;
    if (
      requestId !== null &&
      offer.business === claim.business &&
      offer.claimant === claim.member
    ) {
      const expiresAt = (await store.findRequestEnd(tx, requestId)) ?? offer.expiresAt;
      return { offerId: id, requestId, expiresAt };
    }
    if (offerStatusOf(offer, now) !== "OPEN" || request === null)
      throw new Problem("offer_not_open");
    const made = await begin(ctx, tx, { offer, request, business: claim.business });
    const { business, member: claimant } = claim;
    await store.markClaimed(tx, { id, business, claimant, requestId: made.id, now });
    return { offerId: id, requestId: made.id, expiresAt: made.expiresAt };
  });
}

/** Refuses anybody but a voting member of the business, and a business of the other environment. */
async function refuseStranger(
  tx: Queryable,
  { business: address, member }: Claim,
  offer: Offer,
): Promise<void> {
  const business = await holdBusiness(tx, address);
  const isMember = business?.charter.members.some(
    (each) => each.address === member && each.isVoting,
  );
  if (isMember !== true || business?.environment !== offer.environment)
    throw new Problem("not_a_member");
}

/**
 * Makes the offered request. The requester must still be entitled to it. Details of a 402 are dropped, because the
 * claiming member must not learn about the requester's credit.
 */
async function begin(
  ctx: KybContext,
  tx: Queryable,
  given: { offer: Offer; request: OfferedRequest; business: Address },
): Promise<{ id: string; expiresAt: number }> {
  const { request, business } = given;
  const requester = await readRequester(ctx, tx, given.offer.clientDomainId);
  if (request.kind === "signature_request") {
    checkEntitled(requester, "kyb:signature");
    return requestSignature(ctx, tx, { requester, request: { ...request, business } });
  }
  checkEntitled(requester, "kyb:data-request");
  try {
    return await requestData(ctx, tx, { requester, request: { ...request, business } });
  } catch (error) {
    throw error instanceof Problem && error.status === 402 ? new Problem(error.reason) : error;
  }
}

/** Deletes the requests of offers a day after they expired. */
export async function purgeOffers(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - offeredKeptSeconds;
  await purgeInBatches(async (limit) => store.purgeOffered(ctx.db, before, limit));
}

/** @throws {Problem} offer_not_found for a token that is not ours */
async function findByToken(ctx: KybContext, token: string): Promise<OpenedOffer> {
  const id = offerIdOf(ctx, token);
  const found = id === null ? null : await store.findOffer(ctx.db, id);
  if (found === null) throw new Problem("offer_not_found");
  return open(ctx, found);
}

function open(ctx: Pick<KybContext, "seal">, stored: store.StoredOffer): OpenedOffer {
  const { offer, requestSealed } = stored;
  if (requestSealed === null) return { offer, request: null };
  const written = ctx.seal.open(requestSealed, placeIn(offeredRequestColumn, offer.id)).toString();
  return { offer, request: JSON.parse(written) as OfferedRequest };
}
