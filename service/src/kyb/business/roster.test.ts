import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { openContext } from "../../compose.ts";
import { parseConfig } from "../../platform/config/config.ts";
import { sql } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import { lookAtOpen } from "./roster.ts";
import { claimLooks, requestLook } from "./roster-store.ts";

await using database = await openTestDatabase();
await using ctx = await openContext(
  parseConfig({ DATABASE_URL: database.url, MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent" }),
);
const addressOf = (number: number): Address => `0x${String(number).padStart(40, "0")}`;

await test("a business that something has become of is looked at before those where something may have", async () => {
  const total = 1_000;
  await ctx.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      select '0x' || lpad(n::text, 40, '0'), 'live', 'Test Ltd', 'active', ${addressOf(0)}, n::text, 0,
        ${Buffer.alloc(32)}, ${Buffer.alloc(1)}, 0
      from generate_series(1::int, ${total}) as n`,
  );
  await ctx.db.query(
    sql`insert into business_removal (business, member, ends_at, keep_nonce)
      select address, creator, 0, 0 from business`,
  );
  await lookAtOpen(ctx);
  const claim = async (): Promise<Address[]> => {
    const now = ctx.clock.now();
    const looks = await claimLooks(ctx.db, { now, until: now + 30, limit: 20 });
    return looks.map(({ address }) => address);
  };
  assert.equal((await claim()).length, 20, "those where something may have are due at once");
  for (const number of [1, total / 2, total]) {
    const urgent = addressOf(number);
    await requestLook(ctx.db, urgent);
    assert.ok((await claim()).includes(urgent), urgent);
  }
});
