// Work on tables that have grown for years, as PostgreSQL plans it where it knows how long they are.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { listBlocks, readSigner } from "../../service/src/chain/embedded-store.ts";
import { putOff, putOffRefused, readNonces } from "../../service/src/chain/transaction-store.ts";
import { lockDistrusted } from "../../service/src/credentials/credential-store.ts";
import { deleteValues } from "../../service/src/credentials/company-store.ts";
import { leaseMessages } from "../../service/src/credentials/email-store.ts";
import { endBallot, lockOpenBallots } from "../../service/src/kyb/ballot/ballot-store.ts";
import { listInvitationsTo } from "../../service/src/kyb/business/founding-store.ts";
import { claimLooks, waitForLook } from "../../service/src/kyb/business/roster-store.ts";
import { noteRefusedProposal } from "../../service/src/kyb/business/proposal-store.ts";
import { insertRelease } from "../../service/src/kyb/release/release-store.ts";
import type { DataRequest } from "../../service/src/kyb/request/data-request.ts";
import { countRequests, findOpen } from "../../service/src/kyb/request/request-limits-store.ts";
import * as dataRequests from "../../service/src/kyb/request/data-request-store.ts";
import * as signatures from "../../service/src/kyb/request/signature-request-store.ts";
import { listAnchoringBatches } from "../../service/src/kyc/anchor-store.ts";
import {
  countMismatch,
  keepRequestObject,
  type OrderLink,
} from "../../service/src/kyc/consent-store.ts";
import { lockExpiredAmong, renewPending } from "../../service/src/kyc/order-store.ts";
import { findOldestWaitingSince } from "../../service/src/kyc/settlement-store.ts";
import { listOpenLogins } from "../../service/src/login/business/business-login-store.ts";
import { purgeAttempts } from "../../service/src/login/retention-store.ts";
import {
  endDelivery,
  leaseDeliveries,
  postponeDelivery,
  purgeDeliveries,
} from "../../service/src/login/session/back-channel-store.ts";
import { deleteLinks, listUnlinked } from "../../service/src/platform/audit/audit-store.ts";
import type { Db, Queryable } from "../../service/src/platform/database/db.ts";
import { claim, hasDue } from "../../service/src/webhooks/delivery-store.ts";
import {
  deleteAttempts,
  deleteForgotten,
  deleteStreams,
  deleteTombstones,
  emptyExpired,
} from "../../service/src/webhooks/retention-store.ts";
import { deleteSentHints } from "../../service/src/wallets/push-store.ts";
import { plansAtLength, type QueryPlan } from "../query-plan.ts";
import { openWorld, type World } from "../world.ts";

const id = "01890000-0000-7000-8000-000000000000";
const address = `0x${"11".repeat(20)}` as const;
let world: World;
before(async () => {
  world = await openWorld();
});
after(async () => world[Symbol.asyncDispose]());

type Ask = (db: Queryable) => Promise<unknown>;

const business = `insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
  values ('${address}', 'live', 'A business', 'active', '${address}', '1', 0, sha256(''), '', 0)`;
const member = `insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
  values ('${id}', '${address}', '${address}', '', true, true, 0)`;
const ballot = `insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at)
  values ('a', 'governance', '${address}', 3, 0, array['${address}'], 1, 0, 0, 'open', 0)`;
const vote = `insert into ballot_vote (ballot_id, epoch, member, approval, created_at)
  values ('a', 0, '${address}', decode(repeat('00', 65), 'hex'), 0)`;
const removal = `insert into business_removal (business, member, ends_at, keep_nonce) values ('${address}', '', 0, 0)`;
const move = `insert into business_move (business, successor, ends_at, keep_nonce, created_at) values ('${address}', '', 0, 0, 0)`;
const sentHint = `insert into push_sent (subject, member, created_at) values ('ballot:a:0', '${address}', 0)`;
const login = `insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at)
  values ('a', 'a', '{}', 'gathering', '', '', 0, 0)`;
