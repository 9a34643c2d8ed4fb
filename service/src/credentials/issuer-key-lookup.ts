import { openRowCache, openUseRecord, readApiKey } from "../accounts/index.ts";
import type { Ctx } from "../platform/context.ts";
import { equalBytes } from "../platform/cryptography/mac.ts";
import { Problem } from "../platform/http/problems.ts";
import type { Issuer } from "./issuer.ts";
import * as store from "./issuer-store.ts";

/** The keys of issuers, from memory, rarely from the database. */
export interface IssuerKeys extends AsyncDisposable {
  /**
   * Reads the `Authorization` header of a call of the issuer API: the key alone, without `Bearer`.
   *
   * @throws {Problem} apikey_missing | apikey_invalid; the error does not say whether the key is unknown, revoked,
   * damaged or of another kind
   */
  authenticate(authorization: string | undefined): Promise<Caller>;
}

/** Who calls the issuer API. */
export interface Caller {
  readonly keyId: string;
  readonly issuer: Issuer;
}

/** Opens the lookup of one process; it follows the channel `issuer-key`. */
export async function openIssuerKeys(ctx: Ctx): Promise<IssuerKeys> {
  const cache = await openRowCache(ctx, {
    channel: store.issuerChannel,
    load: async (id) => store.findLiveIssuerKey(ctx.db, id),
  });
  const uses = openUseRecord(ctx, async (noted) => store.recordIssuerKeyUses(ctx.db, noted));
  return {
    async authenticate(authorization) {
      const presented = readApiKey(authorization);
      if (presented.kind !== "issuer") throw new Problem("apikey_invalid");
      const known = await cache.find(presented.id);
      if (known === null || !equalBytes(known.mac, ctx.keys.mac("issuer-key", presented.text)))
        throw new Problem("apikey_invalid");
      uses.note(presented.id);
      return { keyId: presented.id, issuer: known.issuer };
    },
    async [Symbol.asyncDispose]() {
      cache[Symbol.dispose]();
      await uses[Symbol.asyncDispose]();
    },
  };
}
