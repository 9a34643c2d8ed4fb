import { capture, readRequester } from "../../accounts/index.ts";
import { type CompanyField, isSoleProprietor, listCompanyFields } from "../../credentials/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import { chainGraceSeconds, reopenBallot } from "../ballot/ballots.ts";
import { isGoodStanding } from "../business/business.ts";
import type { Deferred } from "../../platform/deferred.ts";
import { purgeInBatches } from "../../platform/database/purge.ts";
import { ulid } from "../../platform/ids.ts";
import { Problem } from "../../platform/http/problems.ts";
import { placeIn, SealBroken, type SealedColumn } from "../../platform/cryptography/seal.ts";
import { attestationSeconds } from "./attestation-keys.ts";
import { noteBusinessAcquaintance } from "../business/acquaintance-store.ts";
import { holdBusiness } from "../business/business-store.ts";
import {
  agreedFields,
  announcementOf,
  type DataRequest,
  linesOf,
  type RequestedField,
} from "../request/data-request.ts";
import * as requests from "../request/data-request-store.ts";
import { endDataRequest, holdOf } from "../request/data-requests.ts";
import { announce, newKybEventId } from "../event/events.ts";
import type { KybContext } from "../kyb-context.ts";
import { totalOf } from "../billing/pricing.ts";
import { attestationClaims, decideRelease, releasedData } from "./release.ts";
import * as store from "./release-store.ts";

export const attestationColumn: SealedColumn = {
  table: "data_release",
  idColumn: "request_id",
  column: "attestation_sealed",
};

/**
 * Releases all approved requests. Runs in every process whenever an approval commits, and periodically, since a process
 * may die before it has released. A request that fails is left to the next run, and does not stop the others.
 *
 * @param deferred requests whose values this process cannot open for now
 */
export async function releaseApproved(ctx: KybContext, deferred: Deferred): Promise<void> {
  const failures: { id: string; error: unknown }[] = [];
  for (;;) {
    const except = [...failures.map(({ id }) => id), ...deferred.ids()];
    const looked = await releaseNext(ctx, except);
    if (looked === null) break;
    if (looked.error !== null) failures.push(looked);
    if (looked.error instanceof SealBroken) deferred.add(looked.id);
  }
  const [first] = failures;
  if (first !== undefined)
    throw new Error(`${failures.length} releases failed, ${first.id} first`, {
      cause: first.error,
    });
}

/** @returns the request that was tried, and the error that prevented its release; null if there was none to release */
async function releaseNext(
  ctx: KybContext,
  except: readonly string[],
): Promise<{ id: string; error: unknown } | null> {
  let id: string | null = null;
  try {
    await ctx.db.transaction(async (tx) => {
      const request = await requests.lockApproved(tx, except);
      id = request?.id ?? null;
      if (request !== null) await release(ctx, tx, request);
    });
  } catch (error) {
    if (id === null) throw error;
    return { id, error };
  }
  return id === null ? null : { id, error: null };
}

/**
 * Releases and charges in one transaction, in which the request is locked, or ends the request if it cannot be released
 * any more.
 */
async function release(ctx: KybContext, tx: Queryable, request: DataRequest): Promise<void> {
  const { id } = request;
  const business = await holdBusiness(tx, request.business);
  if (business === null) throw new Error("businesses are never deleted");
  if (isGoodStanding(business) && !(await isStillApproved(ctx, tx, request))) return;
  const { entitlements } = await readRequester(ctx, tx, request.clientDomainId);
  const read = await openLive(ctx, tx, request);
  if (read === "broken") {
    ctx.log.error(
      { alarm: "release-broken", request: id },
      "a data request failed: a value that was approved cannot be read",
    );
    await endDataRequest(ctx, tx, { id, status: "failed", reason: "unavailable" });
    return;
  }
  const { live } = read;
  const decision = decideRelease(request, { business, entitlements, ...read });
  if (decision.kind === "failed") {
    await endDataRequest(ctx, tx, { id, status: "failed", reason: decision.reason });
    return;
  }
  const { fields } = decision;
  const values = live.filter(({ name }) => fields.some((field) => field.name === name));
  const made = await attest(ctx, tx, { request, values, fields });
  await announce(ctx, tx, [made]);
  const now = ctx.clock.now();
  const { business: address, organizationId, clientDomainId } = request;
  await noteBusinessAcquaintance(tx, { business: address, organizationId, now });
  const lines = linesOf(fields);
  await ctx.audit.record(tx, {
    actor: address,
    action: "data-request.release",
    subject: id,
    details: { clientDomainId, fields: fields.map(({ name }) => name), cents: totalOf(lines) },
  });
  // Last, because all requests of the organization contend for its ledger rows.
  await capture(ctx, tx, { ...holdOf(request), amountRappen: BigInt(totalOf(lines)) });
}

