import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { openDb, sql, type Statement } from "./db.ts";
import { listMigrations, migrate } from "./migrate.ts";
import { lockMigrations } from "./migration-store.ts";
import { openTestDatabase } from "./test-database.ts";
import { until } from "../../../../test/patience.ts";

test("migrations are numbered from 1 without a gap", () => {
  const known = listMigrations();
  assert.deepEqual(
    known.map((each) => each.number),
    known.map((_, at) => at + 1),
  );
  for (const each of known) assert.match(each.name, /^\d{4}_[a-z_]+\.sql$/);
});

test("no migration changes after it was written down: databases that ran it would refuse this version", () => {
  const sums = new URL("../../../migrations/SHA256SUMS", import.meta.url);
  const written = readFileSync(sums, "utf8").trimEnd().split("\n");
  assert.deepEqual(
    written,
    listMigrations().map(({ name, sha256 }) => `${sha256}  ${name}`),
  );
});

test("processes that start together on an empty database migrate it once", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using stack = new AsyncDisposableStack();
  const dbs = Array.from({ length: 4 }, () =>
    stack.use(openDb({ ...database.connection, connections: 2 })),
  );
  const ran = await Promise.all(dbs.map(async (db) => migrate(db)));
  const names = listMigrations().map((each) => each.name);
  assert.deepEqual(ran.flat().toSorted(), names);
  assert.deepEqual(
    await dbs[0]?.query(sql`select name from migration order by number`),
    names.map((name) => ({ name })),
  );
});

test("a migration has no time limit, nor has a process that waits for it", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using holder = openDb({ ...database.connection, connections: 2 });
  await using hurried = openDb({ ...database.connection, connections: 1 });
  // The time limit of who asks for the migration, which would also end its own look at what is to do.
  const connectionString = { ...hurried.connectionString, query_timeout: 100 };
  const db = { ...hurried, connectionString };
  await holder.query(sql`create function refuse() returns event_trigger language plpgsql as $$ begin
    assert current_setting('statement_timeout') = '0', 'a statement is bounded';
    assert current_setting('lock_timeout') = '2s', 'how long a table is waited for is not';
  end $$`);
  await holder.query(
    sql`create event trigger bounded on ddl_command_start execute function refuse()`,
  );
  const longWait = sql`
    select from pg_locks join pg_stat_activity using (pid) where datname = current_database()
      and locktype = 'advisory' and not granted and clock_timestamp() - query_start > interval '200 ms'`;
  const { waiting } = await holder.transaction(async (tx) => {
    let patience: { is_endless: boolean }[] = [];
    await lockMigrations({
      async query<Row extends object>(statement: Statement) {
        if (statement.text.includes("pg_advisory"))
          patience = await tx.query(
            sql`select current_setting('lock_timeout') = '0' as is_endless`,
          );
        return tx.query<Row>(statement);
      },
    });
    assert.deepEqual(patience, [{ is_endless: true }]);
    const migrating = migrate(db).catch((error: unknown) => error);
    await until("the migration has waited", async () =>
      (await holder.query(longWait)).length > 0 ? true : null,
    );
    return { waiting: migrating };
  });
  assert.deepEqual(
    await waiting,
    listMigrations().map(({ name }) => name),
  );
});

test("a migration waits for a table in use, and all others proceed between its tries", async () => {
  await using database = await openTestDatabase();
  await using holder = openDb({ ...database.connection, connections: 1 });
  await using db = openDb({ ...database.connection, connections: 3 });
  await db.query(sql`delete from migration where number = 44`);
  await db.query(sql`alter table oauth_client drop column pushed_request_required`);
  const queued = sql`
    select from pg_locks where relation = 'oauth_client'::regclass and not granted
      and mode = 'AccessExclusiveLock'`;
  const { migrating } = await holder.transaction(async (tx) => {
    await tx.query(sql`lock table oauth_client in access share mode`);
    const running = migrate(db);
    running.catch(() => undefined);
    await until("the migration waits for the table", async () =>
      (await db.query(queued)).length > 0 ? true : null,
    );
    await db.query(sql`select from oauth_client`);
    return { migrating: running };
  });
  assert.deepEqual(await migrating, ["0044_pushed_requests_required.sql"]);
});

test("a table that stays in use is waited for in twelve tries, a minute, and then the migration is named and not begun", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`delete from migration where number = 44`);
  await db.query(sql`alter table oauth_client drop column pushed_request_required`);
  // Each try fails like one that has waited for two seconds.
  await db.query(sql`create function refuse() returns event_trigger language plpgsql as $$ begin
    raise exception using errcode = 'lock_not_available'; end $$`);
  await db.query(
    sql`create event trigger in_use on ddl_command_end when tag in ('ALTER TABLE') execute function refuse()`,
  );
  let pauses = 0;
  const migrating = migrate(db, async () => {
    pauses += 1;
    // Callers that queued behind the try proceed: it holds nothing.
    await db.transaction(async (tx) =>
      tx.query(sql`lock table oauth_client in access exclusive mode nowait`),
    );
  });
  await assert.rejects(
    migrating,
    /^TableInUse: 0044_pushed_requests_required\.sql waits for a table that another session has in use/,
  );
  assert.equal(pauses, 11);
  await db.query(sql`drop event trigger in_use`);
  assert.deepEqual(await migrate(db), ["0044_pushed_requests_required.sql"]);
});

