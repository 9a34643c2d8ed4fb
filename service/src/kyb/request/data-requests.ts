import { type Address, type BusinessFieldName, businessCategory } from "@svc/protocol";
import { type ApiKey, hold, type Hold, releaseHold, type Requester } from "../../accounts/index.ts";
import { findCompanyNames, isSoleProprietor } from "../../credentials/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { workInTransactions } from "../../platform/database/work-in-batches.ts";
import { ulid } from "../../platform/ids.ts";
import { Problem } from "../../platform/http/problems.ts";
import { cancelBallot, expireAmong, openBallot } from "../ballot/ballots.ts";
import type { Business } from "../business/business.ts";
import { findBusiness, holdBusiness } from "../business/business-store.ts";
import { checkEntitled } from "../entitlement.ts";
import {
  announcementOf,
  type DataRequest,
  type DataRequestReason,
  dataRequestSeconds,
  requestedFields,
  type RequestedField,
  requiredNames,
} from "./data-request.ts";
import * as store from "./data-request-store.ts";
import { type AskedFields, type DataTerms, knownFields } from "./data-request-terms.ts";
import { announce } from "../event/events.ts";
import type { KybContext } from "../kyb-context.ts";
import { totalOf } from "../billing/pricing.ts";
import { checkKnown, refuseStanding, refuseUnheard } from "./request-checks.ts";
import { checkRequestLimits } from "./request-limits.ts";

/**
 * Asks a business for data, in the caller's transaction, and holds the most that it may cost. The order of the checks
 * is the documented one.
 *
 * @throws {Problem} business_not_found, unknown_field, pii_not_entitled, no_webhook_endpoint, business_not_verified,
 * field_not_available, requester_blocked, rate_limited, request_already_open, no_credit_account, insufficient_credit
 */
export async function requestData(
  ctx: KybContext,
  tx: Queryable,
  given: { requester: Requester; request: DataTerms & { readonly business: Address } },
): Promise<DataRequest> {
  const { requester, request } = given;
  const { clientDomainId, organizationId, environment } = requester;
  const business = await holdBusiness(tx, request.business);
  checkKnown(business, requester);
  const fields = await priceFields(tx, { requester, business, asked: request });
  await refuseUnheard(tx, requester);
  refuseStanding(business);
  await refuseUnavailable(ctx, tx, { business, required: requiredNames(fields) });
  const overdue = await checkRequestLimits(ctx, tx, { organizationId, business: business.address });
  const now = ctx.clock.now();
  const made: DataRequest = {
    id: ulid(ctx.clock, ctx.random),
    clientDomainId,
    organizationId,
    environment,
    business: business.address,
    purpose: request.purpose,
    reference: request.reference,
    fields,
    quotedRappen: totalOf(fields),
    status: "pending_approval",
    reason: null,
    sequence: 1,
    createdAt: now,
    expiresAt: now + dataRequestSeconds,
    fixedOptional: null,
    approvedAt: null,
  };
  await insertAlone(ctx, tx, made);
  await openBallot(ctx, tx, {
    id: made.id,
    kind: "data_request",
    business,
    category: businessCategory.data,
    hash: null,
    clientDomainId,
    expiresAt: made.expiresAt,
  });
  await announce(ctx, tx, [announcementOf(made)]);
  // Last, because all requests of the organization contend for the row of its available credit.
  await expireAmong(ctx, tx, overdue);
  await hold(ctx, tx, { ...holdOf(made), amountRappen: BigInt(made.quotedRappen) });
  return made;
}

/** @throws {Problem} request_already_open, naming it in the details */
async function insertAlone(ctx: KybContext, tx: Queryable, made: DataRequest): Promise<void> {
  while (!(await store.insertRequest(tx, made))) {
    const openRequestId = await store.findOpenRequest(tx, made);
    // It may have ended in the meantime.
    if (openRequestId === null) continue;
    // It may have expired without having been ended yet.
    await expireAmong(ctx, tx, [openRequestId]);
    if ((await store.findOpenRequest(tx, made)) === openRequestId)
      throw new Problem("request_already_open", { details: { openRequestId } });
  }
}

