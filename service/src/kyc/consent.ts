// What the user's wallet does with an order: open it, approve it, decline it (decisions sections 3 and 5).
import {
  decodeInfos,
  declineDigest,
  encodeInfos,
  fieldsHash,
  type Hex32,
  hexOfBytes,
  type Info,
  isHexOf,
  leavesHash,
  organizationIdentity,
  parseResult,
  type Refusal,
  type ResultFault,
  requestObjectHash,
  type RequestResult,
  shareDigest,
  zeroHash,
} from "@svc/protocol";
import { verifySignature } from "../chain/index.ts";
import { listSupposedLeaves, matchLeaves } from "../credentials/index.ts";
import { bufferOfHex } from "../platform/hex.ts";
import { Problem } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { recoverAddress } from "../platform/cryptography/secp256k1.ts";
import { isComplete } from "./completeness.ts";
import * as store from "./consent-store.ts";
import type { KycContext } from "./kyc-context.ts";
import { mismatchesForgiven, steps } from "./order.ts";
import { connectionOf, hashOfToken } from "./order-connection.ts";
import { moveOrders } from "./transitions.ts";

/** What a user has released, until it is handed over. */
export const payloadColumn: SealedColumn = {
  table: "kyc_payload",
  idColumn: "order_id",
  column: "sealed",
};

/**
 * Returns the signed request object of a link, which says who asks for what. It is made once per link and stored, so
 * that opening again gives the same object. Opening a link ends earlier links of the order that were not opened.
 *
 * @throws {Problem} request_not_found, request_over
 */
export async function openOrder(ctx: KycContext, token: string): Promise<string> {
  const link = await getLink(ctx, token);
  refuseOver(ctx, link);
  if (link.requestObject !== null) return link.requestObject;
  const { order } = link;
  const object = ctx.signRequestObject({
    iss: ctx.config.baseUrl,
    aud: "svc-wallet",
    action: "request",
    id: order.referenceKey,
    client_name: link.organizationName,
    domain: link.requester,
    from: organizationIdentity(order.organizationId),
    required: order.required,
    optional: link.offered,
    callback_host: hostOf(link.callback),
    livemode: order.environment === "live",
    scopes: [],
    ...(order.purpose === null ? {} : { purpose: order.purpose }),
    iat: ctx.clock.now(),
    exp: link.expiration,
  });
  const kept = await store.keepRequestObject(ctx.db, link, { object, now: ctx.clock.now() });
  if (kept === null) throw new Problem("request_over");
  return kept;
}

/** What the wallet's answer did to the order. */
export interface Answered {
  readonly status: "INITIATING" | "FAILED";
  readonly referenceKey: string;
  /** Where the browser continues if it is on the same phone. */
  readonly returnUrl?: string;
}

/**
 * Processes the wallet's answer. Only an answer that the order's user signed has an effect.
 *
 * @param link what {@link getLink} found for the token
 * @throws {Problem} request_over, result_refused, rate_limited, chain_unavailable
 */
export async function answerOrder(
  ctx: KycContext,
  link: store.OrderLink,
  { token, body, callerAddress }: { token: string; body: unknown; callerAddress: string },
): Promise<Answered> {
  const result = parseResult("request", { type: "callback", body });
  if ("fault" in result) {
    throw refused(sayFault(result.fault));
  }
  if ("error" in result) return declineOrder(ctx, { token, link, refusal: result, callerAddress });
  try {
    return await approveOrder(ctx, { token, link, result, data: dataOf(body), callerAddress });
  } catch (error) {
    if (!(error instanceof Problem) || error.reason !== "request_over") throw error;
    // The same approval may have been accepted since the link was read, while this body was still arriving.
    const now = await getLink(ctx, token);
    if (!isApprovedBy(now, result)) throw error;
    return answered(now, "INITIATING");
  }
}

const isApprovedBy = (
  { approvedSignature }: store.OrderLink,
  { signature }: RequestResult,
): boolean => approvedSignature?.equals(bufferOfHex(signature)) === true;

