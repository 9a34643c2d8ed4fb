import { type Address, businessCategory } from "@svc/protocol";
import { type ApiKey, type Requester, verifiedDomainOf } from "../../accounts/index.ts";
import { ulid } from "../../platform/ids.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import { workInTransactions } from "../../platform/database/work-in-batches.ts";
import { Problem } from "../../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../../platform/cryptography/seal.ts";
import { cancelBallot, expireAmong, openBallot } from "../ballot/ballots.ts";
import { holdBusiness } from "../business/business-store.ts";
import { type ReadDocument, refuseDocument, type SignedDocument } from "./document.ts";
import { announce } from "../event/events.ts";
import type { KybContext } from "../kyb-context.ts";
import { checkKnown, refuseStanding, refuseUnheard } from "./request-checks.ts";
import { checkRequestLimits } from "./request-limits.ts";
import {
  announcementOf,
  clampWindow,
  type SignatureReason,
  type SignatureRequest,
} from "./signature-request.ts";
import * as store from "./signature-request-store.ts";

export const documentColumn: SealedColumn = {
  table: "signature_request",
  idColumn: "id",
  column: "document_sealed",
};

/** A signature request to be made. */
export interface NewSignatureRequest extends ReadDocument {
  readonly business: Address;
  readonly purpose: string;
  readonly expiresInSeconds: number | null;
}

const retentionSeconds = 30 * 86_400;
const dueBatch = 100;

/**
 * Asks a business for a signature, in the caller's transaction.
 *
 * @throws {Problem} business_not_found, no_webhook_endpoint, document_refused, business_not_verified, rate_limited,
 * requester_blocked
 */
export async function requestSignature(
  ctx: KybContext,
  tx: Queryable,
  given: { requester: Requester; request: NewSignatureRequest },
): Promise<SignatureRequest> {
  const { requester, request } = given;
  const { organizationId, clientDomainId, environment } = requester;
  const business = await holdBusiness(tx, request.business);
  checkKnown(business, requester);
  await refuseUnheard(tx, requester);
  refuseDocument(request.document, signingRequesterOf(ctx, requester));
  refuseStanding(business);
  const overdue = await checkRequestLimits(ctx, tx, { organizationId, business: business.address });
  const now = ctx.clock.now();
  const id = ulid(ctx.clock, ctx.random);
  const made: SignatureRequest = {
    id,
    clientDomainId,
    organizationId,
    environment,
    business: business.address,
    messageKind: request.document.messageKind,
    digest: request.digest,
    purpose: request.purpose,
    status: "pending_approval",
    reason: null,
    sequence: 1,
    createdAt: now,
    expiresAt: now + clampWindow(request.expiresInSeconds),
    recordings: 0,
    transactionHash: null,
    signedAt: null,
  };
  const written = Buffer.from(JSON.stringify(request.document));
  await store.insertRequest(tx, made, ctx.seal.seal(written, placeIn(documentColumn, id)));
  await openBallot(ctx, tx, {
    id,
    kind: "signature_request",
    business,
    category: businessCategory.signature,
    hash: made.digest,
    clientDomainId,
    expiresAt: made.expiresAt,
  });
  await announce(ctx, tx, [announcementOf(made, ctx.chain.chainId)]);
  // Last, because it may release money, and all requests of the organization contend for that row.
  await expireAmong(ctx, tx, overdue);
  return made;
}

/** What {@link refuseDocument} needs to know: the requester's domain, only while it is verified, and the chain. */
export function signingRequesterOf(
  ctx: Pick<KybContext, "chain">,
  requester: Pick<Requester, "domain" | "verified">,
): { domain: string; chainId: number } {
  return { domain: verifiedDomainOf(requester), chainId: ctx.chain.chainId };
}

/** A request of the caller's client domain. @throws {Problem} request_not_found */
export async function getSignatureRequest(
  ctx: { readonly db: Queryable },
  key: Pick<ApiKey, "clientDomainId">,
  id: string,
): Promise<SignatureRequest> {
  const found = await store.findRequest(ctx.db, id);
  if (found?.clientDomainId !== key.clientDomainId) throw new Problem("request_not_found");
  return found;
}

/** Ends an open request, in the caller's transaction. @throws {Problem} request_not_found, request_not_open */
export async function cancelSignatureRequest(
  ctx: KybContext,
  tx: Queryable,
  given: { key: Pick<ApiKey, "clientDomainId">; id: string },
): Promise<SignatureRequest> {
  const { id } = await getSignatureRequest({ db: tx }, given.key, given.id);
  await cancelBallot(ctx, tx, id);
  const ended = await endSignatureRequest(ctx, tx, { id, status: "cancelled", reason: null });
  if (ended !== null) return ended;
  const { status } = await getSignatureRequest({ db: tx }, given.key, id);
  if (status !== "pending_approval") throw new Problem("request_not_open");
  throw new Problem("request_not_open", {
    message: "request_not_open: its members have approved it, and the chain records it",
  });
}

/** Ends an open request and announces that. @returns null if it had ended already */
export async function endSignatureRequest(
  ctx: KybContext,
  tx: Queryable,
  end: {
    id: string;
    status: "refused" | "expired" | "cancelled" | "failed";
    reason: SignatureReason | null;
  },
): Promise<SignatureRequest | null> {
  const ended = await store.endRequest(tx, { ...end, now: ctx.clock.now() });
  if (ended !== null) await announce(ctx, tx, [announcementOf(ended, ctx.chain.chainId)]);
  return ended;
}

/** Announces refusals whose delay is over, so that the time does not reveal when members voted. */
export async function announceSignatureRefusals(ctx: KybContext): Promise<void> {
  await workInTransactions(ctx.db, dueBatch, async (tx, limit) => {
    const due = await store.lockRefused(tx, ctx.clock.now(), limit);
    for (const id of due)
      await endSignatureRequest(ctx, tx, { id, status: "refused", reason: "declined" });
    return due.length;
  });
}

/** Deletes documents 30 days after the end of their request. */
export async function purgeDocuments(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - retentionSeconds;
  await purgeInBatches(async (limit) => store.purgeDocuments(ctx.db, before, limit));
}

/** The document of a sealed row. @throws {SealBroken} */
export function openDocument(
  ctx: Pick<KybContext, "seal">,
  row: { id: string; documentSealed: Buffer },
): SignedDocument {
  const written = ctx.seal.open(row.documentSealed, placeIn(documentColumn, row.id)).toString();
  return JSON.parse(written) as SignedDocument;
}
