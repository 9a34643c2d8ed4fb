import assert from "node:assert/strict";
import { setTimeout as delay } from "node:timers/promises";
import { chainAudit } from "../service/src/platform/audit.ts";
import { sql } from "../service/src/platform/db.ts";

const triesMax = 1000;
const pauseMs = 20;

/** Links every entry. Transactions of other tests on the same server hold the horizon back for a moment. */
export async function chainAll(ctx: Parameters<typeof chainAudit>[0]): Promise<void> {
  for (let tries = 0; tries < triesMax; tries += 1) {
    await chainAudit(ctx);
    const left = await ctx.db.query(sql`
      select from audit_entry where id not in (select entry_id from audit_link) limit 1`);
    if (left.length === 0) return;
    await delay(pauseMs);
  }
  assert.fail("entries were not linked within 20 s");
}