const openLogin = `insert into business_login (login_id, member, business, requester, expires_at)
  values ('a', '${address}', '${address}', '', 0)`;
const logout = `insert into logout_delivery (id, client_id, user_address, due_at, created_at)
  values ('${id}', 'a', '${address}', 0, 0)`;
const event = `insert into webhook_event (id, stream_id, sequence, channel, kind, client_domain_id, is_personal, created_at)
  values ('a', 'a', 1, 'kyb', '', '${id}', false, 0)`;
const delivery = `insert into webhook_delivery (event_id, endpoint_id, client_domain_id, stream_id, sequence, is_large, due_at_ms)
  values ('a', '${id}', '${id}', 'a', 1, false, 0)`;
const attempt = `insert into webhook_attempt (id, number, begun_at_ms, duration_ms, outcome) values ('a.1', 1, 0, 0, '')`;
const auditEntry = `insert into audit_entry (at, actor, action, subject) values (0, '', '', '')`;
const auditLink = `insert into audit_link (position, entry_id, hash, seal, sealed_at) values (-1, -1, '', '', 0)`;
const verification = `insert into email_verification (id, user_address, environment, code_mac, created_at, expires_at)
  values ('${id}', '${address}', 'live', sha256(''), 0, 0)`;
const record = `insert into company_record (credential_id, business, as_of, vouches, ended_at, due_at) values ('${id}', '', 0, false, 0, 0)`;
const recordField = `insert into company_field (id, credential_id, name, subject, leaf, value_sealed) values ('${id}', '${id}', '', '', '', '')`;
const issuer = `insert into issuer (id, kind, name, address, environment, created_at) values ('${id}', 'api', 'A', '${address}', 'live', 0)`;
const credential = `insert into credential (id, issuer_id, environment, user_address, document, root, tree, created_at, expires_at)
  values ('${id}', '${id}', 'live', '${address}', '', sha256(''), '', 0, 0)`;
const batch = `insert into kyc_batch (id, phase, root, audit_head, audit_position, created_at, transaction_hash)
  values ('${id}', 'initiate', sha256(''), sha256(''), 1, 0, sha256(''))`;
const transaction = `insert into chain_transaction (kind, subject_id, to_address, data, status, created_at, due_at, finished_at, signer, nonce)
  values ('test', '', '', '', 'succeeded', 0, 0, 0, '', 0)`;
const order = `insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment, user_address,
    required, optional, status, status_at, sequence, callback, expiration, created_at, salt)
  values ('${id}', sha256(''), '${id}', '${id}', '${id}', 'live', '${address}', '{}', '{}', 'CONFIRMED', 0, 1, '', 0, 0, sha256(''))`;
const batchLeaves = `insert into kyc_batch_leaves (batch_id, leaves) values ('${id}', '')`;

/** The plan for a batch that seems large for its table: PostgreSQL does not know a prepared statement's limit. */
const joinsWhole = "set local enable_nestloop = off";

