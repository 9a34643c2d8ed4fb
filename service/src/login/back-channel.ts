import { type Address, subjectOf } from "@svc/protocol";
import type { Client } from "../accounts/index.ts";
import * as store from "./back-channel-store.ts";
import { signJwt } from "./jwt.ts";
import type { TokenContext } from "./token-context.ts";

/** `typ` of logout tokens (OpenID Connect Back-Channel Logout section 2.4). */
const logoutTokenTyp = "logout+jwt";
const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";
const tokenLifetimeSeconds = 120;

/** Seconds after a failed try until the next; after the last one the delivery is given up. */
const retrySeconds = [5, 30, 120, 600, 3600] as const;
/** Fails the lease of a process that died; longer than a try can take. */
const leaseSeconds = 60;
const batchMax = 20;
const timeoutMs = 10_000;
const responseBytesMax = 4096;

/**
 * Tells clients of logouts that are due: one try each, side by side.
 *
 * @returns how many were tried; a full batch means that more may be due
 */
export async function deliverLogouts(ctx: TokenContext): Promise<number> {
  const lease = { now: ctx.clock.now(), seconds: leaseSeconds, limit: batchMax };
  const due = await store.leaseDeliveries(ctx.db, lease);
  await Promise.all(due.map((delivery) => deliver(ctx, delivery)));
  return due.length;
}

async function deliver(ctx: TokenContext, delivery: store.LogoutDelivery): Promise<void> {
  const client = await ctx.clients.find(delivery.clientId);
  const url = client?.backchannelLogoutUri ?? null;
  if (client === null || url === null) return end(ctx, delivery, "not_wanted");
  const result = await ctx.outbound.send({
    method: "POST",
    url,
    headers: { "content-type": "application/x-www-form-urlencoded", "cache-control": "no-store" },
    body: new URLSearchParams({ logout_token: signLogoutToken(ctx, client, delivery) }).toString(),
    timeoutMs,
    responseBytesMax,
  });
  if (result.kind === "answered" && result.status >= 200 && result.status < 300)
    return end(ctx, delivery, "delivered");
  const waitSeconds = retrySeconds[delivery.attempts - 1];
  if (waitSeconds === undefined) return end(ctx, delivery, "given_up");
  await store.postponeDelivery(ctx.db, delivery, ctx.clock.now() + waitSeconds);
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
  const purpose = client.idTokenAlgorithm === "ES256" ? "login-es256" : "login-rs256";
  return signJwt(ctx.signingKeys.current(purpose), logoutTokenTyp, {
    iss: ctx.config.baseUrl,
    sub: subjectOf(delivery.user as Address),
    aud: client.id,
    iat: now,
    exp: now + tokenLifetimeSeconds,
    jti: ctx.random.bytes(16).toString("base64url"),
    events: { [logoutEvent]: {} },
    ...(delivery.sessionId === null ? {} : { sid: delivery.sessionId }),
  });
}
