import { addressPolicyOf, parsePublicUrl } from "../platform/outbound/address-policy.ts";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { invalidRequest, Problem } from "../platform/http/problems.ts";
import { type Endpoint, endpointIdOf } from "./endpoint.ts";
import { makeSecret, overlapSeconds } from "./endpoint-secret.ts";
import * as store from "./endpoint-store.ts";
import { releaseOldest } from "./held.ts";

/** An endpoint with its newly made secret, which is shown only this once. */
export interface EndpointWithSecret extends Endpoint {
  /** 64 hex digits. */
  readonly secret: string;
}

type EndpointContext = Pick<Ctx, "clock" | "random" | "seal" | "config">;

/**
 * Registers or replaces the endpoint of a client domain. Its old secrets end at once, and so does a quarantine: held
 * events go to the new URL.
 *
 * @throws {Problem} invalid_request for a URL that the policy refuses (decisions section 7, Address policy)
 */
export async function registerEndpoint(
  ctx: EndpointContext,
  tx: Queryable,
  given: { clientDomainId: string; url: string },
): Promise<EndpointWithSecret> {
  const { clientDomainId } = given;
  const url = parsePublicUrl(given.url, addressPolicyOf(ctx.config));
  if ("refused" in url) throw invalidRequest(`url must be a public https URL (${url.refused})`);
  const id = idOf(clientDomainId);
  const endpoint = await store.saveEndpoint(tx, {
    id,
    clientDomainId,
    url: url.href,
    now: ctx.clock.now(),
  });
  const { secret, row } = makeSecret(ctx, endpoint.secretVersion);
  await store.replaceSecrets(tx, id, row);
  await releaseOldest(ctx, tx, id);
  return { ...endpoint, secret };
}

/**
 * Makes a new secret. The previous one keeps signing beside it for 24 hours unless `immediate`; older ones end at once.
 *
 * @throws {Problem} no_webhook_endpoint
 */
export async function rotateSecret(
  ctx: EndpointContext,
  tx: Queryable,
  given: { clientDomainId: string; immediate: boolean },
): Promise<EndpointWithSecret> {
  const id = idOf(given.clientDomainId);
  const endpoint = await store.raiseSecretVersion(tx, id);
  if (endpoint === null) throw new Problem("no_webhook_endpoint");
  const { secret, row } = makeSecret(ctx, endpoint.secretVersion);
  if (given.immediate) await store.replaceSecrets(tx, id, row);
  else await store.rotateSecrets(tx, id, { row, oldExpiresAt: ctx.clock.now() + overlapSeconds });
  return { ...endpoint, secret };
}

/**
 * Ends a quarantine: held events are sent, oldest first, and at a slow pace until the first 2xx.
 *
 * @throws {Problem} no_webhook_endpoint, endpoint_not_quarantined
 */
export async function reactivateEndpoint(
  ctx: Pick<Ctx, "clock">,
  tx: Queryable,
  clientDomainId: string,
): Promise<Endpoint> {
  const id = idOf(clientDomainId);
  const endpoint = await store.reactivate(tx, id, ctx.clock.now());
  if (endpoint === null) {
    if (await hasEndpoint(tx, clientDomainId)) throw new Problem("endpoint_not_quarantined");
    throw new Problem("no_webhook_endpoint");
  }
  await releaseOldest(ctx, tx, id);
  return endpoint;
}

/** @throws {Problem} endpoint_not_found */
export async function getEndpoint(tx: Queryable, clientDomainId: string): Promise<Endpoint> {
  const endpoint = await store.findEndpoint(tx, idOf(clientDomainId));
  if (endpoint === null) throw new Problem("endpoint_not_found");
  return endpoint;
}

/** Whether a client domain has an endpoint, in quarantine or not. */
export async function hasEndpoint(tx: Queryable, clientDomainId: string): Promise<boolean> {
  return (await store.findEndpoint(tx, idOf(clientDomainId))) !== null;
}

/**
 * Takes stream id and sequence number for the next test event, in the transaction that announces it. The test events of
 * an endpoint are a stream of their own.
 *
 * @throws {Problem} no_webhook_endpoint
 */
export async function takeTestPlace(
  tx: Queryable,
  clientDomainId: string,
): Promise<{ streamId: string; sequence: number }> {
  const streamId = idOf(clientDomainId);
  const sequence = await store.raiseTestSequence(tx, streamId);
  if (sequence === null) throw new Problem("no_webhook_endpoint");
  return { streamId, sequence };
}

function idOf(clientDomainId: string): string {
  return endpointIdOf({ channel: "kyb", clientDomainId, url: null });
}