const limit = 2;
const lease = { now: 0, seconds: 1, limit, perClient: 1, underWay: {}, fullOrganizations: [] };
const works: [name: string, rows: string[], ask: Ask][] = [
  ["attempts to log in go", [login, joinsWhole], async (db) => purgeAttempts(db, 1, limit)],
  ["logouts go", [logout, joinsWhole], async (db) => purgeDeliveries(db, 1, limit)],
  ["logouts are delivered", [logout], async (db) => leaseDeliveries(db, lease)],
  ["attempts to deliver go", [attempt, joinsWhole], async (db) => deleteAttempts(db, 1, limit)],
  [
    "tombstones of events go",
    [event, joinsWhole],
    async (db) => deleteTombstones(db, { from: "", before: "b", limit }),
  ],
  [
    "deliveries that are due are looked for",
    [event, delivery, "analyze webhook_delivery"],
    async (db) => hasDue(db, 0),
  ],
  [
    "the audit trail's oldest entries go",
    [auditEntry, auditLink],
    async (db) => deleteLinks(db, 1),
  ],
  [
    "messages with codes go out",
    [verification, joinsWhole],
    async (db) => leaseMessages(db, { now: 0, leasedUntil: 1, limit }),
  ],
  [
    "businesses are looked at on the chain",
    [business, joinsWhole],
    async (db) => claimLooks(db, { now: 0, until: 1, limit }),
  ],
  [
    "businesses that others look at are looked for",
    [business, "analyze business"],
    // Nothing is found, so it does not wait in a transaction.
    async (db) => waitForLook(db as Db, { now: 0, except: [] }),
  ],
  [
    "logins that wait for members are shown",
    [login, openLogin],
    async (db) => listOpenLogins(db, ["a"]),
  ],
  [
    "records of hints go",
    [business, member, ballot, vote, removal, move, sentHint, "analyze business_member"],
    async (db) => deleteSentHints(db, 1, limit),
  ],
  ["the order that has waited longest is found", [order], async (db) => findOldestWaitingSince(db)],
  [
    "batches are compared with the audit trail",
    [batch, batchLeaves, auditLink, joinsWhole],
    async (db) => listAnchoringBatches(db, { after: 0, limit }),
  ],
];

for (const [name, rows, ask] of works)
  test(`${name} without a look at all rows of a long table`, async () => {
    const plans = await plansAtLength(world.ctx.db, rows, ask);
    assert.ok(plans.length > 0);
    for (const plan of plans) assert.deepEqual(plan.scanned, []);
  });

test("deliveries that are due are claimed without a look at all that wait", async () => {
  const given = { nowMs: 0, lease: id, leasedUntilMs: 1, limit, after: id, endpointsMax: 1 };
  const rows = [event, delivery, "analyze webhook_delivery"];
  const none = { slots: 1, slow: [], fullDomains: [], largeMax: 1, fullOfLarge: [] };
  const plans = await plansAtLength(world.ctx.db, rows, async (db) =>
    claim(db, { ...given, ...none }),
  );
  const plan = plans.at(-1);
  assert.equal(plan?.indexes.includes("webhook_delivery_due_at"), true);
  assert.equal(plan?.scanned.includes("webhook_delivery"), false);
});

test("credentials of a distrusted issuer are found without a look at all of the others", async () => {
  const rows = [issuer, credential, "analyze issuer, credential", joinsWhole];
  const [plan] = await plansAtLength(world.ctx.db, rows, async (db) => lockDistrusted(db, limit));
  assert.match(
    plan?.indexed ?? "",
    /issuer_id = issuer\.id\) AND \(attested_at >= issuer\.distrusted_from\)/,
  );
});

test("values of companies go record by record, and entries are linked by the transactions that wrote them", async () => {
  const { db } = world.ctx;
  const [values] = await plansAtLength(db, [record, recordField, joinsWhole], async (tx) =>
    deleteValues(tx, 1, limit),
  );
  assert.deepEqual(values?.indexes, [
    "company_record_over",
    "company_field_credential_id_name_subject_key",
  ]);
  const decided = { from: "1", before: "2", foreignFrom: "2" };
  const [unlinked] = await plansAtLength(db, [auditEntry, auditLink, joinsWhole], async (tx) =>
    listUnlinked(tx, decided, limit),
  );
  assert.deepEqual(unlinked?.indexes, ["audit_entry_tx_idx", "audit_link_entry_id_key"]);
});

test("nonces that no transaction has are found by a look at each, not at all that the signer used", async () => {
  const rows = [transaction, "analyze chain_transaction", joinsWhole];
  const [plan] = await plansAtLength(world.ctx.db, rows, async (db) =>
    readNonces(db, address, { ids: ["1"], chainCount: 0, nextNonce: 1 }),
  );
  assert.deepEqual(plan?.scanned, []);
  assert.match(plan?.indexed ?? "", /signer = \$\d+\) AND \(nonce = n\.n\)/);
});

