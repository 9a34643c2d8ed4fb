import { type Queryable, sql } from "./database/db.ts";
import { purgeOf } from "./database/purge-store.ts";

/** One draw takes this share of a full bucket, but from a nearly empty one no more than is asked for. */
const share = 1 / 16;

/** A caller that has waited as long as it was told must not fail because of a rounding error. */
export const roundingTokens = 1e-6;

export interface LeaseDraw {
  readonly perSecond: number;
  readonly burst: number;
  /** The number of the epoch for which the lease is drawn. */
  readonly epoch: number;
  /** Unix seconds with fraction. */
  readonly now: number;
  /** Tokens asked for. */
  readonly demand: number;
  /** The most tokens drawn beyond what is asked for. */
  readonly spareMax: number;
  /** If fewer tokens than this are left, nothing is drawn. */
  readonly leastCost: number;
}

/**
 * Refills the bucket and draws a lease of whole tokens, all in one statement. During an epoch, the bucket refills only
 * up to the burst less what was drawn in that epoch. Clocks that differ a little never set time or epoch back.
 */
export async function drawLease(
  db: Queryable,
  name: string,
  draw: LeaseDraw,
): Promise<{ leased: number; left: number }> {
  const { perSecond, burst, epoch, now, demand, spareMax, leastCost } = draw;
  const first = Math.max(
    Math.min(Math.floor(burst), demand),
    Math.min(spareMax, Math.floor(burst * share)),
  );
  const [row] = await db.query<{ leased: number; left: number }>(sql`
    insert into rate_bucket as bucket (name, tokens, refilled_at, epoch, outstanding, leased)
    values (${name}, ${burst - first}, ${now}, ${epoch}, ${first}, ${first})
    on conflict (name) do update set (tokens, refilled_at, epoch, outstanding, leased) = (
      select greatest(0, held - drawn), greatest(bucket.refilled_at, ${now}::float8),
        greatest(bucket.epoch, ${epoch}::float8), live + drawn, drawn
      from (select case when bucket.epoch >= ${epoch}::float8 then bucket.outstanding else 0 end as live) as a
      cross join lateral (
        select greatest(0, least(${burst}::float8 - live,
          bucket.tokens + greatest(0, ${now}::float8 - bucket.refilled_at) * ${perSecond}::float8)) + ${roundingTokens}::float8 as held) as b
      cross join lateral (
        select case when held < ${leastCost}::float8 then 0
          else greatest(least(floor(held), ${demand}::float8), least(${spareMax}::float8, floor(held * ${share}::float8))) end as drawn) as c)
    returning leased, tokens as left`);
  return row ?? { leased: 0, left: 0 };
}

export async function deleteBucket(tx: Queryable, name: string): Promise<void> {
  await tx.query(sql`delete from rate_bucket where name = ${name}`);
}

export const deleteBuckets = purgeOf({ table: "rate_bucket", key: "name", time: "refilled_at" });

/** Sets buckets whose time lies ahead back to `now`; their tokens stay. @returns how many */
export async function turnBackBuckets(
  db: Queryable,
  { after, now, limit }: { after: number; now: number; limit: number },
): Promise<number> {
  const rows = await db.query(sql`
    update rate_bucket set refilled_at = ${now}, epoch = 0 where name = any(array(
      select name from rate_bucket where refilled_at > ${after} order by refilled_at desc limit ${limit}
      for update skip locked))
    returning 1 as turned`);
  return rows.length;
}
