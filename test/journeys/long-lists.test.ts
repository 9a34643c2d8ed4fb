// Lists and purges of tables that grow for years: what they read, however long the table is.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { readBalance } from "../../service/src/accounts/ledger-store.ts";
import { forgetBytes } from "../../service/src/chain/transaction-store.ts";
import { listRecords, listRecordsDue } from "../../service/src/credentials/company-store.ts";
import {
  deleteIdempotencyKeys,
  listIssued,
} from "../../service/src/credentials/credential-store.ts";
import { deleteVerifications } from "../../service/src/credentials/email-store.ts";
import { deleteLookups } from "../../service/src/credentials/lookup-store.ts";
import { deleteBallots } from "../../service/src/kyb/ballot/ballot-store.ts";
import { lapseFoundings } from "../../service/src/kyb/business/founding-store.ts";
import { deleteProposals } from "../../service/src/kyb/business/proposal-store.ts";
import { deleteKeys } from "../../service/src/kyb/idempotency-store.ts";
import { purgeOffered } from "../../service/src/kyb/offer/offer-store.ts";
import { listCharges } from "../../service/src/kyb/billing/charge-store.ts";
import { listReleasesOf, purgeReleases } from "../../service/src/kyb/release/release-store.ts";
import { listRequests as listDataRequests } from "../../service/src/kyb/request/data-request-store.ts";
import {
  listRequests as listSignatureRequests,
  purgeDocuments,
} from "../../service/src/kyb/request/signature-request-store.ts";
import { deleteTokens, listOrders, listOrdersOf } from "../../service/src/kyc/order-store.ts";
import { purgeDeliveries } from "../../service/src/login/session/back-channel-store.ts";
import { purgeFamilies } from "../../service/src/login/token/family-purge-store.ts";
import { purgePushed } from "../../service/src/login/authorization/pushed-request-store.ts";
import { deleteUser, listLoggedIn, logOutUser } from "../../service/src/login/index.ts";
import { purgeSessions } from "../../service/src/login/retention-store.ts";
import { deleteUsedOnce } from "../../service/src/login/token/used-once-store.ts";
import { listEntriesAbout } from "../../service/src/platform/audit/audit-store.ts";
import { type Queryable, sql, type Statement } from "../../service/src/platform/database/db.ts";
import { firstUuid } from "../../service/src/platform/ids.ts";
import { deleteBuckets } from "../../service/src/platform/rate-limit-store.ts";
import { purgeWalletSessions } from "../../service/src/wallets/wallet-sessions.ts";
import { deleteBoxes } from "../../service/src/wallets/mailbox-store.ts";
import {
  deleteWalletSessions,
  listSessionUsers,
} from "../../service/src/wallets/wallet-session-store.ts";
import { listKybEvents } from "../../service/src/webhooks/event-store.ts";
import { moveEvents } from "../../service/src/webhooks/index.ts";
import { purgePaces } from "../../service/src/webhooks/retention-store.ts";
import { markExamined, takeDueHints } from "../../service/src/wallets/push-store.ts";
import { plansOf } from "../query-plan.ts";
import { openWorld, type World } from "../world.ts";

const id = "01890000-0000-7000-8000-000000000000";
const address = `0x${"11".repeat(20)}` as const;
let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

const run = async (text: string): Promise<unknown> =>
  world.ctx.db.query({ name: "", text, values: [] });

