import { chainAudit } from "../service/src/platform/audit/audit.ts";
import { sql } from "../service/src/platform/database/db.ts";
import { until } from "./patience.ts";

/** Links every entry. It may take several tries, while transactions of other tests on the same server hold it back. */
export async function chainAll(ctx: Parameters<typeof chainAudit>[0]): Promise<void> {
  await until("entries are linked", async () => {
    await chainAudit(ctx);
    const left = await ctx.db.query(sql`
      select from audit_entry where id not in (select entry_id from audit_link) limit 1`);
    return left.length === 0 ? true : null;
  });
}
