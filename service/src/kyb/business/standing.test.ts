import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, encodeCharter } from "@svc/protocol";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { openContext } from "../../compose.ts";
import { parseConfig } from "../../platform/config/config.ts";
import { sql } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import type { KybContext } from "../kyb-context.ts";
import { bufferOfHex } from "../../platform/hex.ts";
import { holdBusiness } from "./business-store.ts";
import { stopBusinesses } from "./standing.ts";
import { requestStop } from "./standing-store.ts";

await using database = await openTestDatabase();
await using opened = await openContext(
  parseConfig({ DATABASE_URL: database.url, MASTER_KEY: "11".repeat(32), LOG_LEVEL: "silent" }),
);

await test("a business is stopped as soon as whoever asks something of it at that moment is done", async () => {
  const business: Address = `0x${"ab".repeat(20)}`;
  const rules = {
    signature_requests: "MAJORITY",
    data_requests: "MAJORITY",
    governance: "UNANIMOUS",
  } as const;
  const charter = encodeCharter({ rules, members: [{ address: business, isVoting: true }] });
  await opened.db.query(
    sql`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${business}, 'live', 'Test Ltd', 'suspended', ${business}, 'invitation', 0, ${Buffer.alloc(32)},
        ${bufferOfHex(charter)}, 0)`,
  );
  const stopped: Address[] = [];
  const ctx = Object.assign(opened, {
    endBusinessLogins: async (_tx: unknown, address: Address) => void stopped.push(address),
  }) as unknown as KybContext;
  await requestStop(ctx.db, business, "business_not_verified");
  const { stopping } = await ctx.db.transaction(async (tx) => {
    await holdBusiness(tx, business);
    const waiting = stopBusinesses(ctx);
    await Promise.race([waiting, untilBlocked(ctx.db)]);
    return { stopping: waiting };
  });
  await stopping;
  assert.deepEqual(stopped, [business]);
});
