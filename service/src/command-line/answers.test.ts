// What verbs answer for ids that do not exist, how answers look to people, and what happens if nobody reads them.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { test } from "node:test";
import { openDb } from "../platform/database/db.ts";
import { openTestDatabase } from "../platform/database/test-database.ts";
import { escapeSteering } from "../platform/telemetry/steering.ts";
import { callCommandLine } from "./test-call.ts";
import { forPeople } from "./print.ts";

await using database = await openTestDatabase();
const environment = { DATABASE_URL: database.url, PROFILE: "dev", MASTER_KEY: "11".repeat(32) };

const call = async (args: readonly string[], more: NodeJS.ProcessEnv = {}) =>
  callCommandLine(args, { ...environment, ...more });

for (const [what, id] of [
  ["does not exist", "0199c3a0-5c1e-7d4f-9a61-2b7c8e5d4f10"],
  ["is no UUID", "bogus"],
] as const)
  await test(`there is no balance of an organization that ${what}`, async () => {
    assert.deepEqual(await call(["balance", "--organization", id]), {
      status: 1,
      out: "",
      err: "svc balance: no such organization\n",
    });
  });

await test("a page of businesses is a table, with where the next begins", async () => {
  assert.equal((await call(["business", "list"])).out, "none\n");
  const page = { items: [{ address: "0xa", name: "Example AG" }], nextCursor: "0xa" };
  assert.equal(forPeople(page), "address  name\n0xa      Example AG\nnextCursor  0xa\n");
});

await test("people see all times as dates", () => {
  const times = { createdAt: 1795000000, failingSince: null, distrustedFrom: 1795000000, count: 1 };
  assert.equal(
    forPeople(times),
    "createdAt       2026-11-18T11:06:40Z\nfailingSince    -\ndistrustedFrom  2026-11-18T11:06:40Z\ncount           1\n",
  );
});

test("lists of records in a record are tables below it, and other lists stay in their line", () => {
  const shown = {
    id: "0xa",
    sessions: [{ id: "s1", usedAt: 0, clients: ["c1", "c2"] }],
    tokens: [],
    fields: ["EMAIL"],
  };
  const lines = ["id      0xa", "tokens  -", "fields  EMAIL"];
  const table = [
    "sessions",
    "id  usedAt                clients",
    "s1  1970-01-01T00:00:00Z  c1, c2",
  ];
  assert.equal(forPeople(shown), `${lines.join("\n")}\n\n${table.join("\n")}\n`);
});

test("a text that somebody else chose stays in its line and does not steer the terminal", () => {
  const chosen = "sent\nstatus  CONFIRMED\u001b[2J\u009b2J\u202e";
  const shown = "sent<U+000A>status  CONFIRMED<U+001B>[2J<U+009B>2J<U+202E>";
  assert.equal(forPeople({ purpose: chosen }), `purpose  ${shown}\n`);
  const lines = ["\nevents", `answer${" ".repeat(shown.length - 6)}  said`, `${shown}  ${shown}`];
  assert.equal(
    forPeople({ events: [{ answer: chosen, said: [chosen] }] }),
    `${lines.join("\n")}\n`,
  );
  assert.equal(forPeople({ price: { said: "\u009b" } }), 'price  {"said":"<U+009B>"}\n');
});

