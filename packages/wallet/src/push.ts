// Web Push tells a device that something waits in the inbox (RFC 8030). The message says no more than that: the wallet
// then looks itself.
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { call, membersOf, refusalOfAnswer } from "./transport.ts";

/** The part of a browser's `PushSubscription.toJSON()` that a broker needs. */
export interface PushDevice {
  readonly endpoint: string;
  readonly keys: { readonly p256dh: string; readonly auth: string };
}

/**
 * What a page passes to `pushManager.subscribe` as `applicationServerKey`, in base64url: the device then accepts hints
 * of this broker and of nobody else.
 *
 * @throws {WalletRefusal} not_found for a broker that is not on the list, broker_refused, unreachable
 */
export async function readPushKey(ctx: WalletContext, broker: string): Promise<string> {
  await requireListed(ctx, broker);
  const url = `${broker}/w/push/key`;
  const answer = await call(ctx.fetch, { url });
  const { key } = membersOf(answer.text);
  if (answer.status !== 200) throw refusalOfAnswer(url, answer);
  // An uncompressed point of P-256.
  if (typeof key !== "string" || !/^B[\w-]{86}$/.test(key))
    throw new WalletRefusal("broker_refused", `${broker} names no key for push messages`);
  return key;
}

/** Has a broker tell a device when something waits for this identity. @throws {WalletRefusal} as {@link readPushKey} */
export async function subscribePush(
  ctx: WalletContext,
  broker: string,
  { endpoint, keys: { p256dh, auth } }: PushDevice,
): Promise<void> {
  await requireListed(ctx, broker);
  const path = "/w/push";
  await ctx.sessions.ask(broker, { path, body: { endpoint, keys: { p256dh, auth } } }, [204]);
}

/**
 * Has a broker stop telling a device about this identity, or all devices if none is named.
 *
 * @throws {WalletRefusal} as {@link readPushKey}
 */
export async function unsubscribePush(
  ctx: WalletContext,
  broker: string,
  endpoint: string | undefined,
): Promise<void> {
  await requireListed(ctx, broker);
  const path = "/w/push";
  const body = endpoint === undefined ? {} : { endpoint };
  await ctx.sessions.ask(broker, { path, method: "DELETE", body }, [204]);
}

async function requireListed(ctx: WalletContext, broker: string): Promise<void> {
  if ((await ctx.brokers()).includes(broker)) return;
  throw new WalletRefusal("not_found", `${broker} is not on the list of brokers`);
}
