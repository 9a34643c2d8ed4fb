// What an operator answers to a user who asks what is stored about them, by `svc user show`; and what a deleted user leaves
// behind at the merchants' side (decisions section 8, Retention): nothing of its orders, and word for whoever holds its
// fields that they no longer count.
import assert from "node:assert/strict";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, test } from "node:test";
import type { Address } from "@svc/protocol";
import {
  addMember,
  createOrganization,
  listApiKeys,
  listMembers,
} from "../../service/src/accounts/index.ts";
import { forgetUser } from "../../service/src/credentials/index.ts";
import { forgetOrders } from "../../service/src/kyc/index.ts";
import { insertIdentity } from "../../service/src/kyc/synthetic-identity-store.ts";
import { deleteUser as deleteLogins } from "../../service/src/login/index.ts";
import { type Queryable, sql } from "../../service/src/platform/database/db.ts";
import { approve, type KycWorld, openKycWorld, personalValues } from "../kyc-world.ts";
import { untilBlocked } from "../lock-waits.ts";
import { logIn } from "../login-flow.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { deleteUser, showUser } from "../operator-verbs.ts";
import { tablesWith } from "../tables-with.ts";
import { randomUUID } from "node:crypto";

let world: KycWorld;
before(async () => {
  world = await openKycWorld({
    DATA_DIR: await mkdtemp(join(tmpdir(), "svc-deleted-")),
    // Nobody listens at this port.
    SMTP_URL: "smtp://127.0.0.1:9",
    MAIL_FROM: "svc@example.com",
  });
});
after(async () => {
  await world[Symbol.asyncDispose]();
  await rm(world.ctx.config.dataDirectory, { recursive: true, force: true });
});

async function rowsOf<Row extends object>(text: string, values: unknown[]): Promise<Row[]> {
  return world.ctx.db.query<Row>({ name: "", text, values });
}

const eventsOf = async (streams: readonly string[]) =>
  rowsOf<{ kind: string; has_body: boolean; is_waiting: boolean }>(
    `select kind, purge_at is not null as has_body, exists (select from webhook_delivery where event_id = id) as is_waiting
      from webhook_event where stream_id = any($1) order by stream_id, sequence`,
    [streams],
  );

test("a deleted user's orders go with what was on its way, and merchants hear that its fields no longer hold", async () => {
  const { person } = world;
  const confirmed = (await world.ask()).body.data;
  assert.equal((await approve(person, confirmed?.["link"])).status, 200);
  await world.reach(String(confirmed?.["referenceKey"]), "CONFIRMED");
  const made = { keySealed: Buffer.of(1), heldSealed: Buffer.of(2) };
  const identity = { user: person.address, clientDomainId: world.clientDomainId, ...made };
  await insertIdentity(world.ctx.db, identity, 0);
  const second = await world.ask({ fields: ["ADDRESS_CITY"] });
  assert.equal(second.status, 200);
  const orders = await rowsOf<{ id: string; status: string }>(
    "select id::text, status from kyc_order where user_address = $1 order by created_at, id",
    [person.address],
  );
  assert.deepEqual(orders.map(({ status }) => status).toSorted(), ["CONFIRMED", "PENDING"]);
  const [status, said] = await deleteUser(world, person.address);
  assert.equal(status, 0, said);
  for (const table of ["kyc_order", "credential", "synthetic_identity"])
    assert.deepEqual(
      await rowsOf(`select from ${table} where user_address = $1`, [person.address]),
      [],
    );
  const ids = orders.map(({ id }) => id);
  for (const table of ["kyc_order_status", "kyc_consent", "kyc_token", "kyc_payload"])
    assert.deepEqual(
      await rowsOf(`select from ${table} where order_id = any($1::uuid[])`, [ids]),
      [],
    );
  const events = await eventsOf(ids);
  const waiting = events.filter((event) => event.is_waiting).map(({ kind }) => kind);
  assert.ok(waiting.includes("data.invalidated"), waiting.join());
  assert.ok(
    events.every(({ kind }) => kind !== "data.transferred"),
    "the values are gone, delivered or not",
  );
  assert.ok(
    events.every((event) => event.has_body && event.is_waiting),
    "what is left is still to be told",
  );
  const [held] = await rowsOf<{ transfers_held: number }>(
    "select transfers_held from kyc_package where id = $1",
    [world.dynamic.id],
  );
  assert.equal(held?.transfers_held, 0);
  const gone = await world.call(
    "GET",
    `/api/v2/kyc/status?referenceKey=${String(confirmed?.["referenceKey"])}`,
  );
  assert.equal(gone.status, 404);
});

