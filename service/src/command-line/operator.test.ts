// An operator's work with verbs: each shows what the earlier ones did.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Db, openDb, sql } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { callCommandLine } from "./test-call.ts";

await using database = await openTestDatabase();
const environment = { DATABASE_URL: database.url, PROFILE: "dev", MASTER_KEY: "11".repeat(32) };

const call = async (words: string, texts: readonly string[] = []) =>
  callCommandLine([...words.split(" "), ...texts], environment);

async function json(words: string, texts: readonly string[] = []): Promise<unknown> {
  const { status, out, err } = await call(words, [...texts, "--json"]);
  assert.deepEqual({ status, err }, { status: 0, err: "" }, words);
  return JSON.parse(out);
}

type Item = Record<string, unknown> & { readonly id: string };
const one = async (words: string, texts?: readonly string[]): Promise<Item> =>
  (await json(words, texts)) as Item;
const many = async (words: string): Promise<Item[]> => (await json(words)) as Item[];
const idsOf = (items: readonly Item[]): string[] => items.map(({ id }) => id);

/** The error, of one line, with which the verb is refused. */
async function refusal(words: string): Promise<string> {
  const { status, out, err } = await call(words);
  assert.deepEqual([status === 0, out, err.split("\n").length], [false, "", 2], words);
  return err.trimEnd();
}

const organization = await one("organization create --name", ["Example AG"]);
const scope = `--organization ${organization.id}`;
const domain = await one(`domain create ${scope} --domain localhost --environment live`);

await test("members of an organization are listed with their roles until they are removed", async () => {
  const [owner, viewer] = [`0x${"a1".repeat(20)}`, `0x${"b2".repeat(20)}`];
  await one(`organization member add ${scope} --user ${owner} --role owner`);
  await one(`organization member add ${scope} --user ${viewer} --role viewer`);
  const members = await many(`organization member list ${scope}`);
  assert.deepEqual(
    members.map(({ user, role }) => [user, role]),
    [
      [owner, "owner"],
      [viewer, "viewer"],
    ],
  );
  await one(`organization member remove ${scope} --user ${viewer}`);
  assert.equal((await many(`organization member list ${scope}`)).length, 1);
  const last = await refusal(`organization member remove ${scope} --user ${owner}`);
  assert.match(last, /owner/);
});

await test("organizations are listed in pages", async () => {
  const second = await one("organization create --name", ["Second AG"]);
  const listed = await many("organization list --limit 1");
  assert.deepEqual(idsOf(listed), [organization.id]);
  assert.deepEqual(idsOf(await many(`organization list --after ${organization.id}`)), [second.id]);
});

await test("the domains of an organization are listed, and proved anew when that is asked", async () => {
  const other = await one(`domain create ${scope} --domain localhost:4001 --environment sandbox`);
  const listed = await many(`domain list ${scope}`);
  assert.deepEqual(
    new Map(listed.map(({ id, verified, environment: side }) => [id, [verified, side]])),
    new Map([
      [domain.id, [true, "live"]],
      [other.id, [true, "sandbox"]],
    ]),
  );
  const proved = await one(`domain prove ${domain.id}`);
  assert.deepEqual([proved.id, proved["verified"]], [domain.id, true]);
  const hosts = await refusal(`domain callback-hosts ${domain.id}`);
  assert.match(hosts, /either --host, once or more, or --any/);
  const limited = await one(`domain callback-hosts ${domain.id} --host hooks.example.com`);
  assert.deepEqual(limited["callbackHosts"], ["hooks.example.com"]);
  const any = await one(`domain callback-hosts ${domain.id} --any`);
  assert.equal(any["callbackHosts"], null);
});

