import type { Ctx } from "../platform/context.ts";
import type { Queryable } from "../platform/database/db.ts";
import { purgeByPages, purgeInBatches } from "../platform/database/purge.ts";
import { ulid } from "../platform/ids.ts";
import { forgottenSeconds } from "./event.ts";
import { sealBody } from "./events.ts";
import * as store from "./retention-store.ts";

/** Smaller than usual, since purging one of these rows changes rows of other tables too. */
const batch = 500;
const daySeconds = 86_400;
const attemptsDays = 30;
const tombstonesDays = 365;

const idPrefixes = ["", "evt_"];

type RetentionContext = Pick<Ctx, "db" | "clock">;

/**
 * Purges bodies that are due for it. Their events stay as tombstones (decisions section 7, Personal data), except those
 * of forgotten streams, which are deleted.
 */
export async function purgeBodies(ctx: RetentionContext): Promise<void> {
  const now = ctx.clock.now();
  await purgeInBatches(async (limit) => {
    const ids = await store.listExpired(ctx.db, { now, limit });
    if (ids.length > 0)
      await ctx.db.transaction(async (tx) => {
        await store.emptyExpired(tx, { ids, now });
        await store.deleteForgotten(tx, ids);
      });
    return ids.length;
  }, batch);
}

/**
 * Forgets these streams in the caller's transaction. Bodies that are still to be delivered are treated as personal data
 * from now on: sealed, and deleted with their events a day after their 2xx. Everything else is deleted at once, even
 * tombstones: the URL of an event may identify the person.
 */
export async function forgetStreams(
  ctx: Pick<Ctx, "clock" | "seal">,
  tx: Queryable,
  streamIds: readonly string[],
): Promise<void> {
  await store.deleteStreams(tx, streamIds);
  const left = await store.listBodies(tx, streamIds);
  if (left.length === 0) return;
  const sealed = left.map((event) => ({ id: event.id, bodySealed: sealBody(ctx, event) }));
  await store.markForgotten(tx, sealed, ctx.clock.now() + forgottenSeconds);
}

/** Attempts are kept for 30 days, tombstones for a year. */
export async function forgetOld(ctx: RetentionContext): Promise<void> {
  const nowMs = Math.floor(ctx.clock.nowMs());
  const beforeMs = nowMs - attemptsDays * daySeconds * 1000;
  await purgeInBatches(async (limit) => store.deleteAttempts(ctx.db, beforeMs, limit));
  const ulidBefore = firstUlidAt(nowMs - tombstonesDays * daySeconds * 1000);
  for (const prefix of idPrefixes) {
    const range = { from: prefix, before: `${prefix}${ulidBefore}` };
    await purgeInBatches(async (limit) => store.deleteTombstones(ctx.db, { ...range, limit }));
  }
  const pacedBeforeMs = nowMs - daySeconds * 1000;
  await purgeByPages(async (page) =>
    store.purgePaces(ctx.db, { beforeMs: pacedBeforeMs, ...page }),
  );
}

/** The lowest ULID of that time. Event ids are ULIDs, those of orders with a prefix, and so sort by time. */
function firstUlidAt(ms: number): string {
  const zeros = {
    bytes: (length: number) => Buffer.alloc(length),
    below: () => 0,
    fraction: () => 0,
  };
  return ulid({ nowMs: () => ms, now: () => Math.floor(ms / 1000) }, zeros);
}
