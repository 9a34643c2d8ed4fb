import { type Queryable, sql } from "../platform/database/db.ts";

/** Which kinds of work have something to do. */
export interface Due {
  readonly ballots: boolean;
  readonly approvals: boolean;
  readonly dataRefusals: boolean;
  readonly signatureRefusals: boolean;
  readonly failedRecordings: boolean;
  readonly removals: boolean;
}

/** One statement for all kinds, each by its own index, since it runs every second and usually finds nothing. */
export async function readDue(db: Queryable, now: number): Promise<Due> {
  const [row] = await db.query<Due>(sql`
    select
      exists (select from ballot where status = 'open' and expires_at >= 0 and expires_at < ${now}) as ballots,
      exists (select from data_request
        where approved_at is not null and status = 'pending_approval') as approvals,
      exists (select from data_request
        where refused_due_at <= ${now} and status = 'pending_approval') as "dataRefusals",
      exists (select from signature_request
        where refused_due_at <= ${now} and status = 'pending_approval') as "signatureRefusals",
      exists (select from signature_request where has_failed_recording) as "failedRecordings",
      exists (select from business_removal where ends_at <= ${now} and answered_at is null) as removals`);
  if (row === undefined) throw new Error("the database did not tell what is due");
  return row;
}