await test("the clients of a domain are listed, and each setting is changed by its own words", async () => {
  const create = `client create --domain ${domain.id} --name Shop`;
  const made = await one(`${create} --redirect-uri http://localhost:4999/callback`);
  const id = String(made["oauth2ClientID"]);
  const settings = "--id-token-algorithm ES256 --acr-minimum urn:svc:acr:qr-near";
  const changed = await one(`client update ${id} ${settings} --type client_secret_post`);
  assert.deepEqual(
    [changed["idTokenAlgorithm"], changed["acrMinimum"], changed["tokenEndpointAuthMethod"]],
    ["ES256", "urn:svc:acr:qr-near", "client_secret_post"],
  );
  const cleared = await one(`client update ${id} --acr-minimum`, [""]);
  assert.equal(cleared["acrMinimum"], null);
  assert.match(await refusal(`client update ${id}`), /no setting is given/);
  assert.match(await refusal(`client update ${id} --id-token-algorithm none`), /RS256, ES256/);
  assert.match(await refusal(`client update ${id} --number-matching yes`), /on or off/);
  const [shown] = await many(`client list --domain ${domain.id}`);
  assert.deepEqual(
    [shown?.["oauth2ClientID"], shown?.["name"], shown?.["redirectUris"], shown?.["disabledAt"]],
    [id, "Shop", ["http://localhost:4999/callback"], null],
  );
  const { out } = await call(`client list --domain ${domain.id}`);
  assert.match(out, /^oauth2ClientID +name +/);
  assert.match(out, /http:\/\/localhost:4999\/callback/);
});

await test("entitlements are granted, listed and withdrawn", async () => {
  assert.deepEqual(await json(`grant list ${organization.id}`), ["kyb:read"]);
  await one(`grant ${organization.id} kyb:data-request`);
  assert.deepEqual(await json(`grant list ${organization.id}`), ["kyb:read", "kyb:data-request"]);
  await one(`grant ${organization.id} kyb:data-request --withdraw`);
  assert.deepEqual(await json(`grant list ${organization.id}`), ["kyb:read"]);
  assert.match(await refusal(`grant ${organization.id} kyb:read`), /every organization has/);
  const grantable = /one of kyb:data-request, kyb:pii, kyb:signature\n?$/;
  assert.match(await refusal(`grant ${organization.id} kyb:all`), grantable);
});

await test("packages are bought from the balance, and their webhooks change keys without a gap", async () => {
  await one(`top-up ${scope} --chf 100.50 --payment invoice-1`);
  const again = await refusal(`top-up ${scope} --chf 100.50 --payment invoice-1`);
  assert.match(again, /this payment was booked before/);
  assert.equal((await one(`balance ${scope}`))["availableChf"], 100.5);
  const buy = `package buy --domain ${domain.id} --name Age --field IDCARD_DOB`;
  assert.match(await refusal(`${buy} --transfers 5 --chf lots`), /--chf must be an amount/);
  const bought = await one(`${buy} --transfers 5 --chf 80`);
  assert.equal((await one(`balance ${scope}`))["availableChf"], 20.5);
  const { signingKey, ...kept } = bought;
  assert.deepEqual(await one(`package show ${bought.id}`), kept);
  assert.deepEqual(await many(`package list --domain ${domain.id}`), [kept]);
  const none = await refusal(`package switch-key ${bought.id}`);
  assert.match(none, /has no next signing key/);
  const { nextSigningKey } = await one(`package next-key ${bought.id}`);
  assert.notEqual(nextSigningKey, signingKey);
  assert.match(await refusal(`package next-key ${bought.id}`), /^svc package next-key: /);
  const replaced = await one(`package next-key ${bought.id} --replace`);
  assert.notEqual(replaced["nextSigningKey"], nextSigningKey);
  assert.equal((await one(`package switch-key ${bought.id}`)).id, bought.id);
  assert.match(await refusal(`package switch-key ${bought.id}`), /has no next signing key/);
});