/**
 * `data` of the signed `Share`, if the wallet sends it: with it the signature can be verified even if the values match
 * no issued field.
 */
function dataOf(body: unknown): Hex32 | null {
  const { data } = body as { data?: unknown };
  return typeof data === "string" && isHexOf(data, 32) ? data : null;
}

interface Approving {
  readonly token: string;
  readonly link: store.OrderLink;
  readonly result: RequestResult;
  readonly data: Hex32 | null;
  readonly callerAddress: string;
}

/** Only the first approval counts. A wallet that did not get the answer sends it again, and gets the same answer. */
async function approveOrder(ctx: KycContext, approving: Approving): Promise<Answered> {
  const { link, result } = approving;
  if (isApprovedBy(link, result)) return answered(link, "INITIATING");
  refuseOver(ctx, link);
  checkSameRequest(link, result);
  const released = await readReleased(ctx, link, result.infos);
  const { infos, isWanted } = released;
  const leaves = released.leaves.filter((leaf) => leaf !== null);
  const areIssued = leaves.length === infos.length;
  const signed = await findSigned(ctx, approving, released);
  if (signed === null) throw refusedSignature(areIssued);
  if (!areIssued || !isWanted || signed.data !== leavesHash(leaves))
    return refuseMismatch(ctx, link);
  await keepApproval(ctx, approving, { ...signed, infos, leaves });
  return answered(link, "INITIATING");
}

/** What the order's user signed; null if the signature is invalid for everything that can be reconstructed. */
async function findSigned(
  ctx: KycContext,
  approving: Approving,
  released: Released,
): Promise<Pick<Approval, "data" | "consent"> | null> {
  const { link, result, callerAddress } = approving;
  const data = approving.data ?? (await supposeData(ctx, approving, released));
  const digest = digestOf(ctx, approving, { infos: released.infos, data });
  const { signature } = result;
  const isSigned = await isSignedByUser(ctx, link, { digest, signature, callerAddress });
  return isSigned ? { data, consent: hexOfBytes(digest) } : null;
}

/** Longer values take milliseconds to hash, and anybody who has the link may send some. */
const supposedLengthMax = 65_536;

/**
 * Guesses which `data` was signed, for a wallet that does not send it: the leaves of its values, with the likeliest
 * leaf for each value that was not issued. Of several guesses, the one whose recovered signer is the user; a contract's
 * signature reveals no signer, so the contract is asked about the first guess. Without a guess, the zero hash, so that
 * the signature is still checked, and counted against the limits. The work does not depend on what was issued to the
 * user, since anybody who has the link could measure it.
 */
async function supposeData(
  ctx: KycContext,
  approving: Approving,
  { infos, leaves }: Released,
): Promise<Hex32> {
  const { environment, user } = approving.link.order;
  const unknown = infos.filter((_, index) => leaves[index] === null);
  if (sumOf(unknown.map(({ data }) => data.length)) > supposedLengthMax) return zeroHash;
  const lists =
    unknown.length === 0
      ? [[]]
      : await listSupposedLeaves(ctx, { environment, user, infos: unknown });
  const supposed = lists.map((list) => {
    const likely = list.values();
    return leavesHash(leaves.map((leaf) => leaf ?? likely.next().value ?? "0x"));
  });
  const { signature } = approving.result;
  const isSigned = (data: Hex32): boolean =>
    recoverAddress(digestOf(ctx, approving, { infos, data }), signature) === user;
  return (supposed.length > 1 ? supposed.find(isSigned) : undefined) ?? supposed[0] ?? zeroHash;
}

const sumOf = (numbers: readonly number[]): number => numbers.reduce((a, b) => a + b, 0);

/** Refuses a result that answers something else than this link. @throws {Problem} request_over, result_refused */
function checkSameRequest(
  { order, requestObject, callback }: store.OrderLink,
  result: RequestResult,
): void {
  if (requestObject === null) throw refused("open the request first");
  if (hostOf(callback) !== hostOf(order.callback))
    throw new Problem("request_over", { message: "the request was replaced; open the newest one" });
  if (result.svcID !== order.user || result.id !== order.referenceKey)
    throw refused("the result is for another request or identity");
}