/**
 * Whether the approvals are still valid. If members or rules have changed, they are void and are collected again. They
 * also end at the signed time, even if the release was impossible until then (decisions section 6, Approval).
 */
async function isStillApproved(
  ctx: KybContext,
  tx: Queryable,
  { id, expiresAt }: DataRequest,
): Promise<boolean> {
  if (ctx.clock.now() > expiresAt + chainGraceSeconds) {
    await endDataRequest(ctx, tx, { id, status: "refused", reason: "expired" });
    return false;
  }
  if (!(await reopenBallot(ctx, tx, id))) return true;
  await requests.clearApproval(tx, id);
  return false;
}

interface LiveFields {
  readonly live: CompanyField[];
  readonly isSoleProprietor: boolean;
}

/**
 * The fields to release; `broken` if a value cannot be opened by any process.
 *
 * @throws {SealBroken} if another process may have the master key of a value; then that one can release, until the
 * approvals end
 */
async function openLive(
  ctx: KybContext,
  tx: Queryable,
  request: DataRequest,
): Promise<LiveFields | "broken"> {
  try {
    return await readLive(ctx, tx, request);
  } catch (error) {
    if (error instanceof SealBroken && !error.isKeyMissing) return "broken";
    throw error;
  }
}

/** The agreed fields that are valid now, and whether the business is a single person. */
async function readLive(ctx: KybContext, tx: Queryable, request: DataRequest): Promise<LiveFields> {
  const { business, environment } = request;
  const agreed = agreedFields(request).map(({ name }) => name);
  const question = { environment, business, names: agreed, now: ctx.clock.now() };
  return {
    live: await listCompanyFields(ctx, tx, question),
    isSoleProprietor: await isSoleProprietor(tx, { environment, business }),
  };
}

/** Signs the attestation, and stores it with its charge. @returns the event that announces it */
async function attest(
  ctx: KybContext,
  tx: Queryable,
  given: {
    request: DataRequest;
    values: readonly CompanyField[];
    fields: readonly RequestedField[];
  },
) {
  const { request, values, fields } = given;
  const now = ctx.clock.now();
  const eventId = newKybEventId(ctx);
  const sequence = request.sequence + 1;
  const { baseUrl } = ctx.config;
  const attestation = await ctx.attestationKeys.sign(
    tx,
    attestationClaims(request, { baseUrl, eventId, sequence, now, values }),
  );
  const lines = linesOf(fields);
  const expiresAt = now + attestationSeconds;
  const isMade = await store.insertRelease(tx, request, {
    attestationSealed: ctx.seal.seal(
      Buffer.from(attestation),
      placeIn(attestationColumn, request.id),
    ),
    leaves: values.map(({ name, subject, leaf }) => ({ name, subject, leaf })),
    now,
    expiresAt,
    chargeId: ulid(ctx.clock, ctx.random),
    amountRappen: totalOf(lines),
    lines,
  });
  if (!isMade) throw new Error("a locked request ended");
  const announced = announcementOf(
    { ...request, status: "released", sequence },
    releasedData(fields, now),
  );
  return { ...announced, eventId, attestation, payloadExpiresAt: expiresAt };
}

/** A release, for as long as it is stored. */
export interface Release {
  /** The attestation, byte for byte as delivered. */
  readonly attestation: string;
  readonly leaves: readonly store.ReleasedLeaf[];
  readonly releasedAt: number;
  readonly expiresAt: number;
}

/**
 * The release of a request.
 *
 * @throws {Problem} not_released before the release; payload_expired from 30 days after it, purged already or not
 */
export async function getRelease(
  ctx: Pick<KybContext, "db" | "clock" | "seal">,
  requestId: string,
): Promise<Release> {
  const row = await store.findRelease(ctx.db, requestId);
  if (row === null) throw new Problem("not_released");
  const { attestationSealed, leaves, releasedAt, expiresAt } = row;
  if (attestationSealed === null || leaves === null || expiresAt <= ctx.clock.now())
    throw new Problem("payload_expired", { message: "payload_expired: the release was purged" });
  const attestation = ctx.seal
    .open(attestationSealed, placeIn(attestationColumn, requestId))
    .toString();
  return { attestation, leaves, releasedAt, expiresAt };
}

/** Deletes the contents of releases 30 days after they were made. */
export async function purgeReleases(ctx: Pick<KybContext, "db" | "clock">): Promise<void> {
  const now = ctx.clock.now();
  await purgeInBatches(async (limit) => store.purgeReleases(ctx.db, now, limit));
}
