// What is read of votes and hints to find those of one member or business, where PostgreSQL had found that no vote is open
// and that a purge had left no signature and no hint.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listInbox } from "../../service/src/kyb/ballot/ballot-store.ts";
import { type Db, openDb, type Queryable } from "../../service/src/platform/database/db.ts";
import { takeDueHints } from "../../service/src/wallets/push-store.ts";
import { openWorld, type World } from "../world.ts";

const votesOfOthers = 1500;
const member = `0x${"22".repeat(20)}` as const;
const business = `0x${"11".repeat(20)}` as const;
const page = { hasAgreed: true, after: "", limit: 100, now: 0 };
const looked = { now: 0, businesses: [business] };
let world: World;
/** One connection, which plans while there is nothing, for the rest of its life or until a table is analyzed. */
let single: Db;
before(async () => {
  world = await openWorld();
  single = openDb({ ...world.ctx.db.connectionString, connections: 1 });
  await addVotes();
});
after(async () => {
  await single.close();
  await world[Symbol.asyncDispose]();
});

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
    select gen_random_uuid(), address, case address when '${business}' then '${member}' else rpad(left(address, 3), 42, '0') end, '', true, true, 0, true
    from business`,
  );
  await insert("approved", "0");
  await run(db, "vacuum analyze business, business_member, ballot");
  await signAndHint(db);
  await run(db, "delete from ballot_vote");
  await run(db, "delete from push_sent");
  await run(db, "vacuum analyze ballot_vote, push_sent");
  await listInbox(single, member, page);
  await takeDueHints(single, looked);
  await insert("open", "null");
  await signAndHint(db);
}

/** All but the member have voted and were told. */
async function signAndHint(db: Queryable): Promise<void> {
  await run(
    db,
    `insert into ballot_vote (ballot_id, epoch, member, approval, created_at)
      select id, 0, voters[1], decode(repeat('ab', 65), 'hex'), 0 from ballot where voters[1] <> '${member}'`,
  );
  await run(
    db,
    `insert into push_sent (subject, member, created_at)
      select 'ballot:' || id || ':0', voters[1], 0 from ballot where voters[1] <> '${member}'`,
  );
}

interface Reads {
  /** Rows, and entries of indexes. */
  readonly rows: number;
  readonly pages: number;
}

/** What the work reads of votes and hints and their indexes. */
async function countReads(work: (tx: Queryable) => Promise<unknown>): Promise<Reads> {
  return single.transaction(async (tx) => {
    const earlier = await readsOf(tx);
    await work(tx);
    const { rows, pages } = await readsOf(tx);
    return { rows: rows - earlier.rows, pages: pages - earlier.pages };
  });
}

async function readsOf(tx: Queryable): Promise<Reads> {
  const [reads] = await run<Reads>(
    tx,
    `with looked as (select '{ballot,ballot_vote,push_sent}'::regclass[] as tables)
    select sum(pg_stat_get_xact_tuples_returned(read))::int as rows, sum(pg_stat_get_xact_blocks_fetched(read))::int as pages
    from (
      select unnest(tables) as read from looked
      union all select indexrelid from pg_index join looked on indrelid = any(tables)) as each`,
  );
  assert.ok(reads !== undefined);
  return reads;
}

function assertFew({ rows, pages }: Reads): void {
  assert.ok(rows <= 4 && pages <= 20, `${rows} rows and entries, ${pages} pages`);
}

test("an inbox reads no votes of other businesses", async () => {
  const reads = await countReads(async (tx) => {
    assert.equal((await listInbox(tx, member, page)).length, 1);
  });
  assertFew(reads);
});

test("hints for a business read no votes and no hints of others", async () => {
  const reads = await countReads(async (tx) => takeDueHints(tx, looked));
  assertFew(reads);
});
