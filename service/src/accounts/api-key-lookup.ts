import type { Ctx } from "../platform/context.ts";
import { equalBytes } from "../platform/cryptography/mac.ts";
import { Problem } from "../platform/http/problems.ts";
import { sha256 } from "../platform/cryptography/sha256.ts";
import {
  type ApiKey,
  type ApiKeyText,
  kindOf,
  type ManagementKey,
  parseApiKey,
} from "./api-key.ts";
import * as store from "./api-key-store.ts";
import { isVerifiedNow } from "./client-domains.ts";
import { entitlementsWith } from "./entitlement.ts";
import { openRowCache } from "./row-cache.ts";
import { openUseRecord } from "./use-record.ts";

/** Looks up API keys: in memory, rarely in the database. */
export interface ApiKeys extends AsyncDisposable {
  /**
   * Reads the `Authorization` header of a KYC or KYB call: the key alone, without `Bearer` (service document,
   * Authentication).
   *
   * @throws {Problem} apikey_missing | apikey_invalid; the error does not say whether the key is unknown, revoked,
   * damaged or foreign
   */
  authenticate(authorization: string | undefined): Promise<ApiKey>;
  /** As {@link authenticate}, for a management key. @throws {Problem} apikey_missing | apikey_invalid */
  authenticateManagement(authorization: string | undefined): Promise<ManagementKey>;
}

/** A live key in memory. */
interface KnownKey {
  readonly mac: Buffer;
  /** SHA-256 of the key's text once it has been found genuine; a key of 256 random bits cannot be recovered from it. */
  provedSha256: Buffer | null;
  readonly key: ManagementKey | Omit<ApiKey, "verified">;
  /** When its domain was last proved; null for a management key. */
  readonly provedAt: number | null;
}

/** Opens the lookup of one process; it follows the channel `api-key`. */
export async function openApiKeys(ctx: Ctx): Promise<ApiKeys> {
  const cache = await openRowCache<KnownKey>(ctx, {
    channel: "api-key",
    load: async (id) => {
      const row = await store.findLiveApiKey(ctx.db, id);
      return row === null ? null : toKnownKey(row);
    },
  });
  const uses = openUseRecord(ctx, async (noted) => store.recordApiKeyUses(ctx.db, noted));

  const find = async (authorization: string | undefined): Promise<[ApiKeyText, KnownKey]> => {
    const presented = readApiKey(authorization);
    const known = await cache.find(presented.id);
    if (known === null) throw new Problem("apikey_invalid");
    proveKey(ctx, known, presented.text);
    uses.note(presented.id);
    return [presented, known];
  };

  return {
    async authenticate(authorization) {
      const [presented, { key, provedAt }] = await find(authorization);
      if (!("environment" in key) || presented.kind !== kindOf(key.environment))
        throw new Problem("apikey_invalid");
      const { domain } = key;
      return { ...key, verified: isVerifiedNow(ctx, { domain, provedAt }) };
    },
    async authenticateManagement(authorization) {
      const [presented, { key }] = await find(authorization);
      if (presented.kind !== "mgmt" || "environment" in key) throw new Problem("apikey_invalid");
      return key;
    },
    async [Symbol.asyncDispose]() {
      cache[Symbol.dispose]();
      await uses[Symbol.asyncDispose]();
    },
  };
}

/**
 * Reads an `Authorization` header that holds nothing but a key, of any kind.
 *
 * @throws {Problem} apikey_missing | apikey_invalid
 */
export function readApiKey(authorization: string | undefined): ApiKeyText {
  if (authorization === undefined || authorization === "") throw new Problem("apikey_missing");
  // Other services take keys this way. Saying so reveals nothing about any key.
  if (/^Bearer /i.test(authorization))
    throw new Problem("apikey_invalid", { message: "the API key is sent alone, without Bearer" });
  const presented = parseApiKey(authorization);
  if (presented === null) throw new Problem("apikey_invalid");
  return presented;
}

/**
 * Verifies the key's text. The MAC covers the prefix too, so nobody can change the environment, and its key is this
 * installation's own. It costs ten times as much as a hash, so while the row is cached it is computed only once.
 *
 * @throws {Problem} apikey_invalid
 */
function proveKey(ctx: Ctx, known: KnownKey, text: string): void {
  const given = sha256(text);
  if (known.provedSha256 !== null && equalBytes(known.provedSha256, given)) return;
  if (!equalBytes(known.mac, ctx.keys.mac("api-key", text))) throw new Problem("apikey_invalid");
  known.provedSha256 = given;
}

function toKnownKey(row: store.LiveApiKeyRow): KnownKey {
  const { id, organizationId, clientDomainId, mac, domain, environment, provedAt } = row;
  if (clientDomainId === null || domain === null || environment === null)
    return { mac, provedSha256: null, key: { id, organizationId }, provedAt: null };
  const { readsPerSecond, createsPerSecond } = row;
  const entitlements = entitlementsWith(row.entitlements);
  const limits = { readsPerSecond, createsPerSecond };
  return {
    mac,
    provedSha256: null,
    key: { id, organizationId, clientDomainId, domain, environment, entitlements, limits },
    provedAt,
  };
}