await test("issuers and their keys are listed, keys revoked, and trust is taken back from a time on", async () => {
  const issuer = await one("issuer create --environment live --name", ["Ident AG"]);
  assert.ok(idsOf(await many("issuer list")).includes(issuer.id));
  const key = await one(`issuer key create --issuer ${issuer.id} --name backend`);
  const { out } = await call(`issuer key list --issuer ${issuer.id} --json`);
  assert.deepEqual(idsOf(JSON.parse(out) as Item[]), [key.id]);
  assert.ok(!out.includes(String(key["key"])));
  for (const verb of ["issuer key revoke", "api-key revoke"])
    assert.match(
      await refusal(`${verb} ${String(key["key"])}`),
      /: <key> must be the key.s id: the 12 char/,
    );
  assert.deepEqual(await json(`issuer key revoke ${key.id}`), { revoked: key.id });
  assert.deepEqual(await many(`issuer key list --issuer ${issuer.id}`), []);
  const times = await refusal(`issuer distrust ${issuer.id} --from yesterday`);
  assert.match(times, /--from must be a time in Unix seconds/);
  const foreseen = await one(`issuer distrust ${issuer.id} --from 1700000000 --dry-run`);
  assert.deepEqual(foreseen, {
    ...issuer,
    distrustedFrom: 1_700_000_000,
    credentials: 0,
    holders: 0,
  });
  const trusted = (await many("issuer list")).find(({ id }) => id === issuer.id);
  assert.equal(trusted?.["distrustedFrom"], null);
  const distrusted = await one(`issuer distrust ${issuer.id} --from 1700000000`);
  assert.equal(distrusted["distrustedFrom"], 1_700_000_000);
});

interface AuditPage {
  readonly items: readonly (Item & { readonly actor: string; readonly recordedAt: number })[];
  readonly nextCursor?: number;
}

const audit = async (words: string): Promise<AuditPage> =>
  (await json(`audit list ${words}`.trim())) as AuditPage;

await test("anything but an identity can be neither deleted nor logged out", async () => {
  for (const verb of ["user delete", "user logout"]) {
    assert.match(await refusal(`${verb} somebody`), /address of 20 bytes in hex/);
    assert.match(await refusal(`${verb} 0x${"0d".repeat(20)}`), /no such user/);
  }
});

await test("a logout of a user ends the sessions of wallets too, says what it ended, and may be called again", async () => {
  const user = `0x${"c4".repeat(20)}`;
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`insert into svc_user (address, created_at) values (${user}, 1)`);
  await db.query(sql`
    insert into wallet_session (token_sha256, user_address, challenge_sha256, created_at, expires_at)
    values ('\\x01', ${user}, '\\x01', 1, 99999999999)`);
  const none = { sessions: 0, offline: 0, unfinished: 0, walletSessions: 0 };
  const foreseen = await json(`user logout ${user} --dry-run`);
  assert.deepEqual(foreseen, { wouldLogOut: user, ...none, walletSessions: 1 });
  const done = await json(`user logout ${user}`);
  assert.deepEqual(done, { loggedOut: user, ...none, walletSessions: 1 });
  assert.deepEqual(await json(`user logout ${user}`), { loggedOut: user, ...none });
  const { items } = await audit(`--about ${user}`);
  assert.deepEqual(
    items.map(({ action }) => action),
    ["user.logout", "user.logout"],
  );
});

await test("the audit trail shows what was done to a thing, newest first, whatever the case of its id", async () => {
  const create = `client create --domain ${domain.id} --name Shop --redirect-uri http://localhost:4999/callback`;
  const id = String((await one(create))["oauth2ClientID"]);
  await call(`client disable ${id}`);
  const { items, nextCursor } = await audit(`--about ${id.toUpperCase()}`);
  assert.deepEqual(
    items.map(({ actor, action, subject }) => [actor, action, subject]),
    ["client.disable", "client.create"].map((action) => ["cli", action, id]),
  );
  assert.equal(nextCursor, undefined);
  assert.deepEqual((await audit("")).items.slice(0, 2), items);
  assert.deepEqual((await audit("--about nobody")).items, []);
  assert.match(
    (await call("audit list")).out,
    /recordedAt .*\n\d+ +\d{4}-\d\d-\d\dT[\d:]+Z +cli +client\.disable/,
  );
});

await test("the audit trail is read page by page, each entry once, also where somebody did a thing to themselves", async () => {
  const user = `0x${"c3".repeat(20)}`;
  await using db = openDb({ ...database.connection, connections: 1 });
  await db.query(sql`
    insert into audit_entry (at, actor, action, subject)
    select n, case n % 3 when 0 then 'system' else ${user} end, 'test.run', case n % 3 when 1 then 'else' else ${user} end
    from generate_series(1, 101) as n`);
  const first = await audit(`--about ${user}`);
  assert.equal(first.items.length, 100);
  const second = await audit(`--about ${user} --before ${first.nextCursor}`);
  assert.deepEqual(
    [...first.items, ...second.items].map(({ recordedAt }) => recordedAt),
    Array.from({ length: 101 }, (_, at) => 101 - at),
  );
  assert.equal(second.nextCursor, undefined);
  const all = await audit("");
  assert.deepEqual([all.items.length, all.nextCursor], [100, all.items.at(-1)?.id]);
  const rest = await audit(`--before ${all.nextCursor}`);
  assert.equal(rest.items[0]?.recordedAt, 1);
  assert.match(await refusal("audit list --before yesterday"), /--before must be a whole number/);
});

