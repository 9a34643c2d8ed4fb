import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { test } from "node:test";
import { openDb, sql } from "../platform/database/db.ts";
import { endpointsMax } from "./claim-round.ts";
import { claim, firstEndpoint } from "./delivery-store.ts";
import { openTestWebhooks } from "./test-webhooks.ts";

test("a claim is planned once per size of the queue, and again when that has grown", async () => {
  await using webhooks = await openTestWebhooks();
  const { ctx, clientDomainId } = webhooks;
  await using single = openDb({ ...ctx.db.connectionString, connections: 1 });
  const take = async (): Promise<number> => {
    const nowMs = Math.floor(ctx.clock.nowMs());
    const { deliveries } = await claim(single, {
      nowMs,
      lease: randomUUID(),
      leasedUntilMs: nowMs + 30_000,
      limit: 10,
      after: firstEndpoint,
      endpointsMax,
      slots: 8,
      slow: [],
      fullDomains: [],
      largeMax: 16,
      fullOfLarge: [],
    });
    return deliveries.length;
  };
  const plans = async (): Promise<number> => {
    const [row] = await single.query<{ count: number }>(sql`
      select count(*) from pg_prepared_statements where starts_with(ltrim(statement, e' \\n'), 'with recursive turn')`);
    return row?.count ?? 0;
  };
  const enqueue = async (count: number): Promise<void> =>
    webhooks.enqueue(
      ...Array.from({ length: count }, (_, at) =>
        webhooks.event({ url: `https://${at % 10}.example/hook`, clientDomainId }),
      ),
    );
  assert.equal(await take(), 0);
  await enqueue(1);
  assert.deepEqual([await take(), await take(), await plans()], [1, 0, 1]);
  await enqueue(1000);
  assert.deepEqual([await take(), await take(), await plans()], [10, 10, 2]);
});