test("a deleted user stands in the audit trail and the record of who asked, and in no other table", async () => {
  const { baseUrl, client } = world;
  const person = await world.verify();
  await logIn(baseUrl, client, person);
  const session = await openWalletSession(baseUrl, person);
  const asked = await post(`${baseUrl}/w/emails`, { email: "canary@example.com" }, session);
  assert.equal(asked.status, 202);
  const order = (await world.ask({ user: person.address })).body.data;
  assert.equal((await approve(person, order?.["link"])).status, 200);
  await world.reach(String(order?.["referenceKey"]), "CONFIRMED");
  const digits = person.address.slice(2);
  const held = await tablesWith(world.ctx.db, digits);
  for (const table of ["email_verification", "kyc_order", "rate_bucket", "wallet_session"])
    assert.ok(held.includes(table), `${table}: ${held.join()}`);
  const [status, said] = await deleteUser(world, person.address);
  assert.equal(status, 0, said);
  assert.deepEqual(await tablesWith(world.ctx.db, digits), ["audit_entry", "lookup"]);
});

test("somebody who has nothing here but a wallet is deleted too, and nobody twice", async () => {
  const { ctx, baseUrl } = world;
  const somebody = newIdentity();
  const session = await openWalletSession(baseUrl, somebody);
  const box = { box: "AAAA", expiresAt: ctx.clock.now() + 600 };
  assert.equal((await post(`${baseUrl}/w/mailbox`, box, session)).status, 201);
  await ctx.db.query(sql`
    insert into push_subscription (id, user_address, endpoint_sha256, subscription_sealed, created_at)
    values (gen_random_uuid(), ${somebody.address}, sha256('x'), 'x', 0)`);
  const [status, said] = await deleteUser(world, somebody.address);
  assert.equal(status, 0, said);
  for (const table of ["wallet_session", "mailbox", "push_subscription"])
    assert.deepEqual(
      await rowsOf(`select from ${table} where user_address = $1`, [somebody.address]),
      [],
    );
  const [again, refusal] = await deleteUser(world, somebody.address);
  assert.equal(again, 1);
  assert.match(refusal, /no such user/);
});

test("a deleted user has no role in any organization, though it has nothing else here and is the last owner", async () => {
  const [owner, developer] = [newIdentity(), newIdentity()];
  const { id: organizationId } = await createOrganization(world.ctx, { name: "Left" }, "test");
  const add = async (user: Address, role: string): Promise<unknown> =>
    addMember(world.ctx, { organizationId, user, role }, "test");
  await add(owner.address, "owner");
  await add(developer.address, "developer");
  const [status, said] = await deleteUser(world, owner.address);
  assert.equal(status, 0, said);
  const members = await listMembers(world.ctx, organizationId);
  assert.deepEqual(
    members.map(({ user }) => user),
    [developer.address],
  );
});

