// What the tables themselves refuse, whatever statement tries it: the last defence behind the guarded statements of the
// stores.
import assert from "node:assert/strict";
import { randomBytes, randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { Client, DatabaseError, escapeIdentifier } from "pg";
import { openTestDatabase } from "./test-database.ts";

type Row = Readonly<Record<string, unknown>>;

const bytes32 = Buffer.alloc(32, 1);
const bytes65 = Buffer.alloc(65, 1);
const address = `0x${"5a".repeat(20)}`;
const id = randomUUID();
const now = 1_800_000_000;

/** What columns of several tables hold, by name; a row has those of them that its table has. */
const common: Row = {
  client_domain_id: id,
  organization_id: id,
  environment: "live",
  business: address,
  user_address: address,
  purpose: "A purpose",
  requester: "shop.example.com",
  created_at: now,
  expires_at: now,
  root: bytes32,
  salt: bytes32,
  digest: bytes32,
  sequence: 1,
};

/** A row that the table takes, but for its key. */
const rows = {
  ledger_account: { kind: "available" },
  ledger_movement: {
    from_account_id: id,
    to_account_id: randomUUID(),
    amount_rappen: 1,
    kind: "charge",
    subject: "a request",
  },
  ledger_hold: { subject: "a request", account_id: id, amount_rappen: 10 },
  kyc_package: {
    name: "A package",
    source_key: "a source key",
    signing_key_sealed: bytes32,
    transfers_total: 3,
    transfers_held: 1,
    transfers_consumed: 2,
    price_rappen: 0,
  },
  kyc_order: {
    reference_key: bytes32,
    package_id: id,
    required: ["EMAIL"],
    optional: [],
    status: "PENDING",
    status_at: now,
    callback: "https://shop.example.com/",
    expiration: now,
  },
  kyc_batch: {
    phase: "initiate",
    audit_head: bytes32,
    audit_position: 1,
    transaction_hash: bytes32,
  },
  ballot: {
    kind: "data_request",
    category: 2,
    epoch: 1,
    voters: [address],
    needed: 1,
    valid_until: now,
    status: "open",
  },
  ballot_vote: { ballot_id: "a ballot", epoch: 1, member: address, approval: bytes65 },
  data_request: { fields: "[]", quoted_rappen: 1, status: "pending_approval" },
  signature_request: { message_kind: "TEXT", status: "pending_approval" },
  kyb_offer: { kind: "data_request" },
  kyb_endpoint: { url: "https://shop.example.com/", secret_version: 1 },
  kyb_endpoint_secret: { endpoint_id: id, version: 1, secret_sealed: bytes32, expires_at: null },
  webhook_event: {
    stream_id: "a stream",
    channel: "kyb",
    kind: "kyb.endpoint.test",
    body_sealed: bytes32,
    is_personal: true,
    purge_at: now,
  },
  chain_transaction: {
    kind: "settlement",
    subject_id: "a batch",
    to_address: address,
    status: "sent",
    due_at: now,
    signer: address,
    nonce: 7,
  },
  credential: { issuer_id: id, document: "IDCARD", tree: bytes32 },
  credential_leaf: {
    credential_id: id,
    field: "EMAIL",
    leaf: bytes32,
    commitment: bytes32,
    opening: bytes32,
  },
  issuer: { kind: "demo", name: "An issuer", address },
  oauth_client: {
    name: "A client",
    authentication_method: "client_secret_basic",
    redirect_uris: ["https://shop.example.com/callback"],
  },
  signing_key: {
    kid: "a key",
    purpose: "login-rs256",
    public_jwk: "{}",
    private_sealed: bytes32,
    starts_at: now,
  },
  attestation_key: { kid: "a key", public_jwk: "{}", private_sealed: bytes32, starts_at: now },
} satisfies Record<string, Row>;

type Table = keyof typeof rows;

/** Changes that make a row invalid, and the rule of its table that refuses it. */
const refused: readonly [what: string, table: Table, members: Row, rule: string][] = [
  ...["available", "held", "spent"].map((kind): (typeof refused)[number] => [
    `money that is ${kind} and below zero`,
    "ledger_account",
    { kind, balance_rappen: -1 },
    "check",
  ]),
  ["an account of an unknown kind", "ledger_account", { kind: "lent" }, "kind_check"],
  ["a movement of nothing", "ledger_movement", { amount_rappen: 0 }, "amount_rappen_check"],
  ["a movement backwards", "ledger_movement", { amount_rappen: -1 }, "amount_rappen_check"],
  ["a movement to where it is from", "ledger_movement", { to_account_id: id }, "check"],
  ["a hold of nothing", "ledger_hold", { amount_rappen: 0 }, "amount_rappen_check"],
  ["a capture beyond its hold", "ledger_hold", { captured_rappen: 11, ended_at: now }, "check"],
  ["a capture below zero", "ledger_hold", { captured_rappen: -1, ended_at: now }, "check"],
  ["a capture of an open hold", "ledger_hold", { captured_rappen: 1 }, "check1"],
  ["a hold that ended with no word of money", "ledger_hold", { ended_at: now }, "check1"],
  ["more transfers than were bought", "kyc_package", { transfers_held: 2 }, "check"],
  ["transfers held below zero", "kyc_package", { transfers_held: -1 }, "transfers_held_check"],
  [
    "transfers consumed below zero",
    "kyc_package",
    { transfers_consumed: -1 },
    "transfers_consumed_check",
  ],
  [
    "a package of no transfers",
    "kyc_package",
    { transfers_total: 0, transfers_held: 0, transfers_consumed: 0 },
    "transfers_total_check",
  ],
  ["a package below zero", "kyc_package", { price_rappen: -1 }, "price_rappen_check"],
  ["an order that failed for no reason", "kyc_order", { status: "FAILED" }, "check"],
  ["an order with a reason that did not fail", "kyc_order", { failure_reason: "x" }, "check"],
  ["an order in an unknown state", "kyc_order", { status: "DONE" }, "status_check"],
  ["a ballot that nobody has to approve", "ballot", { needed: 0 }, "check"],
  ["a ballot that needs more than all", "ballot", { needed: 2 }, "check"],
  ["an open ballot that has ended", "ballot", { ended_at: now }, "check1"],
  ["a decided ballot without an end", "ballot", { status: "approved" }, "check1"],
  ["a ballot in an unknown state", "ballot", { status: "won", ended_at: now }, "status_check"],
  ["a vote for and against", "ballot_vote", { refusal: bytes65 }, "check"],
  ["a vote neither for nor against", "ballot_vote", { approval: null }, "check"],
  ["an approval of another length", "ballot_vote", { approval: bytes32 }, "approval_check"],
  ["a request for nothing", "data_request", { quoted_rappen: 0 }, "quoted_rappen_check"],
  ["a waiting data request that has ended", "data_request", { ended_at: now }, "check"],
  ["a released data request without an end", "data_request", { status: "released" }, "check"],
  ["a waiting signature request that has ended", "signature_request", { ended_at: now }, "check"],
  [
    "a signature without its time",
    "signature_request",
    { status: "signed", ended_at: now },
    "check1",
  ],
  ["a time of no signature", "signature_request", { signed_at: now }, "check1"],
  ["a claimed offer without its request", "kyb_offer", { claimed_at: now }, "check"],
  ["a request of an offer that waits", "kyb_offer", { request_id: "x" }, "check"],
  [
    "an offer both claimed and cancelled",
    "kyb_offer",
    { claimed_at: now, request_id: "x", cancelled_at: now },
    "check1",
  ],
  ["failures that never began", "kyb_endpoint", { failures: 1 }, "check"],
  ["refusals that never began", "kyb_endpoint", { refusals: 1 }, "check1"],
  ["personal data in the clear", "webhook_event", { body: "{}", body_sealed: null }, "check"],
  ["a body that stays for ever", "webhook_event", { purge_at: null }, "check1"],
  [
    "a KYB event with an address of its own",
    "webhook_event",
    { url: "https://a.example/" },
    "check3",
  ],
  ["a KYB event with a key of its own", "webhook_event", { key_id: "x" }, "check2"],
  ["an event before the first", "webhook_event", { sequence: 0 }, "sequence_check"],
  ["a queued transaction with a nonce", "chain_transaction", { status: "queued" }, "check"],
  ["a sent transaction without a nonce", "chain_transaction", { nonce: null }, "check"],
  ["a final transaction without an end", "chain_transaction", { status: "succeeded" }, "check1"],
  ["a credential that ended for no reason", "credential", { ended_at: now }, "check"],
  [
    "an issuer distrusted from the beginning",
    "issuer",
    { distrusted_from: 0 },
    "distrusted_from_check",
  ],
  [
    "a client that signs and has no keys",
    "oauth_client",
    { authentication_method: "private_key_jwt" },
    "check",
  ],
  ["a client with a secret and keys", "oauth_client", { jwks: "{}" }, "check"],
  [
    "a client with keys in two places",
    "oauth_client",
    { authentication_method: "private_key_jwt", jwks: "{}", jwks_uri: "https://a.example/" },
    "check1",
  ],
];

/** What two rows may not share: the members in which they differ otherwise, and the rule that refuses them. */
const shared: readonly [what: string, table: Table, members: Row, rule: string][] = [
  ["two balances of one kind", "ledger_account", {}, "organization_id_environment_kind_key"],
  ["a second movement for the same", "ledger_movement", {}, "from_account_id_kind_subject_key"],
  ["a second hold for the same", "ledger_hold", {}, "pkey"],
  ["two orders of one reference", "kyc_order", {}, "reference_key_key"],
  ["two batches of one transaction", "kyc_batch", {}, "transaction_hash_idx"],
  ["two votes of one member", "ballot_vote", { approval: null, refusal: bytes65 }, "pkey"],
  ["two newest secrets", "kyb_endpoint_secret", { version: 2 }, "endpoint_id_idx"],
  [
    "two secrets of one version",
    "kyb_endpoint_secret",
    { expires_at: now },
    "endpoint_id_version_key",
  ],
  ["two events at one place of a stream", "webhook_event", {}, "stream_id_sequence_key"],
  ["two transactions for the same", "chain_transaction", { nonce: 8 }, "kind_subject_id_key"],
  ["two transactions of one nonce", "chain_transaction", { subject_id: "another" }, "nonce"],
  ["two credentials of one root", "credential", {}, "root_key"],
  [
    "a second opening of a leaf",
    "credential_leaf",
    { leaf: randomBytes(32), field: "PHONE" },
    "opening_idx",
  ],
  [
    "a leaf of two fields",
    "credential_leaf",
    { opening: randomBytes(32), field: "PHONE" },
    "leaf_key",
  ],
  [
    "two issuers that the service has once",
    "issuer",
    { address: `0x${"5b".repeat(20)}` },
    "kind_environment_idx",
  ],
  ["two issuers of one address", "issuer", { kind: "api" }, "address_key"],
  [
    "two keys that sign from one time on",
    "signing_key",
    { kid: "another" },
    "purpose_starts_at_idx",
  ],
  ["two keys that attest from one time on", "attestation_key", { kid: "another" }, "starts_at_idx"],
];

const database = await openTestDatabase();
const client = new Client(database.connection);
await client.connect();
after(async () => {
  await client.end();
  await database[Symbol.asyncDispose]();
});
// Without the rows that they refer to.
await client.query("set session_replication_role = replica");
const { rows: listed } = await client.query<{ table: string; column: string; type: string }>(
  `select table_name as "table", column_name as "column", udt_name as type
   from information_schema.columns where table_schema = 'public'`,
);

/** A key of its own for each row, where the table has one that is no number. */
function keyOf(table: Table): Row {
  const key = listed.find((each) => each.table === table && each.column === "id");
  return key === undefined || key.type === "int8" ? {} : { id: randomUUID() };
}

async function insert(table: Table, members: Row): Promise<void> {
  const names = new Set(listed.filter((each) => each.table === table).map(({ column }) => column));
  const shares = Object.entries(common).filter(([name]) => names.has(name));
  const row = Object.entries({
    ...Object.fromEntries(shares),
    ...keyOf(table),
    ...rows[table],
    ...members,
  });
  const columns = row.map(([name]) => escapeIdentifier(name)).join(", ");
  const places = row.map((_, at) => `$${at + 1}`).join(", ");
  await client.query(
    `insert into ${escapeIdentifier(table)} (${columns}) values (${places})`,
    row.map(([, value]) => value),
  );
}

/** The rule that refuses the last of these rows; null if all of them are taken. None stays. */
async function ruleAgainst(table: Table, given: readonly Row[]): Promise<string | null> {
  await client.query("begin");
  try {
    for (const members of given.slice(0, -1)) await insert(table, members);
    await insert(table, given.at(-1) ?? {});
    return null;
  } catch (error) {
    assert.ok(error instanceof DatabaseError, String(error));
    return error.constraint ?? error.message;
  } finally {
    await client.query("rollback");
  }
}

for (const table of Object.keys(rows) as Table[])
  test(`a row of ${table} as it should be is taken`, async () => {
    assert.equal(await ruleAgainst(table, [{}]), null);
  });

for (const [what, table, members, rule] of refused)
  test(`no statement can store ${what}`, async () => {
    assert.equal(await ruleAgainst(table, [members]), `${table}_${rule}`);
  });

for (const [what, table, members, rule] of shared)
  test(`no two statements can store ${what}`, async () => {
    assert.equal(await ruleAgainst(table, [{}, members]), `${table}_${rule}`);
  });