/** So many that a lookup by id takes more than one page of an index; none of them is open. */
const over = 3000;
const key = "sha256(n::text::bytea)";
const ended: Record<string, string[]> = {
  data_request: [
    `insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, fields, quoted_rappen,
        status, sequence, created_at, expires_at, ended_at)
      select n::text, '${id}', '${id}', 'live', '0x' || n, '', '[]', 1, 'released', 1, 0, 0, 0 from generate_series(1, ${over}) as n`,
  ],
  signature_request: [
    `insert into signature_request (id, client_domain_id, organization_id, environment, business, message_kind, digest,
        purpose, status, sequence, created_at, expires_at, ended_at)
      select n::text, '${id}', '${id}', 'live', '0x' || n, 'TEXT', ${key}, '', 'refused', 1, 0, 0, 0 from generate_series(1, ${over}) as n`,
  ],
  ballot: [
    `insert into ballot (id, kind, business, category, epoch, voters, needed, valid_until, expires_at, status, created_at, ended_at)
      select n::text, 'governance', '0x' || n, 3, 0, array[''], 1, 0, 0, 'expired', 0, 0 from generate_series(1, ${over}) as n`,
  ],
  chain_transaction: [
    `insert into chain_transaction (kind, subject_id, to_address, data, status, created_at, due_at, finished_at, signer, nonce)
      select 'test', n::text, '', '', 'succeeded', 0, 0, 0, '', n from generate_series(1, ${over}) as n`,
  ],
  business_proposal: [
    `insert into business_proposal (id, business, operation, arguments, proposer, nonce, status, created_at, ended_at)
      select n::text, '0x' || n, 'withdraw', '', '', 0, 'executed', 0, 0 from generate_series(1, ${over}) as n`,
  ],
  kyc_order: [
    `insert into kyc_order (id, reference_key, package_id, client_domain_id, organization_id, environment, user_address,
        required, optional, status, status_at, sequence, callback, expiration, created_at, salt)
      select gen_random_uuid(), ${key}, '${id}', '${id}', '${id}', 'live', '0x' || left(encode(${key}, 'hex'), 40), '{}', '{}',
        'CONFIRMED', 0, 1, '', 0, 0, ${key} from generate_series(1, ${over}) as n`,
    `insert into kyc_token (token_sha256, order_id, attempt, expiration, callback, requester, offered, created_at)
      select ${key}, gen_random_uuid(), 1, 0, '', '', '{}', 0 from generate_series(1, ${over}) as n`,
    "analyze kyc_token",
  ],
  logout_delivery: [
    `insert into logout_delivery (id, client_id, user_address, due_at, created_at, ended_at)
      select gen_random_uuid(), 'a', '0x' || n, 0, 0, 0 from generate_series(1, ${over}) as n`,
  ],
  business: [
    `insert into business (address, environment, name, status, creator, invitation_id, invitation_deadline, salt, charter, created_at)
      select '0x' || left(encode(${key}, 'hex'), 40), 'live', 'A business', 'active', '0x' || n, n::text, 0, sha256(''), '', 0
      from generate_series(1, ${over}) as n`,
    `insert into business_member (id, business, member, name_sealed, is_voting, is_creator, joined_at)
      select gen_random_uuid(), address, address, '', true, true, 0 from business`,
    "analyze business_member",
  ],
};
const logoutDelivery = {
  id,
  clientId: "a",
  organizationId: id,
  user: address,
  sessionId: null,
  createdAt: 0,
  attempts: 1,
};
const invitations = { after: "", limit, now: 0 };
const word = `0x${"11".repeat(32)}` as const;
const dataRequest: DataRequest = {
  id: "a",
  clientDomainId: id,
  organizationId: id,
  environment: "live",
  business: address,
  purpose: "",
  reference: null,
  fields: [],
  quotedRappen: 1,
  status: "pending_approval",
  reason: null,
  sequence: 1,
  createdAt: 0,
  expiresAt: 0,
  fixedOptional: null,
  approvedAt: 0,
};
const release = {
  attestationSealed: Buffer.alloc(0),
  leaves: [],
  now: 0,
  expiresAt: 0,
  chargeId: "a",
  amountRappen: 1,
  lines: [],
};
const openedLink = {
  order: { id } as OrderLink["order"],
  attempt: 1,
  tokenSha256: Buffer.alloc(32),
};
const failed = [{ id: "a", block: 1 }];
const put = { id: "1", refusals: 0 };
const steps: [table: string, indexes: string[], asks: Ask[]][] = [
  [
    "data_request",
    ["data_request_pkey"],
    [
      async (db) =>
        dataRequests.endRequest(db, { id: "a", status: "failed", reason: null, now: 0 }),
      async (db) => dataRequests.putOffRefusal(db, "a", 0),
      async (db) => dataRequests.fixOptional(db, "a", null),
      async (db) => dataRequests.markApproved(db, "a", 0),
      async (db) => insertRelease(db, dataRequest, release),
    ],
  ],
  [
    "signature_request",
    ["signature_request_pkey"],
    [
      async (db) => signatures.endRequest(db, { id: "a", status: "failed", reason: null, now: 0 }),
      async (db) => signatures.putOffRefusal(db, "a", 0),
      async (db) => signatures.beginRecording(db, "a", 0),
      async (db) => signatures.markSigned(db, { id: "a", transactionHash: word, at: 0, now: 0 }),
      async (db) => signatures.noteFailedRecordings(db, failed),
    ],
  ],
  [
    "ballot",
    ["ballot_pkey", "ballot_business", "client_domain_pkey"],
    [
      async (db) => endBallot(db, { id: "a", status: "refused", now: 0 }),
      async (db) => lockOpenBallots(db, address),
    ],
  ],
  [
    "chain_transaction",
    ["chain_transaction_pkey"],
    [async (db) => putOff(db, ["1"], 0), async (db) => putOffRefused(db, put, 0)],
  ],
  [
    "business_proposal",
    ["business_proposal_pkey"],
    [async (db) => noteRefusedProposal(db, "a", 1)],
  ],
  [
    "kyc_order",
    ["kyc_order_pkey", "kyc_token_pkey", "kyc_token_order_id_idx"],
    [
      async (db) => countMismatch(db, openedLink),
      async (db) => keepRequestObject(db, openedLink, { object: "", now: 0 }),
      async (db) =>
        renewPending(db, { id, callback: "", expiration: 0 }).catch(() => "there is no such order"),
      async (db) => lockExpiredAmong(db, [id], 0),
    ],
  ],
  [
    "logout_delivery",
    ["logout_delivery_pkey"],
    [
      async (db) => endDelivery(db, logoutDelivery, { outcome: "", now: 0 }),
      async (db) => postponeDelivery(db, logoutDelivery, 0),
    ],
  ],
  [
    "business",
    ["business_pkey", "business_member_member_idx"],
    [async (db) => listInvitationsTo(db, address, invitations)],
  ],
];

