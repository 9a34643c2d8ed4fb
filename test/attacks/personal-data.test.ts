// Canaries: values that must be found nowhere but sealed, and after the purge nowhere at all. Two processes do
// everything and log at the most verbose level; the test reads their logs, metrics and tables.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type Address, commitmentOf, decodeInfos, type FieldName, leafOf } from "@svc/protocol";
import type { OpenContext } from "../../service/src/compose.ts";
import { createIssuer, createIssuerKey } from "../../service/src/credentials/index.ts";
import { advanceClock } from "../../service/src/platform/clock.ts";
import { purgeBodies } from "../../service/src/webhooks/retention.ts";
import { openContextOf } from "../embedded-chain.ts";
import { untilWritersEnd } from "../lock-waits.ts";
import { until } from "../patience.ts";
import { approve, type KycWorld, openKycWorld, type Person, scanRequest } from "../kyc-world.ts";
import { newIdentity, openWalletSession, post } from "../raw-wallet.ts";
import { freePort, type ServerProcess } from "../world.ts";

const documents = {
  IDCARD: [
    "IDCARD_NAME",
    "IDCARD_NAME_EN",
    "IDCARD_FIRST_NAME",
    "IDCARD_LAST_NAME",
    "IDCARD_BIRTH_NAME",
    "IDCARD_PLACE_OF_BIRTH",
    "IDCARD_ISSUING_AUTHORITY",
    "IDCARD_DOCUMENT_NUMBER",
    "IDCARD_PERSONAL_NUMBER",
    "IDCARD_NOTE",
  ],
  PASSPORT: [
    "PASSPORT_NAME",
    "PASSPORT_NAME_EN",
    "PASSPORT_FIRST_NAME",
    "PASSPORT_LAST_NAME",
    "PASSPORT_BIRTH_NAME",
    "PASSPORT_PLACE_OF_BIRTH",
    "PASSPORT_DOCUMENT_NUMBER",
    "PASSPORT_PERSONAL_NUMBER",
    "PASSPORT_NOTE",
  ],
  DRIVER_LICENSE: [
    "DRIVER_LICENSE_NAME",
    "DRIVER_LICENSE_NAME_EN",
    "DRIVER_LICENSE_FIRST_NAME",
    "DRIVER_LICENSE_LAST_NAME",
    "DRIVER_LICENSE_DOCUMENT_NUMBER",
  ],
  ADDRESS: [
    "ADDRESS_NAME",
    "ADDRESS_NAME_EN",
    "ADDRESS_FULL",
    "ADDRESS_HOUSE_NUMBER",
    "ADDRESS_STREET",
    "ADDRESS_STREET_EN",
    "ADDRESS_STREET2",
    "ADDRESS_STREET2_EN",
    "ADDRESS_DIVISION",
    "ADDRESS_DIVISION_EN",
    "ADDRESS_CITY",
    "ADDRESS_CITY_EN",
    "ADDRESS_ZIP_CODE",
    "ADDRESS_DOCUMENT_ISSUER",
    "ADDRESS_NOTE",
  ],
  CONTACT: ["EMAIL"],
} as const;

const valueOf = (field: string): string =>
  field === "EMAIL"
    ? "canary.email@canary.example"
    : `Canary${field.replaceAll("_", "").toLowerCase()}`;
const fields = Object.values(documents).flat() as FieldName[];
const canaries = fields.map(valueOf);
const asked = fields.slice(0, 40);

let world: KycWorld;
/** The test's own context on the database of the processes. */
let ctx: OpenContext;
let person: Person;
let receiver: { url: string; bodies: string[]; close(): void };
/** All lines that the processes logged. */
const lines: string[] = [];
const metricsUrls: string[] = [];
/** The second process, beside the one at the world's address. */
let other: ServerProcess;
const opened = new AsyncDisposableStack();
before(async () => {
  world = opened.use(await openKycWorld());
  const { databaseUrl } = world.ctx.config;
  assert.ok(databaseUrl !== null);
  await world.service.close();
  ctx = opened.use(await openContextOf(databaseUrl));
  receiver = await openReceiver();
  opened.defer(() => receiver.close());
  opened.use(await startProcess(Number(new URL(world.baseUrl).port)));
  other = opened.use(await startProcess(await freePort()));
  person = await plant();
});
after(async () => opened.disposeAsync());

async function startProcess(port: number): Promise<ServerProcess> {
  const metricsPort = await freePort();
  metricsUrls.push(`http://127.0.0.1:${metricsPort}/metrics`);
  const settings = { LOG_LEVEL: "debug", METRICS_PORT: String(metricsPort) };
  return world.startProcess(settings, { port, onLine: (line) => void lines.push(line) });
}

async function openReceiver() {
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      bodies.push(text);
      // It echoes what it was sent, and fails the first delivery: neither may be logged.
      response.writeHead(bodies.length === 1 ? 500 : 200).end(text);
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  return { url: `http://localhost:${port}/hook`, bodies, close: () => void server.close() };
}

interface Listed {
  readonly id: string;
  readonly fields: readonly {
    field: FieldName;
    data: string;
    pepper: `0x${string}`;
    expiresAt: number;
  }[];
}

