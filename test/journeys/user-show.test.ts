// `svc user show`: what an operator answers to a user who asks what is stored about them.
import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { after, before, test } from "node:test";
import { listApiKeys } from "../../service/src/accounts/index.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { approve, type KycWorld, openKycWorld, personalValues } from "../kyc-world.ts";
import { logIn } from "../login-flow.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { deleteUser, showUser } from "../operator-verbs.ts";

let world: KycWorld;
before(async () => {
  world = await openKycWorld();
});
after(async () => world[Symbol.asyncDispose]());

type Report = Record<string, unknown> & Record<string, readonly Record<string, unknown>[]>;

async function show(address: string): Promise<Report> {
  const [status, said] = await showUser(world, address);
  assert.equal(status, 0, said);
  return JSON.parse(said) as Report;
}

test("the operator sees logins, wallets, credentials, orders and ties of a user, and no value of a field", async () => {
  const { person, client, baseUrl } = world;
  await logIn(baseUrl, client, person);
  const session = await openWalletSession(baseUrl, person);
  const box = { box: "AAAA", expiresAt: world.ctx.clock.now() + 600 };
  assert.equal((await post(`${baseUrl}/w/mailbox`, box, session)).status, 201);
  const asked = (await world.ask()).body.data;
  assert.equal((await approve(person, asked?.["link"])).status, 200);
  const [status, said] = await showUser(world, person.address.toUpperCase().replace("0X", "0x"));
  assert.equal(status, 0, said);
  for (const value of Object.values(personalValues)) assert.ok(!said.includes(value), value);
  const report = JSON.parse(said) as Report;
  assert.equal(report["identity"], person.address);
  assert.ok(Number(report["firstLoginAt"]) > 0);
  const counts = Object.entries(report).map(([name, list]) => [name, list?.length]);
  const {
    sessions,
    tokens,
    logins,
    walletSessions,
    mailboxes,
    knownTo,
    orders,
    credentials,
    lookups,
  } = report;
  const keys = await listApiKeys(world.ctx, String(knownTo?.[0]?.["organizationId"]));
  assert.deepEqual(
    lookups?.map(({ keyId }) => keyId),
    keys.map(({ id }) => id),
  );
  assert.deepEqual(sessions?.[0]?.["clients"], [client.id]);
  assert.deepEqual([tokens?.[0]?.["clientId"], tokens?.[0]?.["revokedAt"]], [client.id, null]);
  assert.deepEqual([logins?.[0]?.["clientId"], logins?.[0]?.["status"]], [client.id, "finished"]);
  assert.ok(walletSessions !== undefined && walletSessions.length > 0, JSON.stringify(counts));
  assert.equal(mailboxes?.length, 1);
  assert.equal(knownTo?.length, 1);
  assert.equal(orders?.[0]?.["referenceKey"], asked?.["referenceKey"]);
  const fields = credentials?.flatMap((credential) => credential["fields"]);
  assert.ok(fields?.includes("EMAIL"), JSON.stringify(fields));
});

test("a login that only hints at somebody is shown, and not as their own, whoever answered it", async () => {
  const { ctx, client } = world;
  const [person, other] = [newIdentity(), newIdentity()];
  const at = ctx.clock.now() - 86_400 * 29;
  const insert = async (id: string, request: object, claimedBy: string | null) =>
    ctx.db.query(sql`
      insert into login (id, client_id, request, status, browser_sha256, browser_network, created_at, expires_at, claimed_by)
      values (${id}, ${client.id}, ${JSON.stringify(request)}::jsonb, 'waiting', 'x', 'x', ${at}, 0, ${claimedBy})`);
  await insert("1-open", { hintedUser: person.address }, null);
  await insert("2-answered", { hintedUser: person.address }, other.address);
  await insert("3-expected", { expectedUser: person.address }, null);
  await insert("4-claimed", {}, person.address);
  const report = await show(person.address);
  assert.equal(report["firstLoginAt"], null);
  assert.deepEqual(
    report["logins"]?.map(({ id, isOwn }) => [id, isOwn]),
    [
      ["4-claimed", true],
      ["3-expected", true],
      ["2-answered", false],
      ["1-open", false],
    ],
  );
});