await test("a rewrap goes through every column that is sealed under a master key", async () => {
  const done = await many("key rewrap");
  await using db = openDb({ ...database.connection, connections: 1 });
  const noted = sql`select actor, subject from audit_entry where action = 'master-key.rewrap'`;
  assert.deepEqual(await db.query(noted), [{ actor: "cli", subject: "installation" }]);
  const columns = await db.query<{ name: string }>(sql`
    select table_name || '.' || column_name as name
    from information_schema.columns join information_schema.tables using (table_schema, table_name)
    where table_schema = 'public' and table_type = 'BASE TABLE' and data_type = 'bytea' and column_name ~ 'sealed$'`);
  // Not sealed with the master key but with the previous refresh token, and deleted seconds later.
  const underToken = "token_family.successor_sealed";
  assert.deepEqual(
    done.map(({ table, column }) => `${String(table)}.${String(column)}`).toSorted(),
    columns
      .map(({ name }) => name)
      .filter((name) => name !== underToken)
      .toSorted(),
  );
});

await test("a verb that loses the database says whether it may have succeeded nevertheless", async () => {
  await using db = openDb({ ...database.connection, connections: 1 });
  const away = /^svc [a-z ]+: the database .+ \(DATABASE_URL\): [^;]+/;
  for (const words of ["organization create --name Ambiguous", "clock advance 1"]) {
    await dyingAt(db, "initially immediate", async () => {
      const { status, err } = await call(words);
      assert.equal(status, 1);
      assert.match(err, new RegExp(`${away.source}$`, "m"));
    });
    await dyingAt(db, "initially deferred", async () => {
      const { status, err } = await call(words);
      assert.equal(status, 1);
      assert.match(
        err,
        new RegExp(
          `${away.source}; the change may have been made all the same: check before you run this again$`,
          "m",
        ),
      );
    });
  }
});

/**
 * During the work the server ends every connection that writes to the audit trail or the clock, at the statement or at
 * commit.
 */
async function dyingAt(
  db: Db,
  time: "initially immediate" | "initially deferred",
  work: () => Promise<void>,
): Promise<void> {
  const text = `
    create function die() returns trigger language plpgsql as
      'begin perform pg_terminate_backend(pg_backend_pid()); return null; end';
    create constraint trigger dying after insert on audit_entry deferrable ${time}
      for each row execute function die();
    create constraint trigger dying after update on clock deferrable ${time}
      for each row execute function die()`;
  await db.query({ name: "", text, values: [] });
  await work();
  await db.query({ name: "", text: "drop function die cascade", values: [] });
}

await test("a verb on a machine with a wrong clock uses the database's time", async (t) => {
  const now = Date.now;
  for (const hours of [2, -2]) {
    const { id } = await one("issuer create --environment sandbox --name", ["Late issuer"]);
    const { mock } = t.mock.method(Date, "now", () => now() + hours * 3_600_000);
    const distrusted = await one(`issuer distrust ${id}`);
    const rotated = await one("key rotate wallet-es256");
    const revoked = await json(`key revoke ${String(rotated["current"])}`);
    mock.restore();
    const apartSeconds = Number(distrusted["distrustedFrom"]) - now() / 1000;
    assert.ok(Math.abs(apartSeconds) < 10, String(apartSeconds));
    assert.deepEqual(revoked, { revoked: rotated["current"] });
    const keys = (await many("key list")).filter(({ purpose }) => purpose === "wallet-es256");
    const statuses = keys.map(({ status }) => status);
    assert.deepEqual(statuses.slice(-2), ["current", "next"]);
  }
});
