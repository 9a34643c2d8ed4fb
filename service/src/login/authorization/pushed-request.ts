import type { Client } from "../../accounts/index.ts";
import type { Queryable } from "../../platform/database/db.ts";
import type { Form } from "../../platform/http/http-input.ts";
import { OAuthProblem } from "../../platform/http/problems.ts";
import { parameterNames } from "./authorization-parameters.ts";
import { type AuthorizationRequest, firstValueOf } from "./authorization-request.ts";
import { checkDpopProof, refuseReplayedProof } from "../token/dpop.ts";
import { judgeRequest } from "./judged-request.ts";
import type { LoginContext } from "../login-context.ts";
import * as store from "./pushed-request-store.ts";
import { spendOnce } from "../token/used-once-store.ts";

const uriPrefix = "urn:ietf:params:oauth:request_uri:";
const pushedLifetimeSeconds = 60;
export const pushPath = "/oauth2/par";

/**
 * Keeps an authorization request for one use (RFC 9126 section 2). It is judged in full now, so the client learns of
 * its faults server to server.
 *
 * @throws {OAuthProblem}
 */
export async function pushRequest(
  ctx: LoginContext,
  client: Client,
  call: { readonly form: Form; readonly dpop: string | undefined },
): Promise<{ request_uri: string; expires_in: number }> {
  const form = await bindToProof(ctx, call);
  if (firstValueOf(form, "request_uri") !== undefined)
    throw new OAuthProblem("invalid_request", "request_uri must not be pushed");
  const clientId = firstValueOf(form, "client_id");
  if (clientId !== undefined && clientId !== client.id)
    throw new OAuthProblem("invalid_request", "client_id is not that of the authenticated client");
  const judged = await judgeRequest(ctx, client, { given: form, isPushed: true });
  if ("fault" in judged) throw judged.fault;
  const id = ctx.random.bytes(32).toString("base64url");
  const parameters: Record<string, Form[string]> = { client_id: client.id };
  for (const name of parameterNames) {
    const value = form[name];
    if (value !== undefined) parameters[name] = value;
  }
  await store.insertPushed(ctx.db, {
    id,
    clientId: client.id,
    parameters,
    expiresAt: ctx.clock.now() + pushedLifetimeSeconds,
  });
  return { request_uri: `${uriPrefix}${id}`, expires_in: pushedLifetimeSeconds };
}

/**
 * A DPoP proof sent along binds the code to its key, as `dpop_jkt` does (RFC 9449 section 10.1).
 *
 * @throws {OAuthProblem}
 */
async function bindToProof(
  ctx: LoginContext,
  { form, dpop }: { readonly form: Form; readonly dpop: string | undefined },
): Promise<Form> {
  if (dpop === undefined) return form;
  const url = `${ctx.config.baseUrl}${pushPath}`;
  const proof = checkDpopProof(dpop, { method: "POST", url, now: ctx.clock.now() });
  const named = firstValueOf(form, "dpop_jkt");
  if (named !== undefined && named !== proof.jkt)
    throw new OAuthProblem("invalid_dpop_proof", "dpop_jkt names another key than the proof's");
  if ((await spendOnce(ctx.db, [proof.oneTime])).length === 0) refuseReplayedProof();
  return { ...form, dpop_jkt: proof.jkt };
}

/** The id in a `request_uri` of ours; null for anything else. */
export function pushedIdOf(uri: string): string | null {
  return uri.startsWith(uriPrefix) && uri.length <= 200 ? uri.slice(uriPrefix.length) : null;
}

/** The parameters that were pushed under this id, until a login begins with them; null for anything else. */
export async function findPushedRequest(
  ctx: LoginContext,
  id: string,
  clientId: string,
): Promise<Form | null> {
  return store.findPushed(ctx.db, id, { clientId, now: ctx.clock.now() });
}

/**
 * Begins a login and, in the same transaction, uses up the pushed request that it comes from, if any.
 *
 * @param begin resolves to false if it wrote nothing; the pushed request then stays
 * @throws {OAuthProblem} if the pushed request was used meanwhile; what `begin` wrote is rolled back
 */
export async function beginOnce(
  { db }: LoginContext,
  { pushedId }: AuthorizationRequest,
  begin: (tx: Queryable) => Promise<boolean>,
): Promise<boolean> {
  if (pushedId === undefined) return begin(db);
  return db.transaction(async (tx) => {
    if (!(await begin(tx))) return false;
    return (await store.deletePushed(tx, pushedId)) || refusePushed();
  });
}

/** Whatever the reason, the browser has to begin anew. */
export function refusePushed(): never {
  throw new OAuthProblem(
    "invalid_request_uri",
    "this pushed request is unknown, used or expired; go back and start again",
  );
}
