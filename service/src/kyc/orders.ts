import {
  type Address,
  attributeOfField,
  buildLink,
  hexOfBytes,
  organizationIdentity,
  referenceKeyOf,
} from "@svc/protocol";
import { type ApiKey, verifiedDomainOf } from "../accounts/index.ts";
import { type AskedName, findVerified } from "../credentials/index.ts";
import type { Queryable } from "../platform/database/db.ts";
import { uuidv7 } from "../platform/ids.ts";
import { Problem } from "../platform/http/problems.ts";
import { addressPolicyOf } from "../platform/outbound/address-policy.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import { workInTransactions } from "../platform/database/work-in-batches.ts";
import { enqueueEvents, moveEvents, redeliverEvents } from "../webhooks/index.ts";
import { statusUpdated } from "./events.ts";
import type { KycContext } from "./kyc-context.ts";
import { openConnection } from "./order-connection.ts";
import { expirationRange, isExpirationInRange, isOngoing, steps } from "./order.ts";
import {
  type AskedNames,
  checkBody,
  checkCallbackHost,
  type CheckedBody,
  checkNames,
  type RequestBody,
} from "./order-request.ts";
import type { Order } from "./order-row.ts";
import * as store from "./order-store.ts";
import { moveOrders } from "./transitions.ts";

/** An order that waits for its user, with a link for it. */
export interface RequestedOrder {
  readonly order: Order;
  /** `svc:request/..` */
  readonly link: string;
  /** Whether the same request was already waiting. */
  readonly isRepeat: boolean;
}

/**
 * Asks a user to share verified fields (service document, POST /api/v2/kyc/qrcode). The checks come in the order of
 * decisions section 5. However often the same request is made, and by however many processes, there is one order and
 * one transfer is held.
 *
 * @throws {Problem} of the service document's KYC errors
 */
export async function requestOrder(
  ctx: KycContext,
  key: ApiKey,
  body: RequestBody,
): Promise<RequestedOrder> {
  const checked = checkBody(body, { ...addressPolicyOf(ctx.config), domain: key.domain });
  const asked = await store.findAskedPackage(ctx.db, checked.sourceKey);
  if (asked === null || asked.clientDomainId !== key.clientDomainId)
    throw new Problem("source_key_not_found");
  const now = ctx.clock.now();
  if (!isExpirationInRange(checked.expiration, now))
    throw new Problem("expiration_out_of_range", { details: expirationRange(now) });
  checkCallbackHost(checked.callback, asked.callbackHosts);
  const names = checkNames(checked, asked.fields);
  const referenceKey = referenceKeyOf({
    ...names,
    sourceKey: checked.sourceKey,
    user: checked.user,
  });
  const known = await store.findOrder(ctx.db, referenceKey);
  if (known !== null && isOngoing(known.status)) throw new Problem("order_ongoing");
  const offered = await checkVerified(ctx, key, { user: checked.user, names });
  const request = { key, checked, names, referenceKey, packageId: asked.id, offered };
  const made = known === null ? await openNew(ctx, request) : await openAgain(ctx, request);
  // Null if another call inserted the order after we looked: then that one is renewed. Null again if the order was
  // deleted with its user meanwhile: then everything is checked again.
  return made ?? (await openAgain(ctx, request)) ?? requestOrder(ctx, key, body);
}

/** A checked request, and the reference key of the order that it names. */
interface NamedRequest {
  readonly key: ApiKey;
  readonly checked: CheckedBody;
  readonly names: AskedNames;
  readonly referenceKey: string;
  readonly packageId: string;
  readonly offered: readonly AskedName[];
}

/**
 * Requires that the user has verified all required names, and at least one name in total.
 *
 * @returns the optional names that the user has verified, which the link offers
 * @throws {Problem} unverified_fields
 */
async function checkVerified(
  ctx: KycContext,
  key: ApiKey,
  { user, names }: { user: Address; names: AskedNames },
): Promise<readonly AskedName[]> {
  const all = [...names.required, ...names.optional];
  const { verified } = await findVerified(ctx, key, { user, names: all });
  const known = new Set<string>(verified);
  const offered = names.optional.filter((name) => known.has(name));
  const missing = names.required.filter((name) => !known.has(name));
  const isLeft = names.required.length + offered.length > 0;
  if (missing.length > 0 || !isLeft) {
    const fields = missing.length > 0 ? missing : names.optional;
    throw new Problem("unverified_fields", { details: { fields } });
  }
  return offered;
}