for (const [table, indexes, asks] of steps)
  test(`what is open of ${table} is not read to find one, by a plan that was made while nothing was`, async () => {
    const rows = [...(ended[table] ?? []), `analyze ${table}`];
    const plans: QueryPlan[] = [];
    for (const ask of asks) plans.push(...(await plansAtLength(world.ctx.db, rows, ask)));
    assert.equal(plans.length, asks.length);
    for (const plan of plans) {
      assert.deepEqual(plan.scanned, []);
      for (const index of plan.indexes) assert.ok(indexes.includes(index), index);
    }
  });

/** A tenth of all requests is open. */
const openOrEnded =
  "case when n % 10 = 0 then 'pending_approval' else 'refused' end, 1, 0, 0, case when n % 10 > 0 then 0 end";
const asked = [
  `insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
    select gen_random_uuid(), gen_random_uuid(), '', 'live', '', 0 from generate_series(1, ${over})`,
  `insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, fields, quoted_rappen,
      status, sequence, created_at, expires_at, ended_at)
    select n::text, gen_random_uuid(), gen_random_uuid(), 'live', '0x' || n, '', '[]', 1, ${openOrEnded}
    from generate_series(1, ${over}) as n`,
  `insert into signature_request (id, client_domain_id, organization_id, environment, business, message_kind, digest,
      purpose, status, sequence, created_at, expires_at, ended_at)
    select n::text, gen_random_uuid(), gen_random_uuid(), 'live', '0x' || n, 'TEXT', ${key}, '', ${openOrEnded}
    from generate_series(1, ${over}) as n`,
  `insert into business_block (business, organization_id, created_at) values ('${address}', '${id}', 0)`,
  "analyze client_domain, data_request, signature_request",
];