await test("a text that somebody else chose does not steer the terminal as JSON or in a refusal either", async () => {
  const chosen = "\u001b[2J\u009b2J\u007f\u202e\u2028\u{1f600}";
  const line = escapeSteering(JSON.stringify({ said: chosen }));
  assert.equal(
    line,
    '{"said":"\\u001b[2J\\u009b2J\\u007f\\u202e\\u2028\u{1f600}"}',
    "and what a terminal shows as it is stays",
  );
  assert.deepEqual(JSON.parse(line), { said: chosen });
  const node = createServer((request, response) => {
    const error = { code: -32_000, message: `no such key ${chosen}` };
    request.on("end", () => response.end(JSON.stringify({ jsonrpc: "2.0", id: 0, error })));
    request.resume();
  }).listen(0, "127.0.0.1");
  await once(node, "listening");
  const { port } = node.address() as AddressInfo;
  const given = { CHAIN_RPC_URL: `http://127.0.0.1:${port}` };
  const { status, err } = await call(["chain", "show"], given);
  node.closeAllConnections();
  node.close();
  assert.equal(status, 1);
  assert.match(err, /no such key <U\+001B>\[2J<U\+009B>2J<U\+007F><U\+202E><U\+2028>/);
});

await test("a page of businesses begins after an address and after nothing else", async () => {
  const { status, out, err } = await call(["business", "list", "--after", "bogus"]);
  assert.deepEqual({ status, out }, { status: 1, out: "" });
  assert.match(err, /after the address of a business\n$/);
});

await test("an option that stands once may not be given twice, one that repeats may", async () => {
  const create = ["organization", "create", "--name", "One AG"];
  assert.deepEqual(await call([...create, "--name=Two AG"]), {
    status: 2,
    out: "",
    err: "svc organization create: --name is given twice; see svc organization create --help\n",
  });
  const hosts = ["domain", "callback-hosts", "bogus", "--host", "a.example", "--host", "b.example"];
  assert.equal((await call(hosts)).status, 1);
  const help = ["organization", "list", "--help"];
  assert.deepEqual(await call(["help", ...help]), await call(help), "a flag may stand twice");
});

await test("an option that a verb does not have is named in one line", async () => {
  const { err } = await call(["organization", "list", "--nothing"]);
  assert.equal(
    err,
    "svc organization list: Unknown option '--nothing'; see svc organization list --help\n",
  );
});

await test("a value that is not one of an option's words is wrong use, whatever the verb", async () => {
  const domain = "domain create --organization x --domain a.example --environment";
  const member = "organization member add --organization x --user 0x12 --role";
  for (const verb of [
    domain,
    member,
    "issuer create --name x --environment",
    "business list --status",
  ]) {
    const { status, err } = await call([...verb.split(" "), "bogus"]);
    assert.equal(status, 2);
    assert.match(err, /: --\w+ must be one of \w+, /);
  }
});

await test("the level of the log is listed as the service would have it", async () => {
  const { out } = await call(["settings", "--json"], { LOG_LEVEL: "debug" });
  const rows = JSON.parse(out) as { setting: string; value: unknown }[];
  assert.equal(rows.find((row) => row.setting === "LOG_LEVEL")?.value, "debug");
});

await test("coin of the embedded chain is given out in whole coins, to an address", async () => {
  const address = "0x7a22f5c1e0b9d8a7c6b5a493827160f5e4d31c13";
  const given = ["chain", "fund", address, "--json", "--coins"];
  assert.equal((await call([...given, "0"])).status, 2);
  assert.equal((await call(["chain", "fund", "0x12", "--coins", "1"])).status, 2);
  const { out, err } = await call([...given, "2"]);
  assert.deepEqual([err, out], ["", `${JSON.stringify({ address, coins: 2 })}\n`]);
  await using db = openDb({ connectionString: database.url, connections: 1 });
  const [entry] = await db.query({
    name: "",
    text: "select subject, details from audit_entry where action = 'chain.fund'",
    values: [],
  });
  assert.deepEqual(entry, { subject: address, details: { amountWei: "2000000000000000000" } });
  assert.deepEqual(await call([...given, "999999999"]), {
    status: 1,
    out: "",
    err: "svc chain fund: the faucet has only 999999998 coins left\n",
  });
  const elsewhere = { CHAIN_RPC_URL: "http://127.0.0.1:9" };
  assert.match(
    (await call([...given, "2"], elsewhere)).err,
    /only the embedded chain has a faucet/,
  );
});

/** Runs the program as a process whose standard output is closed at once. */
async function callUnread(...args: string[]): Promise<[err: string, status: number | null]> {
  const main = join(import.meta.dirname, "../main.ts");
  const child = spawn(process.execPath, ["--conditions=source", main, ...args], {
    env: { ...process.env, ...environment },
    stdio: ["ignore", "pipe", "pipe"],
  });
  const exit = new Promise<number | null>((resolve) => child.once("close", resolve));
  child.stdout.destroy();
  return [await text(child.stderr), await exit];
}

await test("a closed pipe does not interrupt a verb", async () => {
  assert.deepEqual(await callUnread("--help"), ["", 0]);
});

async function idOf(...args: string[]): Promise<string> {
  return (JSON.parse((await call([...args, "--json"])).out) as { id: string }).id;
}

await test("a secret that is shown only once is not lost silently: a closed pipe is one line and status 1", async () => {
  const organization = await idOf("organization", "create", "--name", "Unread");
  const place = ["--organization", organization, "--environment", "sandbox"];
  const domain = await idOf("domain", "create", "--domain", "localhost", ...place);
  const lost = "svc: what was done stands, but its result cannot be written (EPIPE)\n";
  const key = ["api-key", "create", "--domain", domain, "--name", "unread"];
  assert.deepEqual(await callUnread(...key), [lost, 1]);
});

await test("a purchase beyond the balance says how much is needed and how much is available", async () => {
  const organization = await idOf("organization", "create", "--name", "Short of money");
  const place = ["--organization", organization, "--environment", "sandbox"];
  const domain = await idOf("domain", "create", "--domain", "localhost", ...place);
  const asked = ["--domain", domain, "--name", "Age", "--transfers", "10", "--chf", "7.50"];
  assert.deepEqual(await call(["package", "buy", ...asked]), {
    status: 1,
    out: "",
    err: "svc package buy: insufficient_credit: the balance is too low (requiredChf 7.5, availableChf 0)\n",
  });
});