/** Null if the order exists already, or the user has no credential any more. @throws {Problem} package_exhausted */
async function openNew(ctx: KycContext, request: NamedRequest): Promise<RequestedOrder | null> {
  const { key, checked } = request;
  const now = ctx.clock.now();
  const given: store.NewOrder = {
    id: uuidv7(ctx.clock, ctx.random),
    referenceKey: request.referenceKey,
    packageId: request.packageId,
    clientDomainId: key.clientDomainId,
    organizationId: key.organizationId,
    environment: key.environment,
    user: checked.user,
    ...request.names,
    callback: checked.callback.href,
    expiration: checked.expiration,
    reference: checked.reference,
    purpose: checked.purpose,
    returnUrl: checked.returnUrl,
    createdAt: now,
    salt: hexOfBytes(ctx.random.bytes(32)),
  };
  return ctx.db.transaction(async (tx) => {
    const order = await store.insertOrder(tx, given);
    return order === null ? null : begin(ctx, tx, { request, order });
  });
}

/** Announces a new attempt, makes its link and holds its transfer. @throws {Problem} package_exhausted */
async function begin(
  ctx: KycContext,
  tx: Queryable,
  given: { request: NamedRequest; order: Order },
): Promise<RequestedOrder> {
  const { order } = given;
  await enqueueEvents(ctx, tx, [statusUpdated(ctx, order)]);
  const requested = await giveLink(ctx, tx, { ...given, isRepeat: false });
  if (!(await store.holdTransfer(tx, order.packageId))) throw new Problem("package_exhausted");
  return requested;
}

/**
 * Renews a waiting order, or begins the next attempt of one that has ended. Null if it does not exist any more.
 *
 * @throws {Problem} order_ongoing, package_exhausted
 */
async function openAgain(ctx: KycContext, request: NamedRequest): Promise<RequestedOrder | null> {
  return ctx.db.transaction(async (tx) => {
    const found = await store.lockOrder(tx, request.referenceKey);
    if (found === null) return null;
    if (isOngoing(found.status)) throw new Problem("order_ongoing");
    const isWaiting = found.status === "PENDING" && found.expiration >= ctx.clock.now();
    const renew = isWaiting ? renewWaiting : beginNextAttempt;
    return renew(ctx, tx, { request, found });
  });
}

async function renewWaiting(
  ctx: KycContext,
  tx: Queryable,
  { request, found }: { request: NamedRequest; found: Order },
): Promise<RequestedOrder> {
  const { callback, expiration } = request.checked;
  const order = await store.renewPending(tx, { id: found.id, callback: callback.href, expiration });
  await followCallback(ctx, tx, { from: found, to: order });
  return giveLink(ctx, tx, { request, order, isRepeat: true });
}

async function beginNextAttempt(
  ctx: KycContext,
  tx: Queryable,
  { request, found }: { request: NamedRequest; found: Order },
): Promise<RequestedOrder> {
  const now = ctx.clock.now();
  // It has expired, and the job that ends such orders has not reached it yet.
  if (found.status === "PENDING")
    await moveOrders(ctx, tx, { orders: [found], step: steps.expired, at: now });
  const { checked } = request;
  const renewal = {
    ...checked,
    id: found.id,
    callback: checked.callback.href,
    salt: hexOfBytes(ctx.random.bytes(32)),
  };
  const order = await store.beginAttempt(tx, renewal, now);
  await followCallback(ctx, tx, { from: found, to: order });
  return begin(ctx, tx, { request, order });
}

/** Redirects the order's undelivered events to its new callback. */
async function followCallback(
  ctx: KycContext,
  tx: Queryable,
  { from, to }: { from: Order; to: Order },
): Promise<void> {
  if (from.callback === to.callback) return;
  const { id: streamId, clientDomainId, callback: url } = to;
  await moveEvents(ctx, tx, { streamId, clientDomainId, url });
}

async function giveLink(
  ctx: KycContext,
  tx: Queryable,
  given: { request: NamedRequest; order: Order; isRepeat: boolean },
): Promise<RequestedOrder> {
  const { order, request, isRepeat } = given;
  const { key, offered } = request;
  const connection = await openConnection(ctx, tx, {
    order,
    requester: verifiedDomainOf(key),
    offered,
  });
  const link = buildLink({
    action: "request",
    identity: order.user,
    connection,
    from: organizationIdentity(order.organizationId),
    deadline: order.expiration,
    attributes: [...order.required, ...offered].map((name) => attributeOfField(name)),
    id: order.referenceKey,
    returnType: "callback",
  });
  return { order, link, isRepeat };
}

