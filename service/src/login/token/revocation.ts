import { familyOf, readAccessToken } from "./access-token.ts";
import {
  authenticateClient,
  type ClientCall,
  refuseReplayedAssertion,
  spendAssertion,
} from "../client/client-authentication.ts";
import { parseRefreshToken } from "./refresh-token.ts";
import type { TokenContext } from "../token-context.ts";
import { getValue } from "./token-request.ts";
import * as store from "./token-store.ts";

/**
 * Revokes the family of an access or refresh token of the calling client (RFC 7009). An unknown token, or another
 * client's, is no error and changes nothing.
 *
 * @throws {OAuthProblem} | {Problem}
 */
export async function revoke(ctx: TokenContext, call: ClientCall): Promise<void> {
  const { client, oneTime } = await authenticateClient(ctx, call);
  const familyId = familyNamedBy(ctx, getValue(call.form, "token"));
  if (familyId === null) return spendAssertion(ctx, oneTime);
  const options = { clientId: client.id, now: ctx.clock.now(), oneTime };
  const spent = await store.revokeFamilyOf(ctx.db, familyId, options);
  if (spent.length < oneTime.length) refuseReplayedAssertion();
}

/** An expired access token will do: it still names what its holder wants to end. */
function familyNamedBy(ctx: TokenContext, text: string): string | null {
  const access = readAccessToken(ctx, text);
  if (access !== null) return familyOf(access);
  return parseRefreshToken(ctx.keys.hmac("refresh-token"), text)?.familyId ?? null;
}