const orders = { clientDomainId: id, status: null, user: null };
const page = { before: null, limit: 21 };
const lists: [name: string, column: string, ask: (db: Queryable) => Promise<unknown>][] = [
  ["orders of a client domain", "client_domain_id", async (db) => listOrders(db, orders, page)],
  [
    "orders in a status",
    "status",
    async (db) => listOrders(db, { ...orders, status: "PENDING" }, page),
  ],
  [
    "orders to a person",
    "user_address",
    async (db) => listOrders(db, { ...orders, user: address }, page),
  ],
  ["a person's own orders", "user_address", async (db) => listOrdersOf(db, address, page)],
  [
    "charges of an organization",
    "organization_id",
    async (db) => listCharges(db, { organizationId: id, environment: "live" }, page),
  ],
  ...["actor", "subject"].map((column): (typeof lists)[number] => [
    `entries of the audit trail by ${column}`,
    column,
    async (db) => listEntriesAbout(db, address, { before: 1, limit: 21 }),
  ]),
  ["releases of a business", "business", async (db) => listReleasesOf(db, address, page)],
  [
    "credentials of an issuer",
    "issuer_id",
    async (db) => listIssued(db, id, { ...page, user: null }),
  ],
  [
    "credentials of an issuer to a person",
    "user_address",
    async (db) => listIssued(db, id, { ...page, user: address }),
  ],
  [
    "records of an issuer",
    "issuer_id",
    async (db) => listRecords(db, id, { ...page, business: null }),
  ],
  [
    "records of an issuer on a business",
    "business",
    async (db) => listRecords(db, id, { ...page, business: address }),
  ],
  [
    "events of a client domain",
    "client_domain_id",
    async (db) =>
      listKybEvents(
        db,
        { clientDomainId: id, kinds: ["kyb.endpoint.test"], isDelivered: null },
        { before: null, limit: 21, bytesMax: 1 },
      ),
  ],
  ...[listDataRequests, listSignatureRequests].flatMap((list, at): typeof lists => [
    [`requests ${at}`, "client_domain_id", async (db) => list(db, id, { ...page, status: null })],
    [
      `requests ${at} in a status`,
      "status",
      async (db) => list(db, id, { ...page, status: "refused" }),
    ],
  ]),
];

/** One issuer and many people, so that PostgreSQL's statistics say which index leads to few rows. */
async function addCredentials(): Promise<void> {
  await run(`insert into issuer (id, kind, name, address, environment, created_at)
    values ('${id}', 'api', 'An issuer', '${address}', 'live', 0)`);
  await run(`insert into credential (id, issuer_id, environment, user_address, document, root, tree, created_at, expires_at)
    select gen_random_uuid(), '${id}', 'live', '0x' || left(encode(sha256(n::text::bytea), 'hex'), 40), 'CONTACT',
      sha256(n::text::bytea), '', 0, 1
    from generate_series(1, 2000) as n`);
  await run("analyze credential");
}

test("a list reads only what it is filtered by, from the place where its page begins", async () => {
  await addCredentials();
  for (const [name, column, ask] of lists) {
    const [plan] = await plansOf(world.ctx.db, ask);
    assert.match(plan?.indexed ?? "", new RegExp(`\\b${column} = \\$`), name);
    if (column !== "user_address")
      assert.match(plan?.indexed ?? "", /id < \$/, `${name}: where its page begins`);
  }
});

test("an issuer's credentials of persons and its records of companies are listed without a look at the other", async () => {
  const plans = await plansOf(world.ctx.db, async (db) => {
    await listIssued(db, id, { ...page, user: null });
    await listRecords(db, id, { ...page, business: null });
  });
  for (const [at, index] of ["credential_of_person", "credential_of_company"].entries()) {
    assert.ok(plans[at]?.indexes.includes(index), index);
    assert.doesNotMatch(plans[at]?.filtered ?? "", /document/);
  }
});

test("what waits of an order is found among all that waits, and what it announced before is not looked at", async () => {
  const url = "https://shop.example/hook";
  const [plan] = await plansOf(world.ctx.db, async (tx) =>
    moveEvents(world.ctx, tx, { streamId: id, clientDomainId: id, url }),
  );
  const columns = plan?.indexed.match(/\((\w+) = /g);
  assert.deepEqual([plan?.scanned, columns], [[], ["(stream_id = ", "(id = ", "(id = "]]);
});

test("what went for packages is summed over movements for packages, not over every one of the account", async () => {
  const purse = { organizationId: id, environment: "live" } as const;
  const [plan] = await plansOf(world.ctx.db, async (db) => readBalance(db, purse));
  assert.match(plan?.indexed ?? "", /from_account_id = [^)]+\) AND \(kind = 'package'/);
  assert.deepEqual(plan?.scanned, []);
});

