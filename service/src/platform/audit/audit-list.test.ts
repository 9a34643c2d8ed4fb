import assert from "node:assert/strict";
import { after, test } from "node:test";
import { openDb, sql } from "../database/db.ts";
import { openTestDatabase } from "../database/test-database.ts";
import { listEntries } from "./audit.ts";

const database = await openTestDatabase();
const db = openDb({ ...database.connection, connections: 2 });
after(async () => {
  await db.close();
  await database[Symbol.asyncDispose]();
});

await db.query(sql`
  insert into audit_entry (at, actor, action, subject)
  select 1700000000, 'one', 'test.run', 'other' from generate_series(1, 120)`);
await db.query(sql`
  insert into audit_entry (at, actor, action, subject)
  select 1700000000, 'system', 'test.run', 'one' from generate_series(1, 120)`);

for (const [name, about, total] of [
  ["the trail", undefined, 240],
  ["an actor's entries and those about it", "one", 240],
  ["entries of an actor", "system", 120],
  ["entries about a subject", "other", 120],
] as const)
  test(`pages of ${name} show each of them once, newest first`, async () => {
    const seen: number[] = [];
    let before: number | undefined;
    do {
      const page = await listEntries(db, { about, before });
      assert.ok(page.items.length <= 100 && page.items.length > 0);
      seen.push(...page.items.map(({ id }) => id));
      before = page.nextCursor;
    } while (before !== undefined && seen.length <= total);
    assert.equal(seen.length, total);
    assert.deepEqual(
      seen,
      [...new Set(seen)].toSorted((a, b) => b - a),
    );
  });