/** The values of a result, compared with what was issued and what was asked for. */
interface Released {
  /** Sorted by field. */
  readonly infos: readonly Info[];
  /** In the order of the fields; null for a value that was not issued to the user. */
  readonly leaves: readonly (Hex32 | null)[];
  /** Whether every field is live now, and together they are what was asked for. */
  readonly isWanted: boolean;
}

/** @throws {Problem} result_refused where `infos` cannot be read */
async function readReleased(
  ctx: KycContext,
  { order, offered }: store.OrderLink,
  encoded: string,
): Promise<Released> {
  const decoded = decodeInfos(encoded);
  if ("fault" in decoded) throw refused(sayFault(decoded.fault));
  const infos = decoded.toSorted((a, b) => (a.field < b.field ? -1 : 1));
  const { environment, user, required } = order;
  const matches = await matchLeaves(ctx, { keyId: null, environment, user, infos });
  const fields = infos.map(({ field }) => field);
  const isLive = matches.every((match) => match?.status === "LIVE");
  return {
    infos,
    leaves: matches.map((match) => match?.leaf ?? null),
    // Even if everything is optional, sharing nothing is refused: the merchant would pay for an empty transfer. Such a
    // user can decline.
    isWanted: fields.length > 0 && isLive && isComplete({ required, offered }, fields),
  };
}

function digestOf(
  ctx: KycContext,
  { token, link }: Approving,
  { infos, data }: { infos: readonly Info[]; data: Hex32 },
): Uint8Array {
  return shareDigest({
    request: link.order.referenceKey,
    connection: connectionOf(ctx.config.baseUrl, token),
    requester: link.requester,
    object: requestObjectHash(link.requestObject ?? ""),
    fields: fieldsHash(infos.map(({ field }) => field)),
    data,
    deadline: link.expiration,
  });
}

interface Approval {
  readonly consent: Hex32;
  readonly data: Hex32;
  /** What was verified, sorted by field. */
  readonly infos: readonly Info[];
  /** In the order of the fields. */
  readonly leaves: readonly Hex32[];
}

async function keepApproval(
  ctx: KycContext,
  { token, link, result }: Approving,
  { infos, ...approval }: Approval,
): Promise<void> {
  const { order } = link;
  const at = ctx.clock.now();
  // Not the wallet's own text: the merchant's parser may read duplicate keys, or keys that differ in case, differently
  // from ours, and so get values that were never verified.
  const payload = Buffer.from(encodeInfos(infos));
  await ctx.db.transaction(async (tx) => {
    const moved = await moveOrders(ctx, tx, {
      orders: [{ id: order.id, attempt: link.attempt }],
      step: steps.approved,
      at,
    });
    // A repeated request may have changed the callback since the order was read.
    const isMeant = moved[0] !== undefined && hostOf(moved[0].callback) === hostOf(link.callback);
    if (!isMeant) throw new Problem("request_over");
    await store.insertConsent(tx, {
      ...approval,
      order,
      fields: infos.map(({ field }) => field),
      attempt: link.attempt,
      requestObject: link.requestObject ?? "",
      connection: connectionOf(ctx.config.baseUrl, token),
      requester: link.requester,
      deadline: link.expiration,
      signature: bufferOfHex(result.signature),
      payloadSealed: ctx.seal.seal(payload, placeIn(payloadColumn, order.id)),
      createdAt: at,
    });
  });
}

/**
 * Counts a validly signed result that matches nothing. One more than {@link mismatchesForgiven} ends the attempt.
 *
 * @throws {Problem} result_refused
 */
async function refuseMismatch(ctx: KycContext, link: store.OrderLink): Promise<never> {
  await ctx.db.transaction(async (tx) => {
    const mismatches = await store.countMismatch(tx, link);
    if (mismatches === null || mismatches <= mismatchesForgiven) return;
    const at = ctx.clock.now();
    const step = steps.mismatched;
    const orders = [{ id: link.order.id, attempt: link.attempt }];
    await moveOrders(ctx, tx, { orders, step, at });
  });
  throw refused("the fields do not match what was asked for and is verified now");
}