test("records of businesses are looked at only when they are due", async () => {
  const [plan] = await plansOf(world.ctx.db, async (db) =>
    listRecordsDue(db, { now: 0, limit: 200 }),
  );
  assert.match(plan?.indexed ?? "", /due_at <= \$/);
  assert.deepEqual([plan?.scanned, plan?.filtered.trim()], [[], ""]);
});

/** Businesses with a vote that is open, and half of them with an invitation. */
async function addVotes(): Promise<void> {
  await run(`insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
    select '0x' || left(encode(sha256(n::text::bytea), 'hex'), 40), 'live', 'A business',
      case when n % 2 = 0 then 'active' else 'inviting' end, '${address}', n::text, 1e10 + n, sha256(''), '', 0
    from generate_series(1, 2000) as n`);
  await run(`insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
    select gen_random_uuid(), address, '${address}', '', true, true, 0 from business`);
  await run(`insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
    select address, 'governance', address, 3, 0, array['${address}'], 1, invitation_deadline, invitation_deadline, 'open', 0
    from business`);
  await run("analyze business, business_member, ballot");
}

test("hints look at the votes, invitations and devices that nobody has looked at, and at no other", async () => {
  await addVotes();
  const [marked, taken] = await plansOf(world.ctx.db, async (db) => {
    await markExamined(db, 20);
    await takeDueHints(db, { now: 0, businesses: [address] });
  });
  for (const index of ["ballot_unhinted", "business_unhinted", "push_subscription_new"])
    assert.ok(marked?.indexes.includes(index), index);
  assert.deepEqual(marked?.scanned, []);
  assert.deepEqual(taken?.scanned, []);
  assert.match(taken?.indexed ?? "", /\bbusiness = looked\.address/);
  assert.doesNotMatch(taken?.indexed ?? "", /expires_at|invitation_deadline|ends_at/);
});

test("logouts that are over are removed in batches, and none that is kept is looked at", async () => {
  const { db } = world.ctx;
  const [plan] = await plansOf(db, async (asked) => purgeDeliveries(asked, 0, 2));
  assert.deepEqual([plan?.scanned, plan?.filtered.trim()], [[], ""]);
  await run(`insert into logout_delivery (id, client_id, user_address, due_at, created_at, ended_at, is_user_deleted)
    select gen_random_uuid(), '${world.client.id}', '${address}', 1e11, 0, ended_at, ended_at is not distinct from 1000
    from unnest(array[1, 2, 3, 1000, 1001, null]) as ended_at`);
  const removed: number[] = [];
  do removed.push(await purgeDeliveries(db, 1000, 2));
  while (removed.at(-1) !== 0);
  assert.deepEqual(removed, [3, 1, 0]);
  const left = await db.query(sql`select ended_at from logout_delivery order by ended_at`);
  assert.deepEqual(left, [{ ended_at: 1001 }, { ended_at: null }]);
});

