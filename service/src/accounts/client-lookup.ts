import type { Ctx } from "../platform/context.ts";
import { type Client, matchSecret } from "./client.ts";
import { isVerified, proofNeeded } from "./client-domain.ts";
import * as store from "./client-store.ts";
import { openRowCache } from "./row-cache.ts";
import { openUseRecord } from "./use-record.ts";

/** The clients of this installation as the login engine asks for them, on the hot path: from memory, rarely from the database. */
export interface Clients extends AsyncDisposable {
  /** Null for an unknown or disabled client. A change by another process is seen at once, at the latest after 60 s. */
  find(id: string): Promise<Client | null>;
  /** Whether the text is a live secret of the client, in constant time; records its use. Never calls the database. */
  verifySecret(client: Client, presented: string): boolean;
}

const idLengthMax = 64;

/** Opens the lookup of one process; it follows the channel `client`. */
export async function openClients(ctx: Ctx): Promise<Clients> {
  const cache = await openRowCache<Client>(ctx, {
    channel: "client",
    load: async (id) => {
      const row = await store.findLiveClient(ctx.db, id);
      return row === null ? null : toClient(ctx, row);
    },
  });
  const uses = openUseRecord(ctx, async (noted) => store.recordSecretUses(ctx.db, noted));
  return {
    async find(id) {
      const isPossible = id.length <= idLengthMax && /^[A-Za-z0-9_-]+$/.test(id);
      return isPossible ? cache.find(id) : null;
    },
    verifySecret(client, presented) {
      const secretId = matchSecret(client, presented);
      if (secretId !== null) uses.note(secretId);
      return secretId !== null;
    },
    async [Symbol.asyncDispose]() {
      cache[Symbol.dispose]();
      await uses[Symbol.asyncDispose]();
    },
  };
}

function toClient(ctx: Ctx, row: store.LiveClientRow): Client {
  const { profile } = ctx.config;
  const settings = store.toSettings(row);
  const proof = proofNeeded(row.domain, profile);
  const isProved = isVerified({ proof, provedAt: row.proved_at }, ctx.clock.now());
  const secrets = row.secret_ids.flatMap((id, index) => {
    const sha256 = row.secret_hashes[index];
    return sha256 === undefined ? [] : [Object.freeze({ id, sha256 })];
  });
  return Object.freeze({
    ...settings,
    redirectUris: Object.freeze(settings.redirectUris),
    postLogoutRedirectUris: Object.freeze(settings.postLogoutRedirectUris),
    audiences: Object.freeze(settings.audiences),
    // Optional PKCE must not survive in a database that once served `dev` (decisions section 2, PKCE), and a client
    // without any other proof may not have it.
    pkceRequired:
      settings.pkceRequired || profile === "production" || settings.authenticationMethod === "none",
    id: row.id,
    clientDomainId: row.client_domain_id,
    organizationId: row.organization_id,
    environment: row.environment,
    domain: isProved ? row.domain : null,
    loginsPerClientMinute: row.logins_per_client_minute,
    secrets: Object.freeze(secrets),
  });
}