/** Has an issuer say who somebody is, and collects it into a wallet. */
async function plant(): Promise<Person> {
  const identity = newIdentity();
  const issuer = await createIssuer(ctx, { name: "Ident AG", environment: "live" }, "test");
  const { key } = await createIssuerKey(ctx, { issuerId: issuer.id, name: "backend" }, "test");
  const expiresAt = ctx.clock.now() + 3 * 365 * 86_400;
  for (const [document, names] of Object.entries(documents)) {
    const answer = await fetch(`${other.url}/api/v1/issuer/credentials`, {
      method: "POST",
      headers: {
        authorization: key,
        "content-type": "application/json",
        "idempotency-key": document,
      },
      body: JSON.stringify({
        user: identity.address,
        document,
        fields: names.map((field) => ({ field, data: valueOf(field) })),
        expiresAt,
      }),
    });
    assert.equal(answer.status, 201, await answer.text());
  }
  const headers = await openWalletSession(world.baseUrl, identity);
  const answer = await fetch(`${world.baseUrl}/w/credentials?limit=20`, { headers });
  const { items } = (await answer.json()) as { items: readonly Listed[] };
  const held = items.flatMap(({ id, fields: given }) =>
    given.map(({ field, data, pepper, expiresAt: end }) => {
      const commitment = commitmentOf({ data, pepper });
      const leaf = leafOf({ user: identity.address, field, commitment, expiresAt: end });
      return { field, data, pepper, expiresAt: end, leaf, credentialId: id };
    }),
  );
  for (const { id } of items) {
    const url = `${world.baseUrl}/w/credentials/${id}/collected`;
    assert.equal((await fetch(url, { method: "POST", headers })).status, 204);
  }
  return { ...identity, held };
}

/** Sends values where they do not belong: refused input must not be written down either. */
async function misplaceValues(connection: string): Promise<void> {
  const [value = "", another = ""] = canaries;
  const headers = { authorization: world.apiKey, "content-type": "application/json" };
  const wrong: [string, RequestInit][] = [
    [`/api/v2/kyc/status?referenceKey=${value}`, { headers }],
    [`/api/v1/blockchain/verified?user=${value}&items=${another}`, { headers }],
    [`/${value}/${another}?name=${value}`, {}],
    [`/w/o/${value}`, { headers: { authorization: `Bearer ${another}`, "user-agent": value } }],
    ["/api/v1/blockchain/valid", { method: "POST", headers, body: `{"infos":"${value}` }],
    ["/api/v1/blockchain/valid", { method: "POST", headers, body: JSON.stringify({ [value]: 1 }) }],
    [
      "/api/v2/kyc/qrcode",
      { method: "POST", headers, body: JSON.stringify({ callback: `http://${value}.example/` }) },
    ],
  ];
  for (const baseUrl of [world.baseUrl, other.url])
    for (const [path, init] of wrong) {
      const { status } = await fetch(`${baseUrl}${path}`, init);
      assert.ok(status >= 400 && status < 500, path);
    }
  const infos = Buffer.from(JSON.stringify([{ field: "EMAIL", data: value, pepper: another }]));
  const unsigned = { svcID: person.address, id: value, infos: infos.toString("base64") };
  assert.ok(
    (await post(connection, { ...unsigned, signature: `0x${"11".repeat(65)}` })).status >= 400,
  );
}

/** The search would prove nothing if these were empty. */
const mustHaveRows: ReadonlySet<string> = new Set(
  "audit_entry credential_leaf kyc_order webhook_event webhook_attempt embedded_transaction".split(
    " ",
  ),
);

/** The rows of issuer_idempotency live for a day. */
const mustHaveRowsAtFirst = mustHaveRows.union(new Set(["issuer_idempotency"]));

/** Every row of every table, as text. */
async function dump(filled = mustHaveRows): Promise<string> {
  const { db } = ctx;
  const tables = await db.query<{ name: string }>({
    name: "",
    text: "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    values: [],
  });
  const parts: string[] = [];
  for (const { name } of tables) {
    const text = `select coalesce(string_agg(t::text, E'\\n'), '') as rows from "${name}" as t`;
    const [row] = await db.query<{ rows: string }>({ name: "", text, values: [] });
    if (filled.has(name)) assert.notEqual(row?.rows, "", `${name} has no rows`);
    parts.push(`${name}\n${row?.rows ?? ""}`);
  }
  return parts.join("\n");
}

async function askChain(method: string, params: readonly unknown[] = []): Promise<unknown> {
  const answer = await post(`${world.baseUrl}/w/chain`, { jsonrpc: "2.0", id: 1, method, params });
  return ((await answer.json()) as { result: unknown }).result;
}

/** Calldata and logs of every block. */
async function chainText(): Promise<string> {
  const head = Number(await askChain("eth_blockNumber"));
  const parts: unknown[] = [];
  for (let number = 0; number <= head; number++)
    parts.push(await askChain("eth_getBlockByNumber", [`0x${number.toString(16)}`, true]));
  parts.push(await askChain("eth_getLogs", [{ fromBlock: "0x0", toBlock: "latest" }]));
  return JSON.stringify(parts);
}