const expiring: [
  table: string,
  purge: (db: Queryable, limit: number) => Promise<number>,
  insert: string,
  /** The column that the purge empties; if absent, it deletes the row. */
  emptied?: string,
][] = [
  [
    "used_once",
    async (db, limit) => deleteUsedOnce(db, 10, limit),
    "(kind, value_sha256, expires_at) select 'dpop', key, at",
  ],
  [
    "wallet_session",
    async (db, limit) => deleteWalletSessions(db, 10, limit),
    `(token_sha256, user_address, challenge_sha256, created_at, expires_at) select key, '${address}', key, 0, at`,
  ],
  [
    "mailbox",
    async (db, limit) => deleteBoxes(db, 10, limit),
    `(id_sha256, user_address, box, expires_at) select key, '${address}', 'box', at`,
  ],
  [
    "kyc_token",
    async (db, limit) => deleteTokens(db, 10, limit),
    `(token_sha256, order_id, attempt, expiration, callback, requester, offered, created_at)
      select key, id, 1, at, '', '', '{}', 0`,
  ],
  [
    "lookup",
    async (db, limit) => deleteLookups(db, 10, limit),
    "(key_id, user_address, at) select key, '', at",
  ],
  [
    "pushed_request",
    async (db, limit) => purgePushed(db, 10, limit),
    "(id, client_id, parameters, expires_at) select key, '', '{}', at",
  ],
  [
    "rate_bucket",
    async (db, limit) => deleteBuckets(db, 10, limit),
    "(name, tokens, refilled_at, epoch, outstanding, leased) select key, 1, at, 0, 0, 0",
  ],
  [
    "issuer_idempotency",
    async (db, limit) => deleteIdempotencyKeys(db, 10, limit),
    "(issuer_id, key, body_mac, credential_id, created_at) select id, key, key, id, at",
  ],
  [
    "email_verification",
    async (db, limit) => deleteVerifications(db, 10, limit),
    `(id, user_address, environment, code_mac, created_at, expires_at)
      select gen_random_uuid(), '${address}', 'live', key, 0, at`,
  ],
  [
    "kyb_idempotency",
    async (db, limit) => deleteKeys(db, 10, limit),
    `(id, client_domain_id, key, request_mac, created_at) select gen_random_uuid(), id, key, key, at`,
  ],
  [
    "ballot",
    async (db, limit) => deleteBallots(db, 10, limit),
    `(id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at, ended_at)
      select key, 'governance', '', 3, 0, array[''], 1, 0, 0, 'expired', 0, at`,
  ],
  [
    "business_proposal",
    async (db, limit) => deleteProposals(db, 10, limit),
    `(id, business, operation, arguments, proposer, nonce, status, created_at, ended_at)
      select key, '', 'withdraw', '', '', 0, 'expired', 0, at`,
  ],
  [
    "data_release",
    async (db, limit) => purgeReleases(db, 10, limit),
    "(request_id, attestation_sealed, leaves, released_at, expires_at) select key, '', '[]', 0, at",
    "attestation_sealed",
  ],
  [
    "signature_request",
    async (db, limit) => purgeDocuments(db, 10, limit),
    `(id, client_domain_id, organization_id, environment, business, message_kind, document_sealed, digest, purpose, status,
        sequence, created_at, expires_at, ended_at)
      select key, id, id, 'live', '', 'TEXT', '', key, '', 'expired', 1, 0, 0, at`,
    "document_sealed",
  ],
  [
    "kyb_offer",
    async (db, limit) => purgeOffered(db, 10, limit),
    `(id, client_domain_id, organization_id, environment, kind, request_sealed, requester, created_at, expires_at)
      select key, id, id, 'live', 'data_request', '', '', 0, at`,
    "request_sealed",
  ],
  [
    "chain_transaction",
    async (db, limit) => forgetBytes(db, 10, limit),
    `(kind, subject_id, to_address, data, status, created_at, due_at, nonce, finished_at)
      select 'test', at::text, '', key, 'succeeded', 0, 0, at, at`,
    "data",
  ],
];
const keysAt = (times: string): string => `from (
    select sha256(n::text::bytea) as key, at, '${id}'::uuid as id from ${times} with ordinality as given (at, n)) as made`;

