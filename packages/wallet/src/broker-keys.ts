import { isRecord, type EcPublicJwk } from "@svc/protocol";
import type { WalletContext } from "./context.ts";
import { WalletRefusal } from "./refusal.ts";
import { hashedKey } from "./storage.ts";
import { call, membersOf, refusalOfAnswer } from "./transport.ts";

/** A key that the broker withdraws is accepted no longer than this. */
const cacheSeconds = 3600;
const keysMax = 50;

/**
 * The keys a broker signs request objects with, from its `/.well-known/wallet-jwks.json`; cached for an hour, and
 * fetched once more if `kid` is not among the cached keys.
 *
 * @param broker an origin on the wallet's list
 * @throws {WalletRefusal} unreachable, broker_refused
 */
export async function getBrokerKeys(
  ctx: WalletContext,
  broker: string,
  { kid }: { kid: string | undefined },
): Promise<{ keys: readonly EcPublicJwk[] }> {
  const now = await ctx.now();
  const storageKey = hashedKey("keys", broker);
  const kept = membersOf(await ctx.storage.get(storageKey));
  const { fetchedAt } = kept;
  const isFresh =
    typeof fetchedAt === "number" && fetchedAt <= now && now < fetchedAt + cacheSeconds;
  const keys = isFresh ? keysOf(kept["keys"]) : [];
  const isKnown = keys.some((key) => kid === undefined || key.kid === kid);
  if (isKnown) return { keys };
  const fetched = await fetchKeys(ctx, broker);
  await ctx.storage.put(storageKey, JSON.stringify({ fetchedAt: now, keys: fetched }));
  return { keys: fetched };
}

async function fetchKeys(ctx: WalletContext, broker: string): Promise<readonly EcPublicJwk[]> {
  const url = `${broker}/.well-known/wallet-jwks.json`;
  const answer = await call(ctx.fetch, { url });
  if (answer.status !== 200) throw refusalOfAnswer(url, answer);
  const keys = keysOf(membersOf(answer.text)["keys"]);
  if (keys.length === 0)
    throw new WalletRefusal("broker_refused", `${broker} publishes no key for request objects`);
  return keys;
}

function keysOf(value: unknown): readonly EcPublicJwk[] {
  if (!Array.isArray(value)) return [];
  return value.slice(0, keysMax).flatMap((each: unknown) => {
    if (!isRecord(each)) return [];
    const { kty, crv, x, y, kid } = each;
    const isKey =
      typeof kty === "string" &&
      typeof crv === "string" &&
      typeof x === "string" &&
      typeof y === "string";
    return isKey ? [{ kty, crv, x, y, ...(typeof kid === "string" ? { kid } : {}) }] : [];
  });
}