test("roles, devices and proofs of an e-mail address are shown of the user alone", async () => {
  const { ctx } = world;
  const [person, other] = [newIdentity().address, newIdentity().address];
  const both = [person, other];
  const organizationId = randomUUID();
  await ctx.db.query(sql`insert into organization values (${organizationId}, 'Example AG', 0)`);
  await ctx.db.query(sql`
    insert into organization_member select ${organizationId}, address, 'viewer', 7 from unnest(${both}::text[]) address`);
  await ctx.db.query(sql`
    insert into push_subscription select gen_random_uuid(), address, sha256('x'), 'x', 7 from unnest(${both}::text[]) address`);
  await ctx.db.query(sql`
    insert into email_verification (id, user_address, environment, code_mac, created_at, expires_at)
    select gen_random_uuid(), address, 'live', sha256('x'), 7, 8 from unnest(${both}::text[]) address`);
  const { roles, devices, emailVerifications } = await show(person);
  assert.deepEqual(roles, [{ organizationId, role: "viewer", createdAt: 7 }]);
  assert.deepEqual(devices, [{ createdAt: 7 }]);
  const [{ id, ...verification } = {}, ...others] = emailVerifications ?? [];
  assert.ok(id !== undefined);
  assert.deepEqual(
    [verification, others],
    [{ environment: "live", createdAt: 7, expiresAt: 8 }, []],
  );
});

test("logouts of which clients were told, and hints that were sent, are shown of the user alone", async () => {
  const { ctx, client } = world;
  const [person, other] = [newIdentity().address, newIdentity().address];
  const both = [person, other];
  await ctx.db.query(sql`
    insert into logout_delivery (id, client_id, user_address, due_at, created_at, ended_at, outcome)
    select gen_random_uuid(), ${client.id}, address, 7, 7, 8, 'delivered' from unnest(${both}::text[]) address`);
  await ctx.db.query(sql`
    insert into push_sent (subject, member, created_at) select 'ballot:B:1', address, 7 from unnest(${both}::text[]) address`);
  const { logouts, hints } = await show(person);
  assert.deepEqual(logouts, [
    { clientId: client.id, createdAt: 7, endedAt: 8, outcome: "delivered" },
  ]);
  assert.deepEqual(hints, [{ subject: "ballot:B:1", createdAt: 7 }]);
});

test("a list of more than a thousand is cut off, and named", async () => {
  const { ctx } = world;
  const person = newIdentity();
  await ctx.db.query(sql`
    insert into wallet_session (token_sha256, user_address, challenge_sha256, created_at, expires_at)
    select sha256(n::text::bytea), ${person.address}, sha256(n::text::bytea), n, n from generate_series(1, 1001) n`);
  const report = await show(person.address);
  assert.deepEqual(
    [
      report["walletSessions"]?.length,
      report["walletSessions"]?.[0]?.["createdAt"],
      report["cutOff"],
    ],
    [1000, 1001, ["walletSessions"]],
  );
});

test("whoever is not a user, or is none any more, is not shown", async () => {
  const person = await world.verify();
  await logIn(world.baseUrl, world.client, person);
  await show(person.address);
  assert.equal((await deleteUser(world, person.address))[0], 0);
  for (const address of [person.address, newIdentity().address]) {
    const [status, said] = await showUser(world, address);
    assert.equal(status, 1, said);
    assert.match(said, /no such user/);
  }
});

/** Tables of users that the verb leaves out, and why that is right. */
const leftOut = {
  synthetic_identity: "nobody: the service made it up for a sandbox",
};

test("every table that names users is shown, or left out on purpose", async () => {
  const rows = await world.ctx.db.query<{ table: string }>(sql`
    select table_name as "table" from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema = 'public' and column_name = 'user_address' and table_type = 'BASE TABLE' order by 1`);
  assert.deepEqual(
    rows.map(({ table }) => table).filter((table) => !Object.hasOwn(leftOut, table)),
    [
      "credential",
      "email_verification",
      "kyc_order",
      "logout_delivery",
      "lookup",
      "mailbox",
      "organization_member",
      "organization_user",
      "push_subscription",
      "session",
      "token_family",
      "wallet_session",
    ],
  );
});