for (const [table, purge, insert, emptied] of expiring)
  test(`what is over of ${table} is removed in batches, and none that is kept is looked at`, async () => {
    const { db } = world.ctx;
    const [plan] = await plansOf(db, async (asked) => purge(asked, 2));
    const filtered = plan?.filtered.replace(`(${emptied ?? ""} IS NOT NULL)`, "").trim();
    assert.deepEqual([plan?.scanned, filtered], [[], ""]);
    const removed = await db.transaction(async (tx) => {
      const ask = async (text: string): Promise<object[]> =>
        tx.query({ name: "", text, values: [] });
      // Turns foreign keys off, because the rows that these refer to do not exist.
      await ask("set local session_replication_role = replica");
      await ask(`delete from ${table}`);
      await ask(`insert into ${table} ${insert} ${keysAt("unnest(array[1, 2, 3, 4, 5, 1000])")}`);
      const counts: number[] = [];
      for (let round = 0; round < 4; round += 1) counts.push(await purge(tx, 2));
      const held = emptied === undefined ? "true" : `${emptied} is not null`;
      const left = await ask(`select from ${table} where ${held}`);
      await ask(`delete from ${table}`);
      return [...counts, left.length];
    });
    assert.deepEqual(removed, [2, 2, 1, 0, 1]);
  });

const lapsing = `insert into business
    (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
  select '0x' || left(encode(sha256(('lapsing ' || at)::bytea), 'hex'), 40), 'live', 'A business', 'inviting', '${address}',
    'lapsing ' || at, at, sha256(''), '', 0
  from unnest(array[1, 2, 3, 4, 5, 10]) as at`;

test("foundings that were not signed in time lapse in batches, and no other is looked at", async () => {
  const { db } = world.ctx;
  const [plan] = await plansOf(db, async (asked) => lapseFoundings(asked, 10, 2));
  assert.deepEqual(plan?.scanned, []);
  assert.match(plan?.indexed ?? "", /invitation_deadline < \$/);
  // In one transaction: the world's own job looks for foundings that are over too.
  const lapsed = await db.transaction(async (tx) => {
    await tx.query({ name: "", text: lapsing, values: [] });
    const counts: number[] = [];
    do counts.push(await lapseFoundings(tx, 10, 2));
    while (counts.at(-1) === 2);
    return counts;
  });
  assert.deepEqual(lapsed, [2, 2, 1]);
});

test("a purge takes all that is over, however many batches that is", async () => {
  const { ctx } = world;
  const [, , insert] = expiring.find(([table]) => table === "wallet_session") ?? [];
  assert.ok(insert !== undefined);
  await run(`insert into wallet_session ${insert} ${keysAt("generate_series(1, 10001)")}`);
  const callsBefore = ctx.db.callsTotal;
  await purgeWalletSessions(ctx);
  const rows = await ctx.db.query(sql`select from wallet_session`);
  assert.equal(rows.length, 0);
  // At least, because other jobs run beside it.
  assert.ok(ctx.db.callsTotal - callsBefore >= 4);
});

const end = { now: 31 * 86_400, withdraw: async () => undefined };

test("a logout of a user, or of all, reads no long table from end to end", async () => {
  const users = { after: "", limit: 2, now: end.now };
  const plans = await plansOf(world.ctx.db, async (db) => {
    await logOutUser(db, address, end);
    await listLoggedIn(db, users);
    await listSessionUsers(db, users);
  });
  assert.ok(plans.length > 5);
  assert.deepEqual(
    plans.flatMap(({ scanned }) => scanned),
    [],
  );
});

test("the deletion of a user reads no long table from end to end, and logins day by day", async () => {
  const plans = await plansOf(world.ctx.db, async (db) => deleteUser(db, address, end));
  assert.deepEqual(
    plans.flatMap(({ scanned }) => scanned),
    [],
  );
  const days = plans.filter(({ filtered }) => /hintedUser/.test(filtered));
  assert.equal(days.length, 32);
  for (const { indexed } of days)
    assert.match(indexed, /created_at >= \$\d+\) AND \(created_at < \$/);
});

/** Numbered from 1, so that their order is known. */
const uuidOf = (number: number): string =>
  `00000000-0000-7000-8000-${String(number).padStart(12, "0")}`;