test("the open requests of an organization to a business are counted without a look at those that have ended", async () => {
  const pair = { organizationId: id, business: address };
  const plans = await plansAtLength(world.ctx.db, asked, async (db) => {
    await countRequests(db, pair, { since: 0, count: 20 });
    await findOpen(db, pair);
  });
  assert.equal(plans.length, 3);
  for (const { scanned, filtered } of plans)
    assert.deepEqual([scanned, filtered.includes("status")], [[], false]);
  for (const plan of plans.slice(1))
    assert.match(plan.indexed, /client_domain_id = client_domain\.id\) AND \(business = /);
});

/** Events with one attempt each; few attempts keep the receiver's answer. */
const announced = [
  `insert into webhook_event (id, stream_id, sequence, channel, kind, client_domain_id, is_personal, created_at, attempts)
    select n::text, n::text, 1, 'kyb', '', '${id}', false, 0, 1 from generate_series(1, ${over}) as n`,
  `insert into webhook_attempt (id, number, begun_at_ms, duration_ms, outcome, answer_sealed)
    select n || '.1', 1, 0, 0, '', case when n % 100 = 0 then '\\x00'::bytea end from generate_series(1, ${over}) as n`,
  "analyze webhook_event, webhook_attempt",
];

test("what receivers answered goes with the bodies, and no attempt of another event is looked at", async () => {
  const plans = await plansAtLength(world.ctx.db, announced, async (db) => {
    await emptyExpired(db, { ids: ["1"], now: 0 });
    await deleteForgotten(db, ["1"]);
    await deleteStreams(db, ["1"]);
  });
  const emptied = plans.filter(({ indexes }) => indexes.includes("webhook_attempt_pkey"));
  assert.equal(emptied.length, 3);
  for (const { scanned, indexed } of emptied) {
    assert.deepEqual(scanned, []);
    assert.doesNotMatch(indexed, /id [<>] /);
  }
});

const mined = [
  `insert into embedded_block (number, time, hash) select n, 0, n::text from generate_series(1, ${over}) as n`,
  `insert into embedded_transaction (hash, raw, signer, nonce, cost_wei, block_number, block_index, created_at)
    select n::text, '', '${address}', n, 0, n, 0, 0 from generate_series(1, ${over}) as n`,
  "analyze embedded_block, embedded_transaction",
];

test("the embedded chain admits a transaction, and mines a block again, without a look at all that it mined", async () => {
  const [admitted, again] = await plansAtLength(world.ctx.db, mined, async (db) => {
    await readSigner(db, address, { hash: word, minedCount: 0 });
    await listBlocks(db, { after: 0, limit });
  });
  assert.deepEqual([admitted?.scanned, again?.scanned], [[], []]);
  assert.match(admitted?.indexed ?? "", /nonce >= .+ AND \(nonce <= /);
  assert.match(again?.indexed ?? "", /block_number = embedded_block\.number/);
});
