import { errors, type JWTVerifyGetKey } from "jose";

import { callIssuer } from "./issuer-call.ts";
import { openKeySet } from "./key-set.ts";
import { MerchantError } from "./merchant-error.ts";

/** How long discovery and keys are kept; a key that the broker revokes is refused after this time at the latest. */
const cacheSeconds = 600;

/** A token with an unknown `kid` may have a new key, or be made up: it causes at most one request in this time. */
const refetchSeconds = 30;

/** Algorithms that the SDK accepts; it signs nothing itself (decisions section 2, Signing). */
const knownAlgorithms = ["RS256", "ES256"];

/** The part of the discovery document that a login needs (OpenID Connect Discovery 1.0 section 3). */
interface Discovery {
  authorizationEndpoint: string;
  tokenEndpoint: string;
  userinfoEndpoint: string;
  revocationEndpoint: string;
  endSessionEndpoint: string;
  jwksUri: string;
  /** Those of RS256 and ES256 that the broker announces. */
  algorithms: string[];
}

/** The broker from a merchant's point of view: where its endpoints are, and which keys it signs with. */
export interface Issuer {
  discovery: () => Promise<Discovery>;
  /** Loads discovery and keys into the cache before a token arrives. */
  prepare: () => Promise<void>;
  /** Finds the key of a token by its `kid`. If the cache does not hold it, the broker is asked once more. */
  key: JWTVerifyGetKey;
}

/**
 * Reads discovery and keys when first needed and keeps them for ten minutes. Parallel callers share one request.
 * All functions throw a MerchantError: issuer_unreachable, rate_limited, response_invalid, or issuer_mismatch when the
 * document names another issuer than configured; `key` also throws an error of jose where no key fits.
 */
export function openIssuer(options: {
  issuer: string;
  fetch: typeof fetch;
  now: () => number;
}): Issuer {
  const { issuer, now } = options;
  const get = (url: string) => callIssuer(options.fetch, { url });

  const discovery = cached(now, async () => {
    const { status, body } = await get(`${issuer}/.well-known/openid-configuration`);
    if (status !== 200 || body === null) throw new MerchantError("response_invalid");
    return parseDiscovery(body, issuer);
  });

  const keys = cached(now, async () => {
    const { jwksUri } = await discovery.read();
    const { status, body } = await get(jwksUri);
    if (status !== 200) throw new MerchantError("response_invalid");
    return openKeySet(body, keysInvalid);
  });

  // Kept as a promise, so that parallel callers wait for it, and get its error if it fails: a failed request does not
  // mean that a token's key is unknown.
  let refetch: { at: number; keys: Promise<JWTVerifyGetKey> } | undefined;
  const refetched = (): Promise<JWTVerifyGetKey> => {
    if (refetch === undefined || !isWithin(refetchSeconds, refetch.at, now()))
      refetch = { at: now(), keys: keys.load() };
    return refetch.keys;
  };

  const key: JWTVerifyGetKey = async (header, token) => {
    const find = await keys.read();
    try {
      return await find(header, token);
    } catch (error) {
      if (!(error instanceof errors.JWKSNoMatchingKey)) throw error;
      return (await refetched())(header, token);
    }
  };

  return {
    discovery: discovery.read,
    prepare: async () => {
      await keys.read();
    },
    key,
  };
}

/** Keeps the answer of `fetchValue`; parallel readers wait for the same request, and a failure is not kept. */
function cached<T>(now: () => number, fetchValue: () => Promise<T>) {
  let value: Promise<T> | undefined;
  let loading: Promise<T> | undefined;
  let loadedAt = 0;

  const load = (): Promise<T> => {
    loading ??= fetchValue()
      .then((fresh) => {
        loadedAt = now();
        value = Promise.resolve(fresh);
        return fresh;
      })
      .finally(() => {
        loading = undefined;
      });
    return loading;
  };

  const read = (): Promise<T> =>
    value === undefined || !isWithin(cacheSeconds, loadedAt, now()) ? load() : value;
  return { load, read };
}

/** A value from the future counts as old: it would be kept too long after a wrong clock was set back. */
function isWithin(seconds: number, since: number, now: number): boolean {
  return since <= now && now < since + seconds;
}

function parseDiscovery(document: Record<string, unknown>, issuer: string): Discovery {
  // Discovery 1.0 section 4.3: exactly the same, or somebody else answers for this issuer.
  if (document["issuer"] !== issuer) throw new MerchantError("issuer_mismatch");
  const endpoint = (name: string): string => {
    const url = document[name];
    if (typeof url !== "string" || !isSafeUrl(url))
      throw new MerchantError("response_invalid", { reason: name });
    return url;
  };
  const announced = document["id_token_signing_alg_values_supported"];
  return {
    authorizationEndpoint: endpoint("authorization_endpoint"),
    tokenEndpoint: endpoint("token_endpoint"),
    userinfoEndpoint: endpoint("userinfo_endpoint"),
    revocationEndpoint: endpoint("revocation_endpoint"),
    endSessionEndpoint: endpoint("end_session_endpoint"),
    jwksUri: endpoint("jwks_uri"),
    algorithms: knownAlgorithms.filter(
      (algorithm) => Array.isArray(announced) && announced.includes(algorithm),
    ),
  };
}

function keysInvalid(cause: unknown): MerchantError {
  return new MerchantError("response_invalid", { reason: "jwks_uri", cause });
}

/** A base URL that paths can be appended to. */
export function isIssuerUrl(text: string): boolean {
  return isSafeUrl(text) && !text.endsWith("/") && !text.includes("?");
}

/**
 * True for https anywhere, and for plain http only on this machine: codes and secrets never cross a network in the
 * clear.
 */
export function isSafeUrl(text: string): boolean {
  if (!URL.canParse(text)) return false;
  const { protocol, hostname, username, password, hash } = new URL(text);
  if (username !== "" || password !== "" || hash !== "") return false;
  return protocol === "https:" || (protocol === "http:" && isLoopback(hostname));
}

function isLoopback(hostname: string): boolean {
  return hostname === "localhost" || hostname === "[::1]" || /^127\.\d+\.\d+\.\d+$/.test(hostname);
}
