// What is read of votes to find those of one member or business, where PostgreSQL had found that no vote is open.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listInbox } from "../../service/src/kyb/ballot/ballot-store.ts";
import type { Queryable } from "../../service/src/platform/database/db.ts";
import { takeDueHints } from "../../service/src/wallets/push-store.ts";
import { openWorld, type World } from "../world.ts";

const votesOfOthers = 1500;
const member = `0x${"22".repeat(20)}` as const;
const business = `0x${"11".repeat(20)}` as const;
let world: World;
before(async () => {
  world = await openWorld();
  await addVotes();
});
after(async () => world[Symbol.asyncDispose]());

const run = async <Row extends object>(on: Queryable, text: string): Promise<Row[]> =>
  on.query<Row>({ name: "", text, values: [] });

/** Of many businesses, and of one that is the member's, all made when PostgreSQL knows of ended votes alone. */
async function addVotes(): Promise<void> {
  const { db } = world.ctx;
  const insert = async (status: string, ended: string): Promise<void> => {
    await run(
      db,
      `insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at, ended_at)
      select address || '${status}', 'governance', address, 3, 0, array[member], 1, 1e10, 1e10, '${status}', 0, ${ended}
      from business join business_member on business = address`,
    );
  };
  await run(
    db,
    `insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
    select case n when 0 then '${business}' else '0x' || left(encode(sha256(n::text::bytea), 'hex'), 40) end, 'live', 'A business',
      'active', '${member}', n::text, 0, sha256(''), '', 0
    from generate_series(0, ${votesOfOthers}) as n`,
  );
  await run(
    db,
    `insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at, has_voted)
    select gen_random_uuid(), address, case address when '${business}' then '${member}' else address end, '', true, true, 0, true
    from business`,
  );
  await insert("approved", "0");
  await run(db, "vacuum analyze business, business_member, ballot");
  await insert("open", "null");
}

/** How many rows and entries of indexes of the votes the work reads. */
async function countReads(work: (tx: Queryable) => Promise<unknown>): Promise<number> {
  return world.ctx.db.transaction(async (tx) => {
    const earlier = await readsOf(tx);
    await work(tx);
    return (await readsOf(tx)) - earlier;
  });
}

async function readsOf(tx: Queryable): Promise<number> {
  const [row] = await run<{ reads: number }>(
    tx,
    `select sum(pg_stat_get_xact_tuples_returned(read))::int as reads from (
      select 'ballot'::regclass as read union all select indexrelid from pg_index where indrelid = 'ballot'::regclass) as each`,
  );
  return row?.reads ?? 0;
}

test("an inbox reads no votes of other businesses", async () => {
  const page = { hasAgreed: true, after: "", limit: 100, now: 0 };
  const reads = await countReads(async (tx) => {
    assert.equal((await listInbox(tx, member, page)).length, 1);
  });
  assert.ok(reads <= 4, `${reads} reads`);
});

test("hints for a business read no votes of others", async () => {
  const reads = await countReads(async (tx) =>
    takeDueHints(tx, { now: 0, businesses: [business] }),
  );
  assert.ok(reads <= 4, `${reads} reads`);
});
