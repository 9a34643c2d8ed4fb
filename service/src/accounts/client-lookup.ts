import type { Ctx } from "../platform/context.ts";
import { type Client, matchSecret } from "./client.ts";
import { isVerifiedNow } from "./client-domains.ts";
import * as store from "./client-store.ts";
import { openRowCache } from "./row-cache.ts";
import { openUseRecord } from "./use-record.ts";

/** Looks up clients for the login engine's hot path: in memory, rarely in the database. */
export interface Clients extends AsyncDisposable {
  /** Null for an unknown or disabled client. A change by another process is seen at once, at the latest after 60 s. */
  find(id: string): Promise<Client | null>;
  /** Reads the client from the database, for a caller about to refuse the cached one, which may be out of date. */
  findAnew(id: string): Promise<Client | null>;
  /**
   * The given client if it fits, else the one in the database if that fits, else null. For callers to whom an
   * out-of-date client would mean a refusal, or work left undone for good.
   */
  findFitting(remembered: Client, fits: (client: Client) => boolean): Promise<Client | null>;
  /** Whether the text is a live secret of the client, in constant time; records its use. Never calls the database. */
  verifySecret(client: Client, presented: string): boolean;
}

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
      return /^[A-Za-z0-9_-]{1,64}$/.test(id) ? cache.find(id) : null;
    },
    findAnew: async (id) => cache.findAnew(id),
    async findFitting(remembered, fits) {
      if (fits(remembered)) return remembered;
      const client = await cache.findAnew(remembered.id);
      return client !== null && fits(client) ? client : null;
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
  const { secretIds, secretHashes, provedAt: _, ...client } = row;
  const secrets = secretIds.flatMap((id, index) => {
    const sha256 = secretHashes[index];
    return sha256 === undefined ? [] : [Object.freeze({ id, sha256 })];
  });
  return Object.freeze({
    ...client,
    redirectUris: Object.freeze(row.redirectUris),
    postLogoutRedirectUris: Object.freeze(row.postLogoutRedirectUris),
    audiences: Object.freeze(row.audiences),
    // PKCE is required, whatever the row says, in production, where the database may once have served `dev` (decisions
    // section 2, PKCE), and of a client without any other proof.
    pkceRequired:
      row.pkceRequired || profile === "production" || row.authenticationMethod === "none",
    domain: isVerifiedNow(ctx, row) ? row.domain : null,
    secrets: Object.freeze(secrets),
  });
}
