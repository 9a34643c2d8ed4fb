import { isDeepStrictEqual } from "node:util";
import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { lockHealth, saveHealth, wakeReconciling } from "./endpoint-store.ts";
import { deliveredDataSeconds, resendSeconds } from "./event.ts";
import { type EndedAttempt, healthAfter } from "./quarantine.ts";
import * as store from "./delivery-store.ts";

/**
 * Records how attempts ended, and updates the health of the KYB endpoints to which they were made. If an endpoint is in
 * quarantine after that, failed events stay due at once even after their last attempt, so that they are held. So do
 * events whose endpoint was reset during the attempt, and their schedule begins anew.
 *
 * @returns whether any delivery is due again at once
 */
export async function recordEnds(
  ctx: Pick<Ctx, "db" | "clock" | "log">,
  ended: readonly store.Ended[],
): Promise<boolean> {
  const nowMs = Math.floor(ctx.clock.nowMs());
  const times = { nowMs, deliveredDataSeconds, keptUntil: ctx.clock.now() + resendSeconds };
  if (!ended.some(concernsEndpoint)) return store.finish(ctx.db, ended, times);
  const { isDue, quarantined } = await ctx.db.transaction(async (tx) => {
    const { inactive, newlyInactive, stale } = await noteHealth(tx, ended.filter(concernsEndpoint));
    const isHeld = (each: store.Ended): boolean =>
      concernsEndpoint(each) &&
      each.deliveredAt === null &&
      (inactive.has(each.kybEndpointId) || stale.has(each.eventId));
    const recorded = ended.map((each) => (isHeld(each) ? { ...each, dueAtMs: nowMs } : each));
    const isAnyDue = await store.finish(tx, recorded, times);
    const anew = recorded.filter((each) => isHeld(each) && stale.has(each.eventId));
    if (anew.length > 0)
      await store.restart(
        tx,
        anew.map(({ eventId }) => eventId),
      );
    if (newlyInactive.size > 0) await wakeReconciling(tx);
    return { isDue: isAnyDue, quarantined: newlyInactive };
  });
  for (const endpointId of quarantined)
    ctx.log.warn({ endpointId }, "a webhook endpoint was put into quarantine");
  return isDue;
}

type EndedAtEndpoint = store.Ended &
  Pick<EndedAttempt, "outcome"> & { readonly kybEndpointId: string };

function concernsEndpoint(each: store.Ended): each is EndedAtEndpoint {
  return each.kybEndpointId !== null && each.outcome !== null;
}

/** The effect of attempts on their endpoints. */
interface Noted {
  /** Endpoints that are in quarantine. */
  readonly inactive: ReadonlySet<string>;
  /** Those of them that these attempts put there. */
  readonly newlyInactive: ReadonlySet<string>;
  /** Events whose attempt began before the owner replaced or reactivated the endpoint. */
  readonly stale: ReadonlySet<string>;
}

/** An attempt that began before the endpoint was reset says nothing about its health. */
async function noteHealth(tx: Queryable, ended: readonly EndedAtEndpoint[]): Promise<Noted> {
  const inOrder = ended.toSorted((a, b) => a.begunAtMs - b.begunAtMs);
  const byEndpoint = Map.groupBy(inOrder, (each) => each.kybEndpointId);
  const before = await lockHealth(tx, [...byEndpoint.keys()]);
  const healthBefore = new Map(before.map(({ id, health }) => [id, health]));
  const stale = new Set<string>();
  const after = before.map(({ id, resets, health }) => {
    const all = byEndpoint.get(id) ?? [];
    const isOfNow = (each: EndedAtEndpoint): boolean => each.kybEndpointResets === resets;
    // Null if the attempt failed before it had read its endpoint.
    for (const each of all)
      if ((each.kybEndpointResets ?? resets) !== resets) stale.add(each.eventId);
    return { id, health: all.filter(isOfNow).reduce(healthAfter, health) };
  });
  const changed = after.filter(
    ({ id, health }) => !isDeepStrictEqual(health, healthBefore.get(id)),
  );
  if (changed.length > 0) await saveHealth(tx, changed);
  const inactive = after.filter(({ health }) => !health.isActive).map(({ id }) => id);
  const newlyInactive = inactive.filter((id) => healthBefore.get(id)?.isActive === true);
  return { inactive: new Set(inactive), newlyInactive: new Set(newlyInactive), stale };
}
