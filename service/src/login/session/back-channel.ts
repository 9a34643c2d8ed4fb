import { subjectOf } from "@svc/protocol";
import type { Client } from "../../accounts/index.ts";
import { doDueWork, type DueWorkSignals } from "../../platform/due-work.ts";
import * as store from "./back-channel-store.ts";
import { signJwt } from "../keys/jwt.ts";
import { purposeFor } from "../keys/signing-key.ts";
import type { TokenContext } from "../token-context.ts";

/** `typ` of logout tokens (OpenID Connect Back-Channel Logout section 2.4). */
const logoutTokenTyp = "logout+jwt";
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";
const tokenLifetimeSeconds = 120;

const lateRetrySeconds = 3600;
/** Seconds after a failed try until the next. */
const retrySeconds = [5, 30, 120, 600, lateRetrySeconds] as const;
/**
 * A delivery that failed after all of them is given up, but not sooner than this: tries of processes that died use them
 * up within minutes.
 */
const patienceSeconds = retrySeconds.reduce((sum, each) => sum + each, 0);
/** The lease of a process that died expires after this; longer than a try can take. */
const leaseSeconds = 60;
/**
 * Deliveries under way in one process, and of one client: a client that hangs keeps each of its own for the whole
 * timeout. An organization can have any number of clients, so it gets no more while it has as many under way as are
 * free.
 */
const underWayMax = 64;
const underWayPerClient = 8;
const timeoutMs = 10_000;
const lookAgainMs = 1_000;
const responseBytesMax = 4096;

/** Tells clients of logouts that are due, one try each, until none is due or under way. @returns how many were tried */
export async function deliverLogouts(
  ctx: TokenContext,
  signals: DueWorkSignals = {},
): Promise<number> {
  return doDueWork<store.LogoutDelivery>(
    {
      // One organization may take all that is leased, so only half of what is free is leased at a time.
      limitBeside: ({ length }) => Math.ceil((underWayMax - length) / 2),
      lease: async (limit, underWay) => leaseDue(ctx, underWay, limit),
      carryOut: async (delivery) => deliver(ctx, delivery),
      brokeOff: (error) =>
        ctx.log.error({ err: error }, "telling a client of a logout broke off; it is tried again"),
      lookAgainMs,
    },
    signals,
  );
}

async function leaseDue(
  ctx: TokenContext,
  underWay: readonly store.LogoutDelivery[],
  limit: number,
): Promise<store.LogoutDelivery[]> {
  const free = underWayMax - underWay.length;
  const ofOrganizations = countBy(underWay, ({ organizationId }) => organizationId);
  return store.leaseDeliveries(ctx.db, {
    now: ctx.clock.now(),
    seconds: leaseSeconds,
    limit,
    perClient: underWayPerClient,
    underWay: Object.fromEntries(countBy(underWay, ({ clientId }) => clientId)),
    fullOrganizations: [...ofOrganizations].filter(([, count]) => count >= free).map(([id]) => id),
  });
}

function countBy<T>(all: readonly T[], keyOf: (each: T) => string): Map<string, number> {
  const groups = Map.groupBy(all, keyOf);
  return new Map([...groups].map(([key, { length }]) => [key, length]));
}

async function deliver(ctx: TokenContext, delivery: store.LogoutDelivery): Promise<void> {
  const client = await findListener(ctx, delivery.clientId);
  if (client === null) return end(ctx, delivery, "not_wanted");
  const result = await ctx.outbound.send({
    method: "POST",
    url: client.backchannelLogoutUri,
    headers: { "content-type": "application/x-www-form-urlencoded", "cache-control": "no-store" },
    body: new URLSearchParams({ logout_token: signLogoutToken(ctx, client, delivery) }).toString(),
    timeoutMs,
    responseBytesMax,
  });
  if (result.kind === "answered" && result.status >= 200 && result.status < 300)
    return end(ctx, delivery, "delivered");
  const now = ctx.clock.now();
  const waitSeconds = waitAfter(delivery, now);
  if (waitSeconds === null) return end(ctx, delivery, "given_up");
  await store.postponeDelivery(ctx.db, delivery, now + waitSeconds);
}

/** @returns seconds until the next try; null after the last one */
function waitAfter({ attempts, createdAt }: store.LogoutDelivery, now: number): number | null {
  const waitSeconds = retrySeconds[attempts - 1];
  if (waitSeconds !== undefined) return waitSeconds;
  return now - createdAt < patienceSeconds ? lateRetrySeconds : null;
}

type Listener = Client & { readonly backchannelLogoutUri: string };

/** The client, if it wants to be told; settings that changed since it was cached count. */
async function findListener(ctx: TokenContext, id: string): Promise<Listener | null> {
  const remembered = await ctx.clients.find(id);
  if (remembered === null) return null;
  const client = await ctx.clients.findFitting(remembered, isListener);
  return client !== null && isListener(client) ? client : null;
}

function isListener(client: Client): client is Listener {
  return client.backchannelLogoutUri !== null;
}

async function end(
  ctx: TokenContext,
  delivery: store.LogoutDelivery,
  outcome: string,
): Promise<void> {
  if (outcome === "given_up")
    ctx.log.warn({ clientId: delivery.clientId }, "a client could not be told of a logout");
  await store.endDelivery(ctx.db, delivery, { outcome, now: ctx.clock.now() });
}

/** A new token for each try: it lives two minutes, and its `jti` counts once at the client. */
function signLogoutToken(
  ctx: TokenContext,
  client: Client,
  delivery: store.LogoutDelivery,
): string {
  const now = ctx.clock.now();
  return signJwt(ctx.signingKeys.current(purposeFor(client)), logoutTokenTyp, {
    iss: ctx.config.baseUrl,
    sub: subjectOf(delivery.user),
    aud: client.id,
    iat: now,
    // RFC 8417 section 2.2: a client that is told late can tell later logins from those that ended.
    toe: delivery.createdAt,
    exp: now + tokenLifetimeSeconds,
    jti: ctx.random.bytes(16).toString("base64url"),
    events: { [logoutEvent]: {} },
    ...(delivery.sessionId === null ? {} : { sid: delivery.sessionId }),
  });
}