/** Purges a table page by page. @returns how much each page left */
async function purgeByPages(
  purge: (db: Queryable, behind: string) => Promise<string | null>,
  left: Statement,
): Promise<number[]> {
  const { db } = world.ctx;
  const [plan] = await plansOf(db, async (asked) => purge(asked, firstUuid));
  assert.deepEqual(plan?.scanned, []);
  assert.match(plan?.indexed ?? "", /id > \$/);
  const counts: number[] = [];
  for (let last: string | null = firstUuid; last !== null; last = await purge(db, last))
    counts.push((await db.query(left)).length);
  return counts;
}

test("old sessions are removed page by page, each page alone, but for those with live tokens", async () => {
  await run(`insert into session (id, secret_sha256, user_address, authenticated_at, acr, created_at, used_at, ended_at, approvals)
    select id, sha256(id::text::bytea), '${address}', 0, '', 0, used_at, ended_at, '[]'
    from (values ('${uuidOf(1)}'::uuid, 5, null), ('${uuidOf(2)}', 20, null), ('${uuidOf(3)}', 20, 5),
      ('${uuidOf(4)}', 5, null), ('${uuidOf(5)}', 5, 5)) as made (id, used_at, ended_at)`);
  await run(`insert into token_family (id, client_id, session_id, scope, audience, created_at, expires_at, revoked_at)
    values ('${uuidOf(1)}', 'a', '${uuidOf(4)}', '', '{}', 0, 200, null),
      ('${uuidOf(2)}', 'a', '${uuidOf(5)}', '', '{}', 0, 200, 90)`);
  const purge = { now: 100, before: 10, limit: 2 };
  const left = sql`select id from session order by id`;
  const counts = await purgeByPages(
    async (db, behind) => purgeSessions(db, { ...purge, after: behind }),
    left,
  );
  assert.deepEqual(counts, [5, 4, 3, 2]);
  assert.deepEqual(await world.ctx.db.query(left), [{ id: uuidOf(2) }, { id: uuidOf(4) }]);
});

test("families without a good token are removed page by page, each page alone", async () => {
  await run(`delete from token_family`);
  await run(`insert into token_family (id, client_id, scope, audience, created_at, expires_at, revoked_at, refresh_expires_at)
    select id, 'a', '', '{}', 0, expires_at, revoked_at, refresh_expires_at
    from (values ('${uuidOf(1)}'::uuid, 100, null, null), ('${uuidOf(2)}', 200, null, 90), ('${uuidOf(3)}', 200, 49, null),
      ('${uuidOf(4)}', 200, 50, null), ('${uuidOf(5)}', 200, null, 59)) as made (id, expires_at, revoked_at, refresh_expires_at)`);
  const purge = { now: 100, revokedBefore: 50, idleBefore: 60, limit: 2 };
  const left = sql`select id from token_family order by id`;
  const counts = await purgeByPages(
    async (db, behind) => purgeFamilies(db, { ...purge, after: behind }),
    left,
  );
  assert.deepEqual(counts, [5, 4, 3, 2]);
  assert.deepEqual(await world.ctx.db.query(left), [{ id: uuidOf(2) }, { id: uuidOf(4) }]);
});

test("paces of endpoints are removed page by page, each page alone", async () => {
  await run(`delete from webhook_endpoint`);
  await run(`insert into webhook_endpoint (id, next_at_ms)
    values ('${uuidOf(1)}', 9), ('${uuidOf(2)}', 10), ('${uuidOf(3)}', 5), ('${uuidOf(4)}', 20), ('${uuidOf(5)}', 5)`);
  const left = sql`select id from webhook_endpoint order by id`;
  const counts = await purgeByPages(
    async (db, behind) => purgePaces(db, { beforeMs: 10, after: behind, limit: 2 }),
    left,
  );
  assert.deepEqual(counts, [5, 4, 3, 2]);
  assert.deepEqual(await world.ctx.db.query(left), [{ id: uuidOf(2) }, { id: uuidOf(4) }]);
});