async function metricsText(): Promise<string> {
  const texts = await Promise.all(metricsUrls.map(async (url) => (await fetch(url)).text()));
  for (const text of texts) assert.match(text, /route="\/api\/v2\/kyc\/status"/);
  return texts.join("\n");
}

/** The encodings in which a value might leak. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  return [
    value,
    bytes.toString("hex"),
    bytes.toString("base64").replace(/=+$/, "").slice(0, -1),
    encodeURIComponent(value),
  ];
}

async function assertNowhere(when: string, filled = mustHaveRows): Promise<void> {
  const places = {
    database: await dump(filled),
    chain: await chainText(),
    metrics: await metricsText(),
    logs: lines.join("\n"),
  };
  for (const [place, text] of Object.entries(places)) {
    const found = canaries.filter((value) => formsOf(value).some((form) => text.includes(form)));
    assert.deepEqual(found, [], `${place} ${when}`);
  }
}

test("forty values travel through an order and lie nowhere in the open, before the purge and after", async () => {
  assert.equal(asked.length, 40);
  const request = { user: person.address, callback: receiver.url, fields: asked };
  let answer = await world.ask(request);
  // The fields can be asked for as soon as the chain has attested them.
  while (answer.body.error?.message === "unverified fields") answer = await world.ask(request);
  assert.equal(answer.status, 200, JSON.stringify(answer.body.error));
  await misplaceValues(scanRequest(answer.body.data?.["link"]).connection);
  const approved = await approve(person, answer.body.data?.["link"], { fields: asked });
  assert.equal(approved.status, 200, await approved.text());
  const referenceKey = String(answer.body.data?.["referenceKey"]);
  await world.reach(referenceKey, "CONFIRMED");
  await until("the receiver is told of the end", async () => {
    // The failed delivery is retried after a few seconds.
    await advance(31);
    return receiver.bodies.some((body) => body.includes("CONFIRMED")) || null;
  });
  const transferred = receiver.bodies.find((body) => body.includes("data.transferred"));
  const { data } = JSON.parse(transferred ?? "{}") as { data: { infos: string } };
  const infos = decodeInfos(data.infos);
  assert.ok(!("fault" in infos));
  assert.deepEqual(
    infos.map(({ data: value }) => value).toSorted(),
    asked.map(valueOf).toSorted(),
    "the receiver has them",
  );
  const checked = await world.call("POST", "/api/v1/blockchain/valid", {
    body: { user: person.address, infos },
  });
  const { valids } = (checked.body.data ?? {}) as { valids?: string[] };
  assert.equal(valids?.length, 40);
  await assertNowhere("before the purge", mustHaveRowsAtFirst);
  await advance(86_400 + 120);
  await purgeBodies(ctx);
  await untilWritersEnd(ctx.db);
  await assertNowhere("after the purge");
  const resend = await world.call("GET", `/api/v2/kyc/events?referenceKey=${referenceKey}`);
  const items = resend.body.data?.["items"] as { event: string; body?: string; eventId: string }[];
  const tombstone = items.find(({ event }) => event === "data.transferred");
  assert.equal(tombstone?.body, undefined);
  const again = await world.call("POST", "/api/v2/kyc/redeliver", {
    body: { referenceKey, eventId: tombstone?.eventId },
  });
  assert.deepEqual([again.status, again.body.error?.reason], [410, "payload_expired"]);
  const requests = lines.filter((line) => line.includes('"route":"/api/v1/blockchain/valid"'));
  const pids = new Set(requests.map((line) => /"pid":(\d+)/.exec(line)?.[1]));
  assert.equal(pids.size, 2, "the logs of both processes were searched");
});

/** The processes follow the clock of the database. */
async function advance(seconds: number): Promise<void> {
  await advanceClock(ctx.db, seconds);
  await ctx.clock.refresh();
}

/** Every substring of 64 hexadecimal digits. */
function hashesIn(text: string): Set<string> {
  const found = new Set<string>();
  for (const [digits] of text.matchAll(/[0-9a-f]{64,}/g))
    for (let at = 0; at + 64 <= digits.length; at += 1) found.add(digits.slice(at, at + 64));
  return found;
}

test("without its pepper a date of birth is not found by trying all of them", async () => {
  const text = await dump();
  const born = world.person.held.find(({ field }) => field === "IDCARD_DOB");
  assert.ok(born !== undefined);
  const user: Address = world.person.address;
  const kept = hashesIn(text);
  assert.ok(kept.has(born.leaf.slice(2)), "the leaf itself is kept");
  const pepper = `0x${"00".repeat(32)}` as const;
  const guesses = Array.from({ length: 366 * 60 }, (_, day) => {
    const data = new Date(Date.UTC(1950, 0, 1 + day)).toISOString().slice(0, 10);
    return [
      commitmentOf({ data, pepper }).slice(2),
      createHash("sha256").update(data).digest("hex"),
    ];
  });
  const found = guesses.flat().filter((guess) => kept.has(guess));
  assert.deepEqual(found, [], user);
});
