// Web Push (RFC 8030, 8291, 8292): a device is told that something waits, and nothing of what, for whom or by whom.
import { ECDH } from "node:crypto";
import { type Address, isRecord } from "@svc/protocol";
import type { PushSubscription, RequestDetails } from "web-push";
import { addressPolicyOf, parsePublicUrl } from "../platform/outbound/address-policy.ts";
import type { Ctx } from "../platform/context.ts";
import { purgeByPages, purgeInBatches } from "../platform/database/purge.ts";
import { uuidv7 } from "../platform/ids.ts";
import { invalidRequest } from "../platform/http/problems.ts";
import { placeIn, type SealedColumn } from "../platform/cryptography/seal.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import { HintLine } from "./hint-line.ts";
import { pushKeyOf } from "./push-key.ts";
import * as store from "./push-store.ts";

/** Addresses of devices. */
export const subscriptionColumn: SealedColumn = {
  table: "push_subscription",
  idColumn: "id",
  column: "subscription_sealed",
};

/** The subscription that a browser gives a page. */
export interface GivenSubscription {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/** The most devices of a person; one more replaces the oldest. */
const subscriptionsMax = 10;
/**
 * How many votes, invitations and devices, of each, a round examines at most. A vote concerns up to 50 members with 10
 * devices each, all of which may hang before there is room for the next round.
 */
const examinedPerRound = 2;
/** What becomes due while hints are under way waits no longer than this. */
const lookAgainMs = 2_000;
const timeoutMs = 10_000;
const answerBytesMax = 4096;
/**
 * A device that was off for longer finds its inbox when it is opened. The same for every hint: the time that a vote has
 * left would tell the push service what it is about, such as a login.
 */
const hintSeconds = 86_400;
const sentRetentionSeconds = 30 * 86_400;
/** Wallets subscribe their device again whenever they are opened. */
const idleSeconds = 30 * 86_400;
/** The same for everybody and everything, so that not even its length reveals anything. */
const hint = JSON.stringify({ type: "inbox" });
/** A hint that still waits for its device is replaced by the next one. */
const topic = "inbox";

/**
 * Stores the address at which an identity's device is told that something waits. The same address is the same device.
 *
 * @throws {Problem} invalid_request for an address that may not be called, and for invalid keys
 */
export async function subscribePush(
  ctx: Ctx,
  user: Address,
  { endpoint, keys }: GivenSubscription,
): Promise<void> {
  const url = parsePublicUrl(endpoint, addressPolicyOf(ctx.config));
  if ("refused" in url) throw invalidRequest("endpoint is not an address of a push service");
  if (!isPoint(keys.p256dh)) throw invalidRequest("keys.p256dh is not a point of P-256");
  if (Buffer.from(keys.auth, "base64url").length !== 16)
    throw invalidRequest("keys.auth is not 16 bytes");
  const id = uuidv7(ctx.clock, ctx.random);
  const content = JSON.stringify({ endpoint, keys });
  const row = {
    id,
    user,
    endpointSha256: sha256(endpoint),
    subscriptionSealed: ctx.seal.seal(Buffer.from(content), placeIn(subscriptionColumn, id)),
    createdAt: ctx.clock.now(),
  };
  await ctx.db.transaction(async (tx) => store.keepSubscription(tx, row, subscriptionsMax));
}

/** Forgets a device, or all devices of the identity if no address is given. An unknown device is not an error. */
export async function unsubscribePush(
  ctx: Ctx,
  user: Address,
  endpoint: string | undefined,
): Promise<void> {
  const endpointSha256 = endpoint === undefined ? null : sha256(endpoint);
  await store.deleteSubscriptions(ctx.db, { user, endpointSha256 });
}

/**
 * Tells members' devices that something waits: once for each member and vote, and again if the voting starts again,
 * whether or not a hint arrived. Devices that their push service no longer knows are deleted. Rounds do not wait for hints
 * of earlier ones that are under way, so devices that hang keep no hint from others.
 *
 * @param closing no further round begins once it is aborted
 */
export async function sendHints(ctx: Ctx, closing?: AbortSignal): Promise<void> {
  const line = new HintLine(async (due) => tryHint(ctx, due));
  try {
    for (;;) {
      if (closing?.aborted === true) return;
      const { due, isLast } = await takeHints(ctx);
      line.add(due);
      if (isLast && line.isEmpty) return;
      if (isLast) await line.untilEmpty(lookAgainMs);
      else await line.untilRoom();
    }
  } finally {
    await line.untilEmpty();
  }
}

/**
 * Takes the hints for a few votes, invitations and devices that have not been examined yet, and for all removals and
 * moves.
 */
async function takeHints({
  db,
  clock,
}: Ctx): Promise<{ due: readonly store.DueHint[]; isLast: boolean }> {
  return db.transaction(async (tx) => {
    const examined = await store.markExamined(tx, examinedPerRound);
    const businesses = examined.flatMap(({ business }) => (business === null ? [] : [business]));
    const isLast = examined.every(({ isNew }) => !isNew);
    if (businesses.length === 0) return { due: [], isLast };
    return { due: await store.takeDueHints(tx, { now: clock.now(), businesses }), isLast };
  });
}

/** Deletes the record of hints that were sent 30 days ago. */
export async function purgeHints(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - sentRetentionSeconds;
  await purgeInBatches(async (limit) => store.deleteSentHints(ctx.db, before, limit));
}

/**
 * Anybody may subscribe devices of any number of identities, so those of an identity that is in no business are deleted
 * after 30 days.
 */
export async function purgeDevices(ctx: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = ctx.clock.now() - idleSeconds;
  await purgeByPages(async (page) => store.purgeIdle(ctx.db, { before, ...page }));
}

/** Sends one hint; a device that cannot be reached does not hold up others. */
async function tryHint(ctx: Ctx, due: store.DueHint): Promise<void> {
  try {
    await sendHint(ctx, due);
  } catch (err) {
    ctx.log.error({ err, subscription: due.id }, "a push hint could not be sent");
  }
}

async function sendHint(ctx: Ctx, { id, subscriptionSealed }: store.DueHint): Promise<void> {
  const subscription = readSubscription(
    ctx.seal.open(subscriptionSealed, placeIn(subscriptionColumn, id)),
  );
  const { headers, body } = await encryptHint(ctx, subscription);
  const result = await ctx.outbound.send({
    method: "POST",
    url: subscription.endpoint,
    headers,
    body,
    timeoutMs,
    responseBytesMax: answerBytesMax,
  });
  // An answer longer than what is read still has its status.
  const status = result.kind === "answered" ? result.status : result.head?.status;
  const outcome = outcomeOf(status);
  ctx.metrics.pushHints.inc({ outcome });
  if (outcome === "gone") await store.deleteSubscription(ctx.db, id);
  if (outcome !== "refused") return;
  // The host is the service's; the rest of the address is the device's.
  const { host } = new URL(subscription.endpoint);
  ctx.log.info({ host, status }, "a push service refused a hint");
}

function outcomeOf(status: number | undefined): "taken" | "gone" | "refused" | "unanswered" {
  if (status === undefined) return "unanswered";
  if (status === 404 || status === 410) return "gone";
  return status >= 200 && status < 300 ? "taken" : "refused";
}

async function encryptHint(
  ctx: Ctx,
  subscription: PushSubscription,
): Promise<{ headers: Record<string, string>; body: Uint8Array }> {
  // Loaded only when there is a device: most processes never send a hint.
  const { default: webPush } = await import("web-push");
  const details: RequestDetails & { body: Buffer } = webPush.generateRequestDetails(
    subscription,
    hint,
    {
      vapidDetails: { subject: subjectOf(ctx), ...pushKeyOf(ctx) },
      contentEncoding: "aes128gcm",
      TTL: hintSeconds,
      urgency: "normal",
      topic,
    },
  );
  const headers = Object.entries(details.headers as Record<string, unknown>)
    // The client frames the message itself.
    .filter(([name]) => name.toLowerCase() !== "content-length")
    .map(([name, value]) => [name, String(value)]);
  return { headers: Object.fromEntries(headers) as Record<string, string>, body: details.body };
}

/** The contact for push services (RFC 8292 section 2.1): an https address, else a mail address. */
function subjectOf({ config }: Ctx): string {
  const { protocol, hostname } = new URL(config.baseUrl);
  return protocol === "https:" ? config.baseUrl : `mailto:operator@${hostname}`;
}

/** Whether it is an uncompressed point on the curve. */
function isPoint(text: string): boolean {
  try {
    const bytes = Buffer.from(text, "base64url");
    if (bytes.length !== 65 || bytes[0] !== 4) return false;
    ECDH.convertKey(bytes, "prime256v1");
    return true;
  } catch {
    return false;
  }
}

function readSubscription(bytes: Uint8Array): PushSubscription {
  const value: unknown = JSON.parse(Buffer.from(bytes).toString());
  if (!isRecord(value)) throw new Error("a push subscription cannot be read");
  return value as unknown as PushSubscription;
}
