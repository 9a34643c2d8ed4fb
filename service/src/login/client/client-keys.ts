import { createPublicKey, type KeyObject } from "node:crypto";
import {
  type Client,
  type ClientJwk,
  type ClientKeySet,
  parseKeySet,
} from "../../accounts/index.ts";
import { forgetOldest } from "../../platform/forget-oldest.ts";
import { parseJson } from "../../platform/http/http-input.ts";
import type { TokenContext } from "../token-context.ts";

interface NamedKey {
  readonly kid: string | null;
  readonly key: KeyObject;
}

/** The set behind a `jwks_uri` as last fetched, and when that was tried last, with or without success. */
interface Fetched {
  readonly keys: readonly NamedKey[];
  readonly fetchedAtMs: number;
  readonly triedAtMs: number;
  readonly isFailed: boolean;
}

/** A removed key is forgotten after this long. */
const lifetimeMs = 600_000;
/** Shortest time between two fetches of a set, whether after a failure or for a signature by an unknown key. */
const refetchMs = 30_000;
const timeoutMs = 5_000;
const responseBytesMax = 64 * 1024;
const keysMax = 20;
const urisMax = 1_000;

/** One `jwks_uri`: the last fetch, and the one under way. */
interface Source {
  known: Fetched | undefined;
  asking: Promise<Fetched> | undefined;
}

interface Cache {
  readonly given: WeakMap<ClientKeySet, readonly NamedKey[]>;
  readonly sources: Map<string, Source>;
}

/** By the outbound client, since a process has one of it, and many copies of its context. */
const caches = new WeakMap<TokenContext["outbound"], Cache>();

function cacheOf(ctx: TokenContext): Cache {
  const known = caches.get(ctx.outbound) ?? { given: new WeakMap(), sources: new Map() };
  caches.set(ctx.outbound, known);
  return known;
}

/** A signature of a client: by the key with this id, or by any of its keys if there is no id. */
export interface Signed {
  readonly kid: string | null;
  isBy(key: KeyObject): boolean;
}

/** Why there was no key to try: the set cannot be fetched, or was fetched too lately to be fetched again. */
export type Untried = "cannot be fetched" | "lately";

/** Whether a key of the client made the signature, or why none could be tried. */
export async function isSignedByClient(
  ctx: TokenContext,
  client: Client,
  signed: Signed,
): Promise<boolean | Untried> {
  const isByOne = (keys: readonly NamedKey[]): boolean =>
    chosen(keys, signed.kid).some((key) => signed.isBy(key));
  if (client.jwks !== null) return isByOne(givenKeys(ctx, client.jwks));
  if (client.jwksUri === null) return false;
  const first = await fetchedKeys(ctx, client.jwksUri, lifetimeMs);
  if (isByOne(first.keys)) return true;
  // The key may have been replaced since, also under the same id or without one.
  const second = await fetchedKeys(ctx, client.jwksUri, refetchMs);
  if (second.keys !== first.keys && isByOne(second.keys)) return true;
  if (chosen(second.keys, signed.kid).length > 0) return false;
  if (second.isFailed) return "cannot be fetched";
  return second === first ? "lately" : false;
}

function chosen(keys: readonly NamedKey[], kid: string | null): readonly KeyObject[] {
  return keys.filter((each) => kid === null || each.kid === kid).map((each) => each.key);
}

function givenKeys(ctx: TokenContext, jwks: ClientKeySet): readonly NamedKey[] {
  const { given } = cacheOf(ctx);
  const known = given.get(jwks) ?? importKeys(jwks.keys);
  given.set(jwks, known);
  return known;
}

function importKeys(keys: readonly ClientJwk[]): NamedKey[] {
  return keys.map((jwk) => ({
    kid: jwk.kid ?? null,
    key: createPublicKey({ key: { ...jwk }, format: "jwk" }),
  }));
}

/**
 * The set behind a `jwks_uri`, fetched again if it is older than `maxAgeMs` and {@link refetchMs} have passed since the
 * last attempt. Concurrent calls share one request.
 */
async function fetchedKeys(ctx: TokenContext, uri: string, maxAgeMs: number): Promise<Fetched> {
  const source = sourceOf(ctx, uri);
  const { known } = source;
  const nowMs = ctx.clock.nowMs();
  if (known !== undefined && isUsable(known, { nowMs, maxAgeMs }))
    return withinLifetime(known, nowMs);
  source.asking ??= askAgain(ctx, uri, source);
  return source.asking;
}

async function askAgain(ctx: TokenContext, uri: string, source: Source): Promise<Fetched> {
  try {
    source.known = await fetchKeys(ctx, uri, source.known);
    return source.known;
  } finally {
    source.asking = undefined;
  }
}

/** Evicts the least recently used source beyond {@link urisMax}. */
function sourceOf(ctx: TokenContext, uri: string): Source {
  const { sources } = cacheOf(ctx);
  const source: Source = sources.get(uri) ?? { known: undefined, asking: undefined };
  sources.delete(uri);
  sources.set(uri, source);
  forgetOldest(sources, urisMax);
  return source;
}

function isUsable(
  known: Fetched,
  { nowMs, maxAgeMs }: { nowMs: number; maxAgeMs: number },
): boolean {
  return nowMs - known.fetchedAtMs < maxAgeMs || nowMs - known.triedAtMs < refetchMs;
}

/** A set past its lifetime has no keys, even while {@link refetchMs} delays the next fetch. */
function withinLifetime(known: Fetched, nowMs: number): Fetched {
  return nowMs - known.fetchedAtMs < lifetimeMs ? known : { ...known, keys: [] };
}

/** A fetch that fails keeps what was known before, within its lifetime. */
async function fetchKeys(
  ctx: TokenContext,
  uri: string,
  known: Fetched | undefined,
): Promise<Fetched> {
  const triedAtMs = ctx.clock.nowMs();
  const keys = await requestKeys(ctx, uri);
  if (keys !== null) return { keys, fetchedAtMs: triedAtMs, triedAtMs, isFailed: false };
  if (known === undefined || triedAtMs - known.fetchedAtMs >= lifetimeMs)
    return { keys: [], fetchedAtMs: -Infinity, triedAtMs, isFailed: true };
  return { ...known, triedAtMs, isFailed: true };
}

async function requestKeys(ctx: TokenContext, uri: string): Promise<readonly NamedKey[] | null> {
  const result = await ctx.outbound.send({
    method: "GET",
    url: uri,
    headers: { accept: "application/json" },
    timeoutMs,
    responseBytesMax,
  });
  if (result.kind === "failed" || result.status !== 200) return null;
  try {
    const document = parseJson(result.body) as { keys?: unknown };
    if (!Array.isArray(document.keys)) return null;
    const keys: unknown[] = document.keys;
    return keys.slice(0, keysMax).flatMap((key) => usableKeys(key));
  } catch {
    // The body is not JSON.
    return null;
  }
}

/** A published set may hold keys for other purposes; they are passed over, unlike in a set that is registered with us. */
function usableKeys(key: unknown): readonly NamedKey[] {
  try {
    return importKeys(parseKeySet({ keys: [key] }).keys);
  } catch {
    return [];
  }
}
