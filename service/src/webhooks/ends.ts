import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/db.ts";
import { lockHealth, saveHealth, wakeSettling } from "./endpoint-store.ts";
import { deliveredDataSeconds, resendSeconds } from "./event.ts";
import { type Beat, noteBeat } from "./quarantine.ts";
import * as store from "./delivery-store.ts";

/**
 * Keeps how attempts ended. What they tell of KYB endpoints is kept with them: of an endpoint that goes into
 * quarantine all events are held soon after, also those whose last attempt this was; none goes out meanwhile.
 */
export async function keepEnds(
  ctx: Pick<Ctx, "db" | "clock" | "log">,
  ended: readonly store.Ended[],
): Promise<void> {
  const purge = { deliveredDataSeconds, keptUntil: ctx.clock.now() + resendSeconds };
  if (!ended.some(tellsOfEndpoint)) {
    await store.finish(ctx.db, ended, purge);
    return;
  }
  const quarantined = await ctx.db.transaction(async (tx) => {
    const { inactive, out } = await noteHealth(tx, ended.filter(tellsOfEndpoint));
    const nowMs = Math.floor(ctx.clock.nowMs());
    const isKept = (each: store.Ended): boolean =>
      tellsOfEndpoint(each) && inactive.has(each.kybEndpointId) && each.deliveredAt === null;
    const kept = ended.map((each) => (isKept(each) ? { ...each, dueAtMs: nowMs } : each));
    await store.finish(tx, kept, purge);
    if (out.size > 0) await wakeSettling(tx);
    return out;
  });
  for (const endpointId of quarantined)
    ctx.log.warn({ endpointId }, "a webhook endpoint was put into quarantine");
}

type Beating = store.Ended & Pick<Beat, "outcome"> & { readonly kybEndpointId: string };

function tellsOfEndpoint(each: store.Ended): each is Beating {
  return each.kybEndpointId !== null && each.outcome !== null;
}

/**
 * What the address that an endpoint has left meanwhile answers tells nothing of the endpoint.
 *
 * @returns those of the endpoints that are in quarantine, and of them those that this put there
 */
async function noteHealth(
  tx: Queryable,
  ended: readonly Beating[],
): Promise<{ inactive: Set<string>; out: Set<string> }> {
  const inOrder = ended.toSorted((a, b) => a.begunAtMs - b.begunAtMs);
  const byEndpoint = Map.groupBy(inOrder, (each) => each.kybEndpointId);
  const before = await lockHealth(tx, [...byEndpoint.keys()]);
  const after = before.map(({ id, url, health }) => {
    const beats = (byEndpoint.get(id) ?? []).filter((each) => each.kybEndpointUrl === url);
    return { id, health: beats.reduce(noteBeat, health) };
  });
  await saveHealth(tx, after);
  const wasActive = new Map(before.map(({ id, health }) => [id, health.isActive]));
  const inactive = after.filter(({ health }) => !health.isActive).map(({ id }) => id);
  const out = inactive.filter((id) => wasActive.get(id) === true);
  return { inactive: new Set(inactive), out: new Set(out) };
}