/** Makes a call that waits for an order's row, and meanwhile deletes the order's user. */
async function deletedWhile<T>(user: Address, call: () => Promise<T>): Promise<T> {
  const { ctx } = world;
  const answer = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_order where user_address = ${user} for update`);
    const called = call();
    await untilBlocked(ctx.db, tx, [called]);
    const { leaves } = await forgetUser(tx, user, ctx.clock.now());
    await forgetOrders(ctx, tx, { user, leaves });
    return { called };
  });
  return answer.called;
}

test("whoever asks again, or for events again, while the user is deleted hears that nothing is there", async () => {
  const [{ address: user }, other] = [await world.verify(), await world.verify()];
  await world.ask({ user });
  const repeated = await deletedWhile(user, async () => world.ask({ user }));
  assert.deepEqual([repeated.status, repeated.body.error?.reason], [422, "unverified_fields"]);
  const { referenceKey } = (await world.ask({ user: other.address })).body.data ?? {};
  const resent = await deletedWhile(other.address, async () =>
    world.call("POST", "/api/v2/kyc/redeliver", { body: { referenceKey } }),
  );
  assert.deepEqual([resent.status, resent.body.error?.reason], [404, "order_not_found"]);
});

test("no order is made for a user who is deleted while it is asked for", async () => {
  const { ctx } = world;
  const { address: user } = await world.verify();
  const { called } = await ctx.db.transaction(async (tx) => {
    const { leaves } = await forgetUser(tx, user, ctx.clock.now());
    await forgetOrders(ctx, tx, { user, leaves });
    const asked = world.ask({ user });
    await untilBlocked(ctx.db, tx, [asked]);
    return { called: asked };
  });
  const answer = await called;
  assert.deepEqual([answer.status, answer.body.error?.reason], [422, "unverified_fields"]);
  assert.deepEqual(await rowsOf("select from kyc_order where user_address = $1", [user]), []);
});

test("a first login waits for the deletion of its identity, and is deleted by the next one", async () => {
  const { ctx } = world;
  const person = newIdentity();
  const login: { done: Promise<unknown> | null } = { done: null };
  await ctx.db.transaction(async (tx) => {
    const meanwhile: Queryable = {
      async query(statement) {
        if (login.done === null && statement.text.includes("delete from token_family")) {
          login.done = logIn(world.baseUrl, world.client, person);
          await untilBlocked(ctx.db, tx, [login.done]);
        }
        return tx.query(statement);
      },
    };
    const deletion = { now: ctx.clock.now(), withdraw: async () => undefined };
    assert.equal(await deleteLogins(meanwhile, person.address, deletion), false);
  });
  await login.done;
  const [status, said] = await deleteUser(world, person.address);
  assert.equal(status, 0, said);
});

test("a dry run tells what would go with a user, and deletes and announces nothing", async () => {
  const person = await world.verify();
  assert.equal((await world.ask({ user: person.address })).status, 200);
  const kept = async () => ({
    orders: await rowsOf("select id, status from kyc_order where user_address = $1", [
      person.address,
    ]),
    credentials: await rowsOf("select id from credential where user_address = $1 order by id", [
      person.address,
    ]),
    told: await rowsOf("select count(*) from webhook_event", []),
    audited: await rowsOf("select id from audit_entry where subject = $1", [person.address]),
  });
  const untouched = await kept();
  const foreseen = await deleteUser(world, person.address, ["--dry-run"]);
  const counts = { credentials: 3, orders: 1 };
  assert.deepEqual(
    [foreseen[0], JSON.parse(foreseen[1])],
    [0, { wouldDelete: person.address, ...counts }],
  );
  assert.deepEqual(await kept(), untouched);
  const done = await deleteUser(world, person.address);
  assert.deepEqual([done[0], JSON.parse(done[1])], [0, { deleted: person.address, ...counts }]);
});

test("a user is not deleted while an order is being settled", async () => {
  const person = await world.verify();
  const asked = await world.ask({ user: person.address });
  assert.equal((await approve(person, asked.body.data?.["link"])).status, 200);
  const referenceKey = String(asked.body.data?.["referenceKey"]);
  await world.reach(referenceKey, "CONFIRMED");
  // The status between the order's two transactions.
  await rowsOf("update kyc_order set status = 'INITIATED' where user_address = $1", [
    person.address,
  ]);
  const [status, said] = await deleteUser(world, person.address);
  assert.equal(status, 1);
  assert.match(said, /being settled; try again/);
  assert.equal(
    (await rowsOf("select from credential where user_address = $1", [person.address])).length,
    3,
  );
  await rowsOf("update kyc_order set status = 'CONFIRMED' where user_address = $1", [
    person.address,
  ]);
});

type Report = Record<string, unknown> & Record<string, readonly Record<string, unknown>[]>;

async function show(address: string): Promise<Report> {
  const [status, said] = await showUser(world, address);
  assert.equal(status, 0, said);
  return JSON.parse(said) as Report;
}

test("the operator sees logins, wallets, credentials, orders and ties of a user, and no value of a field", async () => {
  const { client, baseUrl } = world;
  const person = await world.verify();
  await logIn(baseUrl, client, person);
  const session = await openWalletSession(baseUrl, person);
  const box = { box: "AAAA", expiresAt: world.ctx.clock.now() + 600 };
  assert.equal((await post(`${baseUrl}/w/mailbox`, box, session)).status, 201);
  const asked = (await world.ask({ user: person.address })).body.data;
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
