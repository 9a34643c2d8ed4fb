// What is read to find one row of those added since a purge, while PostgreSQL's statistics say that the table is empty.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listInbox } from "../../service/src/kyb/ballot/ballot-store.ts";
import {
  findCharterChange,
  listProposalsOf,
} from "../../service/src/kyb/business/proposal-store.ts";
import { findRemovalByBallot } from "../../service/src/kyb/business/removal-store.ts";
import { findLink, keepRequestObject } from "../../service/src/kyc/consent-store.ts";
import { steps } from "../../service/src/kyc/order.ts";
import { moveRows } from "../../service/src/kyc/transition-store.ts";
import { revokeOffline } from "../../service/src/login/user-logout-store.ts";
import { type Db, openDb, type Queryable } from "../../service/src/platform/database/db.ts";
import { takeDueHints } from "../../service/src/wallets/push-store.ts";
import { lockDeliveries } from "../../service/src/webhooks/event-store.ts";
import { deleteStreams, emptyExpired } from "../../service/src/webhooks/retention-store.ts";
import {
  listNewestAttempts,
  listNewestEvents,
} from "../../service/src/webhooks/stream-report-store.ts";
import { openWorld, type World } from "../world.ts";

const votesOfOthers = 1500;
const member = `0x${"22".repeat(20)}` as const;
const business = `0x${"11".repeat(20)}` as const;
const page = { hasAgreed: true, after: "", limit: 100, now: 0 };
const looked = { now: 0, businesses: [business] };
let world: World;
/** A single connection: it keeps the plans made while the tables were empty until a table is analyzed. */
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

/** Open votes of many businesses, one of them the member's, made while PostgreSQL's statistics know only ended ones. */
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

/** Has everybody but the member vote and be told. */
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

type Work = (tx: Queryable) => Promise<unknown>;

/** What the work reads of these tables and their indexes. */
async function countReads(tx: Queryable, tables: string, work: Work): Promise<Reads> {
  const earlier = await readsOf(tx, tables);
  await work(tx);
  const { rows, pages } = await readsOf(tx, tables);
  return { rows: rows - earlier.rows, pages: pages - earlier.pages };
}