/** An order of the caller's client domain. @throws {Problem} order_not_found */
export async function getOrder(
  ctx: Pick<KycContext, "db">,
  key: ApiKey,
  referenceKey: string,
): Promise<Order> {
  const order = await store.findOrder(ctx.db, referenceKey);
  if (order?.clientDomainId !== key.clientDomainId) throw new Problem("order_not_found");
  return order;
}

/**
 * As {@link getOrder}, but ends an expired order first that {@link expireOrders} has not reached yet: otherwise the
 * merchant would read PENDING after the deadline.
 *
 * @throws {Problem} order_not_found
 */
export async function getCurrentOrder(
  ctx: KycContext,
  key: ApiKey,
  referenceKey: string,
): Promise<Order> {
  const order = await getOrder(ctx, key, referenceKey);
  if (order.status !== "PENDING" || order.expiration >= ctx.clock.now()) return order;
  await expireAmong(ctx, [order.id]);
  return getOrder(ctx, key, referenceKey);
}

/** A page of orders, newest first, after expired ones have been ended as in {@link getCurrentOrder}. */
export async function listCurrentOrders(
  ctx: KycContext,
  filter: store.OrderFilter,
  page: { before: string | null; limit: number },
): Promise<Order[]> {
  const due = await store.listExpiredOf(ctx.db, filter.clientDomainId, ctx.clock.now());
  while (due.length > 0) await expireAmong(ctx, due.splice(0, expiredMax));
  return store.listOrders(ctx.db, filter, page);
}

/** Ends those of the orders that have expired. Waits for other processes that do so, so afterwards none is PENDING. */
async function expireAmong(ctx: KycContext, ids: readonly string[]): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const at = ctx.clock.now();
    const orders = await store.lockExpiredAmong(tx, ids, at);
    await moveOrders(ctx, tx, { orders, step: steps.expired, at });
  });
}

/** Ends a waiting order; its transfer is free again. @throws {Problem} order_not_found, order_not_cancellable */
export async function cancelOrder(
  ctx: KycContext,
  key: ApiKey,
  referenceKey: string,
): Promise<Order> {
  const found = await getCurrentOrder(ctx, key, referenceKey);
  return ctx.db.transaction(async (tx) => {
    const at = ctx.clock.now();
    const [order] = await moveOrders(ctx, tx, {
      orders: [found],
      step: steps.cancelled,
      at,
    });
    if (order === undefined) throw new Problem("order_not_cancellable");
    return order;
  });
}

/**
 * Sends events of an order again, to the callback that it has now.
 *
 * @param of.eventId the one event to send; by default every event that still has a body
 * @returns how many are on their way
 * @throws {Problem} order_not_found, event_not_found, payload_expired
 */
export async function redeliverOrder(
  ctx: Pick<KycContext, "db" | "clock">,
  key: ApiKey,
  of: { referenceKey: string; eventId?: string },
): Promise<number> {
  const { referenceKey, ...which } = of;
  const { id: streamId } = await getOrder(ctx, key, referenceKey);
  return ctx.db.transaction(async (tx) => {
    const order = await store.lockOrder(tx, referenceKey);
    if (order === null) throw new Problem("order_not_found");
    return redeliverEvents(ctx, tx, { ...which, streamId, url: order.callback });
  });
}

/** Orders that end in one transaction. */
const expiredMax = 500;

/** Ends every order that has expired. */
export async function expireOrders(ctx: KycContext): Promise<void> {
  // Asked every second, and mostly there are none.
  if (!(await store.hasExpired(ctx.db, ctx.clock.now()))) return;
  await workInTransactions(ctx.db, expiredMax, async (tx, limit) => {
    const at = ctx.clock.now();
    const orders = await store.lockExpired(tx, at, limit);
    await moveOrders(ctx, tx, { orders, step: steps.expired, at });
    return orders.length;
  });
}

/** Links are kept for this long after they expire: a late wallet gets `request_over` instead of `request_not_found`. */
const tokenKeptSeconds = 86_400;

export async function purgeTokens(ctx: Pick<KycContext, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - tokenKeptSeconds;
  await purgeInBatches(async (limit) => store.deleteTokens(ctx.db, before, limit));
}