/**
 * The prices of fields, and whether they are personal: according to the catalogue, and for a given business also
 * because it is a single person.
 *
 * @throws {Problem} business_not_found, unknown_field, pii_not_entitled
 */
export async function quoteFields(
  db: Queryable,
  given: { requester: Requester; business: Address | null; asked: AskedFields },
): Promise<RequestedField[]> {
  const { requester, asked } = given;
  if (given.business === null) return requestedFields(knownFields(asked), false);
  const business = await findBusiness(db, given.business);
  checkKnown(business, requester);
  return priceFields(db, { requester, business, asked });
}

async function priceFields(
  db: Queryable,
  given: { requester: Requester; business: Business; asked: AskedFields },
): Promise<RequestedField[]> {
  const known = knownFields(given.asked);
  const { address: business, environment } = given.business;
  const isSole = await isSoleProprietor(db, { environment, business });
  const fields = requestedFields(known, isSole);
  if (fields.some(({ naturalPersonPii }) => naturalPersonPii))
    checkEntitled(given.requester, "kyb:pii");
  return fields;
}

/** @throws {Problem} field_not_available, naming them in the details */
async function refuseUnavailable(
  ctx: Pick<KybContext, "clock">,
  tx: Queryable,
  { business, required }: { business: Business; required: readonly BusinessFieldName[] },
): Promise<void> {
  const { address, environment } = business;
  const question = { environment, business: address, names: required, now: ctx.clock.now() };
  const live = await findCompanyNames(tx, question);
  const missing = required.filter((name) => !live.has(name));
  if (missing.length > 0)
    throw new Problem("field_not_available", { details: { fields: missing } });
}

/** The ledger's hold for a request. */
export function holdOf(request: DataRequest): Pick<Hold, "purse" | "subject"> {
  const { organizationId, environment, id } = request;
  return { purse: { organizationId, environment }, subject: id };
}

/** A request of the caller's client domain. @throws {Problem} request_not_found */
export async function getDataRequest(
  ctx: { readonly db: Queryable },
  key: Pick<ApiKey, "clientDomainId">,
  id: string,
): Promise<DataRequest> {
  const found = await store.findRequest(ctx.db, id);
  if (found?.clientDomainId !== key.clientDomainId) throw new Problem("request_not_found");
  return found;
}

/** Ends an open request, in the caller's transaction. @throws {Problem} request_not_found, request_not_open */
export async function cancelDataRequest(
  ctx: KybContext,
  tx: Queryable,
  given: { key: Pick<ApiKey, "clientDomainId">; id: string },
): Promise<DataRequest> {
  const { id } = await getDataRequest({ db: tx }, given.key, given.id);
  await cancelBallot(ctx, tx, id);
  const ended = await endDataRequest(ctx, tx, { id, status: "cancelled", reason: null });
  if (ended === null) throw new Problem("request_not_open");
  return ended;
}

/**
 * Ends an open request without a release: its money is released, and the end is announced.
 *
 * @returns null if it had ended already
 */
export async function endDataRequest(
  ctx: KybContext,
  tx: Queryable,
  end: {
    id: string;
    status: "refused" | "cancelled" | "failed";
    reason: DataRequestReason | null;
  },
): Promise<DataRequest | null> {
  const ended = await store.endRequest(tx, { ...end, now: ctx.clock.now() });
  if (ended === null) return null;
  await announce(ctx, tx, [announcementOf(ended)]);
  await releaseHold(ctx, tx, holdOf(ended));
  return ended;
}

/**
 * Announces refusals whose delay is over, and releases their money only then, so that neither reveals when members
 * voted. Each in a transaction of its own, for the same reason as in `expireBallots`.
 */
export async function announceDataRefusals(ctx: KybContext): Promise<void> {
  await workInTransactions(ctx.db, 1, async (tx, limit) => {
    const due = await store.lockRefused(tx, ctx.clock.now(), limit);
    for (const id of due)
      await endDataRequest(ctx, tx, { id, status: "refused", reason: "declined" });
    return due.length;
  });
}
