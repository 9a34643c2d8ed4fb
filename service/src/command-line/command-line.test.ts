import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { openContext } from "../compose.ts";
import { clusterParent } from "../../../test/cluster-parent.ts";
import { chainAll } from "../../../test/linked-audit.ts";
import { replaceBaseUrl } from "../platform/base-url-store.ts";
import { readOffsetSeconds } from "../platform/clock-store.ts";
import { parseConfig } from "../platform/config/config.ts";
import { openClock } from "../platform/clock.ts";
import { openDb } from "../platform/database/db.ts";
import { openNotifications } from "../platform/database/notifications.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { runCommandLine } from "./index.ts";
import { callCommandLine } from "./test-call.ts";

const main = join(import.meta.dirname, "../main.ts");
const directory = mkdtempSync(join(clusterParent, "svc-cli-"));
// If run by root, the embedded database runs as another user, who needs access to this directory.
chmodSync(directory, 0o711);
using cleanup = new DisposableStack();
cleanup.defer(() => rmSync(directory, { recursive: true, force: true }));

await using database = await openTestDatabase();
const randomKey = "0123456789abcdef".repeat(4);
const environment = { DATABASE_URL: database.url, DATA_DIR: directory, PROFILE: "dev" };

interface Transcript {
  status: number | null;
  out: string;
  err: string;
}

