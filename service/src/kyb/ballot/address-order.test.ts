import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address, Hex } from "@svc/protocol";
import { openDb, sql } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import { listMemberRows } from "../business/business-store.ts";
import { insertVote } from "./ballot-store.ts";

const signature: Hex = `0x${"11".repeat(65)}`;
const business: Address = `0x${"01".repeat(20)}`;
/** Danish sorts "aa" behind "z". */
const members = ["aa", "ab", "fa", "ff"].map((pair): Address => `0x${pair.repeat(20)}`);

test("approvals and members are sorted as the contract requires, even in a Danish database", async () => {
  await using database = await openTestDatabase({
    choices: "locale_provider icu icu_locale 'da-DK'",
  });
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`
      insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt,
        charter, created_at)
      values (${business}, 'live', 'Test Ltd', 'active', ${business}, '1', 0, ${Buffer.alloc(32)}, ${Buffer.alloc(1)}, 0)`);
  await db.query(sql`
      insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
      select gen_random_uuid(), ${business}, member, '', true, false, 0 from unnest(${members}::text[]) as member`);
  await db.query(sql`
      insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
      values ('ballot', 'governance', ${business}, 3, 0, ${members}, 4, 0, 0, 'open', 0)`);
  const vote = { ballotId: "ballot", epoch: 0, kind: "approve", signature, now: 0 } as const;
  for (const member of members.slice(1)) await insertVote(db, { ...vote, member });
  const counted = await insertVote(db, { ...vote, member: members[0] ?? business });
  assert.deepEqual(
    counted?.approvals.map(({ member }) => member),
    members,
  );
  const rows = await listMemberRows(db, [business]);
  assert.deepEqual(
    rows.map(({ member }) => member),
    members,
  );
});