test("a migrated database is left alone", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  assert.deepEqual(await migrate(db), []);
});

test("a file that was changed after it ran is refused by name", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`update migration set sha256 = 'other' where number = 1`);
  await assert.rejects(migrate(db), /^OtherVersion: 0001_platform\.sql was changed after it ran/);
});

test("a database that is ahead of the code is refused", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(
    sql`insert into migration (number, name, sha256) values (9999, '9999_future.sql', 'x')`,
  );
  await assert.rejects(migrate(db), /holds migration 9999, which this version does not know/);
});

test("a database that another program migrates is refused as that", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`create table migration (version text primary key, apply_time integer)`);
  await assert.rejects(migrate(db), /^OtherVersion: .*another program made: give svc a database/);
});

test("a migration that fails leaves nothing behind", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  // The last table that the first migration makes is there already.
  await db.query(sql`create table rate_bucket (name text)`);
  await assert.rejects(migrate(db), /already exists/);
  assert.deepEqual(
    await db.query(sql`select tablename from pg_tables where schemaname = 'public'`),
    [{ tablename: "rate_bucket" }],
  );
});

test("a migration holds its tables alone: where the next one fails it is kept, and the next start goes on behind it", async () => {
  await using database = await openTestDatabase({ migrated: false });
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`create table organization (name text)`);
  await assert.rejects(migrate(db), /already exists/);
  const [first, ...others] = listMigrations().map(({ name }) => name);
  assert.deepEqual(await db.query(sql`select name from migration`), [{ name: first }]);
  await db.query(sql`drop table organization`);
  assert.deepEqual(await migrate(db), others);
});

test("a user who approved a login before acquaintances were noted stays known", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`delete from migration where number = 34`);
  await db.query(sql`drop function sign_up, acquaint`);
  await db.query(sql`
    with organization as (insert into organization (id, name, created_at) values (gen_random_uuid(), 'Example', 1) returning id),
    domain as (
      insert into client_domain (id, organization_id, domain, environment, proof_token, created_at)
      select gen_random_uuid(), id, 'example.com', 'live', '', 1 from organization returning id)
    insert into oauth_client (id, client_domain_id, name, authentication_method, redirect_uris, created_at)
    select 'shop', id, 'Shop', 'none', '{}', 1 from domain`);
  const [approved, claimed, session] = ["a", "b", "c"].map((digit) => `0x${digit.repeat(40)}`);
  await db.query(sql`
    insert into login (id, client_id, request, status, claimed_by, browser_sha256, browser_network, created_at, expires_at)
    values ('1', 'shop', '{}', 'approved', ${approved}, '', '', 7, 8), ('2', 'shop', '{}', 'claimed', ${claimed}, '', '', 7, 8)`);
  await db.query(sql`
    insert into session (id, secret_sha256, user_address, authenticated_at, acr, created_at, used_at, approvals)
    values (gen_random_uuid(), '', ${session}, 1, '', 6, 6, '[{"client": "shop"}, {"client": "gone"}]')`);
  assert.deepEqual(await migrate(db), ["0034_acquaintance.sql"]);
  assert.deepEqual(
    await db.query(sql`
      select name, user_address, organization_user.created_at from organization_user
      join organization on organization.id = organization_id order by user_address`),
    [
      { name: "Example", user_address: approved, created_at: 7 },
      { name: "Example", user_address: session, created_at: 6 },
    ],
  );
});

test("links that were given out before they were counted keep their order", async () => {
  await using database = await openTestDatabase();
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`delete from migration where number = 35`);
  await db.query(
    sql`alter table kyc_token drop column number, drop constraint kyc_token_order_id_fkey`,
  );
  const give = async (link: string, createdAt: number): Promise<void> => {
    const tokenSha256 = Buffer.from(link.repeat(32));
    await db.query(sql`
      insert into kyc_token (token_sha256, order_id, attempt, expiration, callback, requester, offered, created_at)
      values (${tokenSha256}, gen_random_uuid(), 1, 600, '', '', '{}', ${createdAt})`);
  };
  await give("b", 8);
  await give("c", 9);
  await give("a", 7);
  assert.deepEqual(await migrate(db), ["0035_link_order.sql"]);
  await give("d", 9);
  await give("e", 5);
  const links = await db.query<{ link: string }>(
    sql`select left(encode(token_sha256, 'escape'), 1) as link from kyc_token order by number`,
  );
  assert.equal(links.map(({ link }) => link).join(""), "abcde");
});