/** Runs the real program as a process. */
async function svc(args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Transcript> {
  const child = spawn(process.execPath, ["--conditions=source", main, ...args], {
    env: { ...process.env, ...environment, ...more },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  const [out, err, status] = await Promise.all([text(child.stdout), text(child.stderr), exit]);
  return { status, out, err };
}

/** The JSON value that a verb prints. @param more further arguments, which may contain spaces */
async function json(words: string, ...more: string[]): Promise<Record<string, unknown>> {
  const { status, out, err } = await call([...words.split(" "), ...more, "--json"]);
  assert.deepEqual({ status, err }, { status: 0, err: "" });
  return JSON.parse(out) as Record<string, unknown>;
}

/** The same within this process, which is faster. */
const call = async (args: readonly string[], more: NodeJS.ProcessEnv = {}): Promise<Transcript> =>
  callCommandLine(args, { ...environment, ...more });

const textOf = (record: Record<string, unknown>, name: string): string => String(record[name]);

void test("wrong use is one line on standard error and status 2", async () => {
  for (const [args, err] of [
    [[], "svc: no verb is given; see svc --help\n"],
    [["frob"], 'svc: there is no verb "frob"; see svc --help\n'],
    [
      ["--domain", "d1", "client", "list"],
      "svc: options must come after the verb; see svc client list --help\n",
    ],
    [["client"], 'svc: "client" needs one more word; see svc client --help\n'],
    [
      ["organization", "create"],
      "svc organization create: --name is missing; see svc organization create --help\n",
    ],
    [["client", "show"], "svc client show: <client> is missing; see svc client show --help\n"],
    [["migrate", "now"], 'svc migrate: unexpected argument "now"; see svc migrate --help\n'],
    [["clock", "advance", "-5"], null],
    [
      ["clock", "advance", "1.5"],
      "svc clock advance: seconds must be a whole number of at most 9 digits; see svc clock advance --help\n",
    ],
    [
      ["clock", "advance", "1000000000"],
      "svc clock advance: seconds must be a whole number of at most 9 digits; see svc clock advance --help\n",
    ],
    [["migrate", "--frob"], null],
  ] as const) {
    const answer = await call(args);
    assert.equal(answer.status, 2, args.join(" "));
    assert.equal(answer.out, "");
    if (err === null) assert.match(answer.err, /^svc [^\n]+\n$/);
    else assert.equal(answer.err, err);
  }
});

await test("an organization, its members, a domain, a client and a key are made and shown", async () => {
  const organization = await json("organization create --name", "Example AG");
  const organizationId = textOf(organization, "id");
  assert.deepEqual(organization, {
    id: organizationId,
    name: "Example AG",
    createdAt: organization["createdAt"],
  });

  const user = `0x${"a1".repeat(20)}`;
  const scope = `--organization ${organizationId}`;
  const member = await json(`organization member add ${scope} --user ${user} --role owner`);
  assert.equal(member["role"], "owner");
  const shown = await json(`organization show ${organizationId}`);
  assert.deepEqual(shown, { ...organization, members: [member] });
  const { out } = await call(["--json", "organization", "show", organizationId]);
  assert.deepEqual(JSON.parse(out), shown);

  const domain = await json(`domain create ${scope} --domain localhost:4001 --environment live`);
  assert.deepEqual(
    { verified: domain["verified"], proof: domain["proof"] },
    { verified: true, proof: null },
  );

  const domainId = textOf(domain, "id");
  const uris = ["http://localhost:4999/callback", "http://localhost:4001/callback"];
  const shop = `--domain ${domainId} --name Shop --audience https://api.example.com`;
  const uses = `--redirect-uri ${uris.join(" --redirect-uri ")} --number-matching off`;
  const client = await json(`client create ${shop} ${uses} --pushed-request-required on`);
  const { oauth2ClientID, secret, ...settings } = client;
  assert.match(String(secret), /^[A-Za-z0-9_-]{43}$/);
  assert.equal(settings["tokenEndpointAuthMethod"], "client_secret_basic");
  assert.deepEqual([settings["numberMatching"], settings["pushedRequestRequired"]], [false, true]);
  assert.deepEqual(settings["redirectUris"], uris);
  assert.deepEqual(await json(`client show ${String(oauth2ClientID)}`), {
    oauth2ClientID,
    ...settings,
  });

  const key = await json(`api-key create --domain ${domainId} --name backend`);
  assert.match(textOf(key, "key"), /^svc_live_/);
  const listed = await call(["api-key", "list", ...scope.split(" "), "--json"]);
  assert.equal((JSON.parse(listed.out) as unknown[]).length, 1);
  assert.ok(!listed.out.includes(textOf(key, "key")));
  assert.deepEqual(await json(`api-key revoke ${textOf(key, "id")}`), { revoked: key["id"] });
});

await test("a client is changed, gets a second secret, loses the first, and is disabled", async () => {
  const organization = await json("organization create --name", "Second AG");
  const scope = `--organization ${textOf(organization, "id")}`;
  const domain = await json(`domain create ${scope} --domain localhost --environment sandbox`);
  const logout = "--backchannel-logout-uri http://localhost:4001/logout";
  const client = await json(
    `client create --domain ${textOf(domain, "id")} --name Shop --audience one ${logout}`,
  );
  const id = textOf(client, "oauth2ClientID");

  const unset = ["--audience", "", "--backchannel-logout-uri", ""];
  const changed = await json(`client update ${id} --name Store`, ...unset);
  assert.deepEqual(
    [changed["audiences"], changed["backchannelLogoutUri"], changed["name"]],
    [[], null, "Store"],
  );

  const added = await json(`client secret-add ${id}`);
  assert.match(textOf(added, "secret"), /^[A-Za-z0-9_-]{43}$/);
  const third = await svc(["client", "secret-add", id]);
  assert.deepEqual(third, {
    status: 1,
    out: "",
    err: "svc client secret-add: a client has at most two live secrets; revoke one first\n",
  });
  const [first] = client["secrets"] as { id: string }[];
  assert.deepEqual(await json(`client secret-revoke ${id} ${first?.id}`), {
    revoked: first?.id,
  });
  const { secrets } = await json(`client show ${id}`);
  const left = (secrets as { id: string }[]).map((secret) => secret.id);
  assert.deepEqual(left, [textOf(added, "id")]);
  const disabled = await json(`client disable ${id}`);
  assert.equal(typeof disabled["disabledAt"], "number");
});

await test("without --json a list is an aligned table with dates", async () => {
  const { status, out } = await call(["organization", "list"]);
  const [head = "", ...rows] = out.trimEnd().split("\n");
  assert.equal(status, 0);
  assert.match(head, /^id +name +createdAt$/);
  const at = head.indexOf("createdAt");
  assert.ok(rows.length >= 2);
  for (const row of rows) assert.match(row.slice(at), /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ$/);
});

await test("keys of a private_key_jwt client come from a file, public ones alone", async () => {
  const organization = await json("organization create --name", "Third AG");
  const scope = `--organization ${textOf(organization, "id")}`;
  const domain = await json(`domain create ${scope} --domain localhost --environment live`);
  const path = join(directory, "jwks.json");
  writeFileSync(path, JSON.stringify({ keys: [{ kty: "oct", k: "AAAA" }] }));
  const owner = `--domain ${textOf(domain, "id")} --type private_key_jwt`;
  const create = `client create ${owner} --name Shop --jwks`.split(" ");
  const refused = await call([...create, path]);
  assert.equal(refused.status, 1);
  assert.match(
    refused.err,
    /^svc client create: Invalid Request: jwks\.keys\[0\] holds private members[^\n]*\n$/,
  );
  const missing = await call([...create, join(directory, "nowhere.json")]);
  assert.equal(missing.status, 2);
});

await test("the clock moves forward for everyone, in dev alone and never with a chain of others", async () => {
  const before = Math.floor(Date.now() / 1000);
  await using stack = new AsyncDisposableStack();
  const db = openDb({ ...database.connection, connections: 2 });
  stack.defer(async () => db.close());
  const notifications = stack.use(await openNotifications(db, { onFault: assert.ifError }));
  const clock = stack.use(await openClock(db, notifications));
  const { promise: everyJobAsked, resolve } = Promise.withResolvers<boolean>();
  clock.onMoved(resolve);
  const moved = await json("clock advance 3600");
  assert.ok(Number(moved["now"]) >= before + 3600);
  const { items } = (await json("audit list --about installation")) as {
    items?: Record<string, unknown>[];
  };
  const [act] = items ?? [];
  assert.deepEqual(
    [act?.["actor"], act?.["action"], act?.["details"]],
    ["cli", "clock.advance", { seconds: 3600, offsetSeconds: moved["offsetSeconds"] }],
  );
  assert.ok(await everyJobAsked, "deletions that are due are done, whenever their jobs ran last");
  const organization = await json("organization create --name", "Later AG");
  assert.ok(Number(organization["createdAt"]) >= before + 3600);
  const chained = await call(["clock", "advance", "1"], { CHAIN_RPC_URL: "http://localhost:8545" });
  assert.equal(chained.status, 1);
  assert.match(chained.err, /CHAIN_RPC_URL/);
  const production = await call(["clock", "advance", "1"], {
    PROFILE: "production",
    BASE_URL: "https://id.example.com",
    MASTER_KEY: randomKey,
    SIGNER_KEY: "22".repeat(32),
    ALLOW_EMBEDDED_CHAIN: "true",
  });
  assert.equal(production.status, 1);
  assert.match(production.err, /profile dev only/);

  await replaceBaseUrl(db, "https://id.example.com");
  const bare = await call(["clock", "advance", "1"]);
  await replaceBaseUrl(db, "http://localhost:4000");
  assert.equal(bare.status, 1);
  assert.match(bare.err, /dev only, and this database was served as https:\/\/id\.example\.com$/m);
  assert.equal(await readOffsetSeconds(db), moved["offsetSeconds"]);
});

/** The list that a verb prints. */
async function list(words: string): Promise<Record<string, unknown>[]> {
  return (await json(words)) as unknown as Record<string, unknown>[];
}

/** The kid of the RS256 login key with that status. */
function named(keys: Record<string, unknown>[], status: string): unknown {
  return keys.find((key) => key["purpose"] === "login-rs256" && key["status"] === status)?.["kid"];
}

await test("a signing key is replaced by its published successor, and can be revoked", async () => {
  await json("key rotate login-rs256");
  const before = await list("key list");
  await json("clock advance 1");
  const rotated = await json("key rotate login-rs256");
  assert.equal(rotated["current"], named(before, "next"));
  const after = await list("key list");
  assert.equal(named(after, "current"), rotated["current"]);
  assert.ok(named(after, "next"));
  assert.deepEqual(await json(`key revoke ${textOf(rotated, "current")}`), {
    revoked: rotated["current"],
  });
  assert.equal(named(await list("key list"), "current"), named(after, "next"));
  const again = await call(["key", "revoke", String(rotated["current"])]);
  assert.deepEqual(again, {
    status: 1,
    out: "",
    err: "svc key revoke: no such live signing key\n",
  });
  assert.equal((await call(["key", "rotate", "login-hs256"])).status, 2);
});

await test("after a rewrap the old master key is needed no longer", async () => {
  await using other = await openTestDatabase();
  const [older, newer] = ["11".repeat(32), "22".repeat(32)];
  const on = (masterKey: string): NodeJS.ProcessEnv => ({
    DATABASE_URL: other.url,
    MASTER_KEY: masterKey,
  });
  assert.equal((await call(["key", "rotate", "wallet-es256"], on(older))).status, 0);
  assert.equal((await call(["key", "list"], on(newer))).status, 1);
  const { status, out } = await call(["key", "rewrap", "--json"], on(`${newer},${older}`));
  assert.equal(status, 0);
  const done = JSON.parse(out) as { table: string; checked: number; rewrapped: number }[];
  const touched = done.filter(({ checked }) => checked > 0);
  assert.deepEqual(
    touched.map((each) => each.table),
    ["signing_key", "installation_key"],
  );
  for (const each of done) assert.equal(each.rewrapped, each.checked);
  assert.equal((await call(["key", "list"], on(newer))).status, 0);
});

await test("a person who watches a long verb sees its progress once a second", async (t) => {
  const columns = await list("key rewrap");
  const told: string[] = [];
  let [now, stepMs] = [0, 500];
  t.mock.method(performance, "now", () => (now += stepMs));
  const watch = async (...args: string[]): Promise<void> => {
    const refusals: string[] = [];
    const status = await runCommandLine(args, {
      out: () => undefined,
      err: (line) => refusals.push(line),
      watched: (line) => told.push(line),
      environment,
    });
    assert.deepEqual([status, refusals], [0, []]);
  };
  await watch("key", "rewrap");
  assert.equal(told.length, Math.floor(columns.length / 2));
  for (const line of told.splice(0))
    assert.match(line, /^svc key rewrap: \d+ values of \w+\.\w+ are checked\n$/);
  stepMs = 1000;
  await watch("audit", "verify");
  assert.match(told.join(""), /^svc audit verify: \d+ entries are checked\n$/);
});

await test("production refuses an installation whose clock was moved", async () => {
  await using other = await openTestDatabase();
  const dev = { DATABASE_URL: other.url, MASTER_KEY: randomKey };
  const production = {
    ...dev,
    PROFILE: "production",
    BASE_URL: "https://id.example.com",
    CHAIN_RPC_URL: "https://rpc.example.com",
    CHAIN: "on",
    SIGNER_KEY: "cd".repeat(32),
  };
  assert.equal((await call(["organization", "list"], production)).status, 0);
  assert.equal((await call(["clock", "advance", "60"], dev)).status, 0);
  assert.deepEqual(await call(["organization", "list"], production), {
    status: 1,
    out: "",
    err: "svc organization list: the clock of this installation was moved in the profile dev\n",
  });
});

await test("an audit trail that was changed behind the service's back is reported with status 1", async () => {
  const intact = await json("audit verify");
  assert.equal(intact["isIntact"], true);
  await using db = openDb({ connectionString: database.url, connections: 1 });
  await using ctx = await openContext(parseConfig({ ...environment, LOG_LEVEL: "silent" }));
  await chainAll(ctx);
  await db.query({
    name: "",
    text: "update audit_entry set actor = 'nobody' where id = 1",
    values: [],
  });
  const changed = await call(["audit", "verify", "--json"]);
  assert.equal(changed.status, 1);
  assert.equal(changed.err, "svc audit verify: the audit trail was changed\n");
  assert.equal((JSON.parse(changed.out) as { isIntact: boolean }).isIntact, false);
});

await test("while the chain's node is away the audit trail is reported nevertheless, with status 1", async () => {
  await using other = await openTestDatabase();
  const away = {
    DATABASE_URL: other.url,
    CHAIN_RPC_URL: "http://localhost:9",
    SIGNER_KEY: "cd".repeat(32),
  };
  assert.equal((await call(["organization", "create", "--name", "Example AG"], away)).status, 0);
  await using db = openDb({ connectionString: other.url, connections: 1 });
  const anchor = `
    with batch as (
      insert into kyc_batch (id, phase, root, audit_head, audit_position, created_at, transaction_hash, operator)
      values (gen_random_uuid(), 'initiate', sha256('a'), sha256('b'), 1, 0, sha256('c'), '0x') returning id)
    insert into kyc_batch_leaves (batch_id, leaves) select id, '' from batch`;
  await db.query({ name: "", text: anchor, values: [] });
  const { status, out, err } = await call(["audit", "verify", "--json"], away);
  assert.equal(status, 1);
  assert.match(err, /^svc audit verify: nothing was compared with the chain: [^\n]+\n$/);
  const { isIntact, anchored } = JSON.parse(out) as Record<string, unknown>;
  assert.deepEqual({ isIntact, anchored }, { isIntact: true, anchored: null });
});

await test("what verbs write after a restore on another cluster, before a service runs, is no change of the trail", async () => {
  await using restored = await openTestDatabase();
  const there = { DATABASE_URL: restored.url };
  const create = ["organization", "create", "--name"];
  assert.equal((await call([...create, "Before AG"], there)).status, 0);
  await using db = openDb({ connectionString: restored.url, connections: 1 });
  const run = async (statement: string): Promise<unknown> =>
    db.query({ name: "", text: statement, values: [] });
  // A dump contains transaction ids of its cluster of origin.
  await run(`
    update audit_chain
    set horizon = (pg_snapshot_xmax(pg_current_snapshot())::text::bigint + 5000)::text::xid8`);
  assert.equal((await call([...create, "After AG"], there)).status, 0);
  assert.equal((await call(["audit", "verify"], there)).status, 0);
  await run(`
    do $$ begin for n in 1..5000 loop perform pg_current_xact_id(); commit; end loop; end $$`);
  assert.equal((await call(["audit", "verify"], there)).status, 0);
  await using ctx = await openContext(
    parseConfig({ ...environment, ...there, LOG_LEVEL: "silent" }),
  );
  await chainAll(ctx);
  assert.equal((await call(["audit", "verify"], there)).status, 0);
});

await test("settings are listed with their values, secrets masked", async () => {
  const { out } = await call(["settings", "--json"], { MASTER_KEY: "ab".repeat(32), PORT: "4100" });
  const rows = JSON.parse(out) as { setting: string; value: unknown }[];
  const valueOf = (name: string): unknown => rows.find((row) => row.setting === name)?.value;
  assert.equal(valueOf("PORT"), 4100);
  assert.equal(valueOf("BASE_URL"), "http://localhost:4100");
  assert.equal(valueOf("MASTER_KEY"), "********");
  assert.ok(!out.includes("ab".repeat(32)));
  assert.ok(!out.includes("postgresql://"));
});

await test("a setting with a wrong value is named in one line, status 1", async () => {
  const { status, err } = await call(["organization", "list"], { PORT: "many" });
  assert.deepEqual(
    { status, err },
    { status: 1, err: "svc organization list: PORT must be a whole number from 1 to 65535\n" },
  );
});

await test("without DATABASE_URL and without a service the embedded database runs for the verb", async () => {
  const data = join(directory, "data");
  const own = { DATABASE_URL: "", DATA_DIR: data };
  const made = await svc(["organization", "create", "--name", "Embedded AG", "--json"], own);
  assert.deepEqual([made.status, made.err], [0, ""]);
  const listed = await call(["organization", "list", "--json"], own);
  assert.deepEqual(JSON.parse(listed.out), [JSON.parse(made.out)]);
});
