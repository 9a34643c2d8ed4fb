// What a scrape tells of an audit trail that is held up.
import assert from "node:assert/strict";
import { test } from "node:test";
import { chainAll } from "../../../../test/linked-audit.ts";
import { createRandom } from "../cryptography/random.ts";
import { openInstallationKeys } from "../cryptography/installation-keys.ts";
import { createSeal } from "../cryptography/seal.ts";
import { openDb } from "../database/db.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { chainAudit, createAudit } from "./audit.ts";
import type { AuditContext } from "./audit-chain.ts";
import { openAuditMetrics } from "./audit-metrics.ts";

await using database = await openTestDatabase();
await using db = openDb({ ...database.connection, connections: 3 });
let now = 1_700_000_000;
const clock = { now: () => now, nowMs: () => now * 1000 };
const seal = createSeal(["a1".repeat(32)]);
const keys = await openInstallationKeys({ db, seal, clock, random: createRandom() });
const ctx: AuditContext = { db, clock, keys };

const scrapeOf = (over: typeof db): (() => Promise<string | undefined>) => {
  const metrics = createMetrics();
  openAuditMetrics({ db: over, clock, metrics });
  return async () =>
    /^audit_oldest_unsealed_seconds (\S+)$/m.exec(await metrics.registry.metrics())?.[1];
};

await test("a scrape shows how long entries have waited for a seal that an open transaction delays", async () => {
  const scrape = scrapeOf(db);
  const audit = createAudit(ctx);
  const entry = { actor: "system", action: "test.run", subject: "first" };
  await chainAll(ctx);
  assert.equal(await scrape(), "0");
  await db.transaction(async (tx) => {
    await audit.record(tx, entry);
    await audit.record(db, entry);
    now += 90;
    assert.equal(await chainAudit(ctx), 0);
    assert.equal(await scrape(), "90");
  });
  await chainAll(ctx);
  assert.equal(await scrape(), "0");
});

await test("while the database is away, nothing is told of the trail", async () => {
  const away = openDb({ host: "127.0.0.1", port: 1, connections: 1 });
  assert.equal(await scrapeOf(away)(), undefined);
  await away.close();
});
