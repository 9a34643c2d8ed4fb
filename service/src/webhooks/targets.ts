import { openSecrets, type Secret } from "./endpoint-secret.ts";
import { listTargets, type TargetRow } from "./endpoint-store.ts";
import type { Delivery } from "./delivery-store.ts";
import type { WebhooksContext } from "./webhooks-context.ts";

/** Where a delivery goes now, and the secrets that sign it. */
export interface Target {
  readonly url: string;
  /** How often the owner of a KYB endpoint has replaced or reactivated it; null for KYC. */
  readonly resets: number | null;
  /** The newest first. */
  readonly secrets: readonly Secret[];
}

/** Finds a target: `held` if the endpoint is in quarantine or missing, null if there is no key to sign with. */
export type FindTarget = (delivery: Delivery) => Target | "held" | null;

/** Reads the targets of all these deliveries at once. */
export async function readTargets(
  ctx: Pick<WebhooksContext, "db" | "clock" | "seal" | "log" | "signingKeys">,
  deliveries: readonly Delivery[],
): Promise<FindTarget> {
  const keyIds = new Set(deliveries.flatMap(({ keyId }) => (keyId === null ? [] : [keyId])));
  const endpointIds = new Set(
    deliveries.filter(({ channel }) => channel === "kyb").map((each) => each.endpointId),
  );
  const [keys, rows] = await Promise.all([
    keyIds.size === 0 ? new Map<string, string>() : ctx.signingKeys([...keyIds]),
    endpointIds.size === 0 ? [] : listTargets(ctx.db, [...endpointIds]),
  ]);
  const endpoints = new Map(rows.map((row) => [row.id, openTarget(ctx, row)]));
  return ({ channel, keyId, url, endpointId }) => {
    if (channel === "kyb") {
      const target = endpoints.get(endpointId);
      return target === undefined ? "held" : target;
    }
    const secret = keyId === null ? undefined : keys.get(keyId);
    if (secret === undefined || url === null) return null;
    return { url, resets: null, secrets: [{ version: 1, secret }] };
  };
}

function openTarget(
  ctx: Pick<WebhooksContext, "clock" | "seal" | "log">,
  { id, url, isActive, resets, secrets }: TargetRow,
): Target | "held" | null {
  if (!isActive) return "held";
  try {
    return { url, resets, secrets: openSecrets(ctx, secrets, ctx.clock.now()) };
  } catch (error) {
    ctx.log.error({ err: error, endpointId: id }, "the secrets of an endpoint cannot be decrypted");
    return null;
  }
}