/** A wallet that did not get the answer sends its refusal again, and gets the same answer. */
async function declineOrder(
  ctx: KycContext,
  given: { token: string; link: store.OrderLink; refusal: Refusal; callerAddress: string },
): Promise<Answered> {
  const { token, link, refusal, callerAddress } = given;
  const { order } = link;
  const isRepeated = isDeclined(link);
  if (!isRepeated) refuseOver(ctx, link);
  const digest = declineDigest({
    request: order.referenceKey,
    connection: connectionOf(ctx.config.baseUrl, token),
  });
  const isOurs =
    refusal.signature !== undefined &&
    refusal.id === order.referenceKey &&
    (await isSignedByUser(ctx, link, { digest, signature: refusal.signature, callerAddress }));
  if (!isOurs) throw new Problem("result_refused", { message: "a refusal must be signed" });
  if (isRepeated) return answered(link, "FAILED");
  const moved = await ctx.db.transaction(async (tx) =>
    moveOrders(ctx, tx, {
      orders: [{ id: order.id, attempt: link.attempt }],
      step: steps.declined,
      at: ctx.clock.now(),
    }),
  );
  if (moved.length === 0 && !isDeclined(await getLink(ctx, token)))
    throw new Problem("request_over");
  return answered(link, "FAILED");
}

function isDeclined({ order, attempt }: store.OrderLink): boolean {
  return order.failureReason === steps.declined.failureReason && order.attempt === attempt;
}

/** Whether the user signed. Anybody with the link can send signatures, so calls of a contract are limited per link. */
async function isSignedByUser(
  ctx: KycContext,
  { tokenSha256, order }: store.OrderLink,
  { callerAddress, ...signed }: { digest: Uint8Array; signature: string; callerAddress: string },
): Promise<boolean> {
  const address = order.user;
  const subject = `order:${tokenSha256.toString("hex")}`;
  return verifySignature(ctx, { address, ...signed }, async () =>
    ctx.mayContractSign({ address, subject, callerAddress }),
  );
}

function answered({ order }: store.OrderLink, status: Answered["status"]): Answered {
  const { referenceKey, returnUrl } = order;
  return { status, referenceKey, ...(returnUrl === null ? {} : { returnUrl }) };
}

/** The link to which a token belongs. @throws {Problem} request_not_found */
export async function getLink(ctx: KycContext, token: string): Promise<store.OrderLink> {
  const hash = hashOfToken(token);
  const found = hash === null ? null : await store.findLink(ctx.db, hash);
  if (found === null) throw new Problem("request_not_found");
  return found;
}

/** @throws {Problem} request_over */
function refuseOver(ctx: KycContext, link: store.OrderLink): void {
  const { order, attempt, expiration, approvedSignature } = link;
  const isNewest = order.attempt === attempt;
  // A wallet that did not get the answer to its approval may open the link again: tell it that it has succeeded.
  if (isNewest && approvedSignature !== null && order.status !== "FAILED")
    throw new Problem("request_over", { message: "this request was approved already" });
  if (isDeclined(link))
    throw new Problem("request_over", { message: "this request was declined already" });
  const isOpen = isNewest && order.status === "PENDING";
  if (!isOpen || ctx.clock.now() > Math.min(expiration, order.expiration))
    throw new Problem("request_over");
}

function refused(fault: string): Problem {
  return new Problem("result_refused", { message: `the result is refused: ${fault}` });
}

/**
 * The message does not say which value was not issued, or whether it was the signature: somebody who only has the link
 * must not learn which fields the user has.
 */
function refusedSignature(areIssued: boolean): Problem {
  const fault = "the signature does not fit this request";
  return new Problem("result_refused", {
    message: areIssued ? fault : `${fault}, or a value is none that was issued to this identity`,
  });
}

const hostOf = (url: string): string => new URL(url).host;

const sayFault = ({ member, reason }: ResultFault): string => `${member ?? "it"} ${reason}`;