async function readsOf(tx: Queryable, tables: string): Promise<Reads> {
  const [reads] = await run<Reads>(
    tx,
    `with looked as (select '{${tables}}'::regclass[] as tables)
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

const votes = "ballot,ballot_vote,push_sent";

test("an inbox reads no votes of other businesses", async () => {
  await single.transaction(async (tx) => {
    const reads = await countReads(tx, votes, async () => {
      assert.equal((await listInbox(tx, member, page)).length, 1);
    });
    assertFew(reads);
  });
});

test("hints for a business read no votes and no hints of others", async () => {
  await single.transaction(async (tx) =>
    assertFew(await countReads(tx, votes, async () => takeDueHints(tx, looked))),
  );
});

const id = "01890000-0000-7000-8000-000000000000";
const token = Buffer.alloc(32);
const link = { tokenSha256: token, order: { id }, attempt: 1 } as Parameters<
  typeof keepRequestObject
>[1];
const ballotId = "1".padEnd(36, "-");
const series = "generate_series(1, 8000) as n";
const order = `insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment, user_address,
    required, optional, status, status_at, sequence, callback, expiration, created_at, salt)
  values ('${id}', sha256(''), '${id}', '${id}', '${id}', 'live', '${member}', '{}', '{}', 'INITIATING', 0, 1, '', 0, 0, sha256(''))`;
const proposals = `insert into business_proposal (id, business, operation, arguments, proposer, nonce, status, created_at)
  values ('a', '${business}', 'withdraw', '', '', 0, 'open', 0), ('b', '${business}', 'changeCharter', '\\x00', '', 0, 'open', 0)`;
const family = `insert into token_family (id, client_id, user_address, session_id, scope, audience, created_at, expires_at)
  values ('${id}', 'a', '${member}', '${id}', '', '{}', 0, 1e10)`;
const removal = `insert into business_removal (business, member, ends_at, keep_nonce)
  select address, '${member}', 0, 0 from business limit 100`;
const event = `insert into webhook_event (id, stream_id, sequence, channel, kind, client_domain_id, is_personal, created_at, attempts, body_sealed, purge_at)
  values ('a', 'a', 1, 'kyb', '', '${id}', true, 0, 1, 'x', 0), ('b', 'a', 2, 'kyb', '', '${id}', true, 0, 1, 'x', 0)`;

interface Emptied {
  readonly table: string;
  /** Inserts rows like those that the table had before the purge. */
  readonly fill: string;
  /** Inserts the rows of other tables that the works look for. */
  readonly others: readonly string[];
  /** Each concerns only a row or two of the table. */
  readonly works: Readonly<Record<string, Work>>;
}

const emptied: readonly Emptied[] = [
  {
    table: "kyc_token",
    fill: `insert into kyc_token (token_sha256, order_id, attempt, expiration, callback, requester, offered, created_at)
      select sha256(n::text::bytea), gen_random_uuid(), 1, 1e10, '', '', '{}', 0 from ${series}`,
    others: [order],
    works: {
      "a link is found": async (tx) => findLink(tx, token),
      "a link is opened": async (tx) => keepRequestObject(tx, link, { object: "", now: 0 }),
    },
  },
  {
    table: "kyc_payload",
    fill: `insert into kyc_payload (order_id, sealed, created_at) select gen_random_uuid(), sha256(''), 0 from ${series}`,
    others: [order],
    works: {
      "an order fails": async (tx) =>
        moveRows(tx, { orders: [{ id, attempt: 1 }], step: steps.overdue, at: 0 }),
    },
  },
  // All but one are of one business, so the index by business is lower than that by id, and cheaper to read as a whole.
  {
    table: "ballot",
    fill: `insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
      select rpad(n::text, 36, '-'), 'governance', case n when 1 then '${business}' else '${member}' end, 3, 0, array['${member}'], 1,
        1e10, 1e10, 'open', 0 from generate_series(1, 400) as n`,
    others: [proposals, removal],
    works: {
      "a change of a charter is found": async (tx) =>
        findCharterChange(tx, { business, arguments: "0x00" }),
      "a removal is found": async (tx) => findRemovalByBallot(tx, { ballotId, member }),
      "proposals are listed": async (tx) => listProposalsOf(tx, [business], 10),
    },
  },
  {
    table: "webhook_delivery",
    fill: `insert into webhook_delivery (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
      select n::text, '${id}', '${id}', n::text, 1, false, 1e15 from ${series}`,
    others: [event],
    works: {
      "a stream is locked": async (tx) => lockDeliveries(tx, { streamId: "a", eventId: null }),
      "events are reported": async (tx) => listNewestEvents(tx, "a", 10),
      "an event expires": async (tx) => emptyExpired(tx, { ids: ["a"], now: 1 }),
      "a stream goes": async (tx) => deleteStreams(tx, ["a"]),
    },
  },
  {
    table: "session",
    fill: `insert into session (id, secret_sha256, user_address, authenticated_at, acr, created_at, used_at, approvals)
      select gen_random_uuid(), sha256(n::text::bytea), '', 0, '', 1e10, 1e10, '[]' from ${series}`,
    others: [family],
    works: { "a user's logins end": async (tx) => revokeOffline(tx, member, 0) },
  },
  {
    table: "webhook_attempt",
    fill: `insert into webhook_attempt (id, number, begun_at_ms, duration_ms, outcome) select n || '.1', 1, 1e15, 0, '' from ${series}`,
    others: [event],
    works: { "attempts are reported": async (tx) => listNewestAttempts(tx, "a", 10) },
  },
];

class Undone extends Error {}

for (const { table, fill, others, works } of emptied)
  test(`${Object.keys(works).join(", ")} without a look at all of ${table}, of which there was nothing`, async () => {
    await run(single, "set session_replication_role = replica");
    await run(single, `delete from ${table}`);
    await run(single, fill);
    await run(single, `delete from ${table}`);
    await run(single, `vacuum analyze ${table}`);
    const filled = single.transaction(async (tx) => {
      for (const text of [fill, ...others]) await run(tx, text);
      const long: string[] = [];
      for (const [name, work] of Object.entries(works)) {
        const { rows, pages } = await countReads(tx, table, work);
        if (rows > 4 || pages > 20) long.push(`${name}: ${rows} rows and entries, ${pages} pages`);
      }
      assert.deepEqual(long, []);
      throw new Undone();
    });
    await assert.rejects(filled, Undone);
  });
