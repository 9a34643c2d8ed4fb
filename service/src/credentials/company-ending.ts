import { Problem } from "../platform/http/problems.ts";
import type { Ctx } from "../platform/context.ts";
import { purgeInBatches } from "../platform/database/purge.ts";
import type { Queryable } from "../platform/database/db.ts";
import { workInBatches } from "../platform/database/work-in-batches.ts";
import * as company from "./company-store.ts";
import * as store from "./credential-store.ts";
import type { CompanyCallbacks, CredentialsCallbacks } from "./credentials-context.ts";
import type { Issuer } from "./issuer.ts";

type CompanyEndingContext = Pick<Ctx, "db" | "clock" | "audit"> &
  CompanyCallbacks &
  Pick<CredentialsCallbacks, "onCompanyRecordOver">;

/** How long the values of an ended record are kept, for questions about what it said last. */
const retentionSeconds = 7 * 86_400;
const batchMax = 200;

/**
 * Revokes the record of a business at once and for good; a job then revokes its root on chain. If no other record
 * vouches for the business, that is no longer verified. Does nothing if the record has ended already.
 *
 * @throws {Problem} credential_not_found, also for one of another issuer
 */
export async function revokeCompanyRecord(
  ctx: CompanyEndingContext,
  issuer: Pick<Issuer, "id">,
  id: string,
): Promise<void> {
  await ctx.db.transaction(async (tx) => {
    const found = await company.findRecord(tx, issuer.id, id);
    if (found === null) throw new Problem("credential_not_found");
    // Every transaction that changes the records of a business locks the business first, so that two cannot deadlock.
    await ctx.holdCompany(tx, found);
    const now = ctx.clock.now();
    const ended = await store.endCredentials(tx, { ids: [id], reason: "revoked", now });
    if (ended === 0) return;
    const actor = `issuer:${issuer.id}`;
    await ctx.audit.record(tx, { actor, action: "company.revoke", subject: id });
    await noteOver(ctx, tx, [found]);
  });
}

/** Notes which records have expired, or were invalidated by a distrust of their issuer. */
export async function endCompanyRecords(ctx: CompanyEndingContext): Promise<void> {
  await workInBatches(batchMax, async (limit) => {
    const now = ctx.clock.now();
    const due = await company.listRecordsDue(ctx.db, { now, limit });
    const { over = [], standing = [] } = Object.groupBy(due, ({ isOver }) =>
      isOver ? "over" : "standing",
    );
    for (const [record, ...more] of Map.groupBy(over, ({ business }) => business).values()) {
      if (record === undefined) continue;
      await ctx.db.transaction(async (tx) => {
        await ctx.holdCompany(tx, record);
        await noteOver(ctx, tx, [record, ...more]);
      });
    }
    if (standing.length > 0) {
      const ids = standing.map(({ id }) => id);
      await company.putBackStanding(ctx.db, ids, now);
    }
    return due.length;
  });
}

/** Notes that records of one business have ended; the business has to be locked. */
async function noteOver(
  ctx: CompanyEndingContext,
  tx: Queryable,
  over: readonly [company.OverRecord, ...company.OverRecord[]],
): Promise<void> {
  const now = ctx.clock.now();
  const ids = over.map(({ id }) => id);
  const { business, environment } = over[0];
  const didVouch = await company.noteRecordsOver(tx, ids, now);
  await ctx.onCompanyRecordOver(tx, { business, environment });
  if (!didVouch) return;
  const isVouchedFor = await company.isVouchedFor(tx, { business, environment, now });
  if (!isVouchedFor) await ctx.onCompanyRecord(tx, { business, environment, isVouchedFor });
}

/** Deletes the values of records that ended seven days ago. */
export async function purgeCompanyValues({ db, clock }: Pick<Ctx, "db" | "clock">): Promise<void> {
  const before = clock.now() - retentionSeconds;
  await purgeInBatches(async (limit) => company.deleteValues(db, before, limit));
  await purgeInBatches(async (limit) => company.noteEmptied(db, before, limit));
}
