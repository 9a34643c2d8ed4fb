// Canaries: values that must be found nowhere but sealed, and after the purge nowhere at all.
import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { createServer } from "node:http";
import { once } from "node:events";
import type { AddressInfo } from "node:net";
import { after, before, test } from "node:test";
import { type Address, commitmentOf, decodeInfos, type FieldName, leafOf } from "@svc/protocol";
import { getBuiltInIssuer, issueCredential } from "../../service/src/credentials/index.ts";
import { purgeBodies } from "../../service/src/webhooks/retention.ts";
import { approve, type KycWorld, openKycWorld, type Person } from "../kyc-world.ts";
import { newIdentity, openWalletSession } from "../raw-wallet.ts";

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
let person: Person;
let receiver: { url: string; bodies: string[]; close(): void };
before(async () => {
  world = await openKycWorld({ LOG_LEVEL: "silent" });
  const bodies: string[] = [];
  const server = createServer((request, response) => {
    let text = "";
    request.on("data", (chunk: Buffer) => (text += chunk.toString()));
    request.on("end", () => {
      bodies.push(text);
      response.end("ok");
    });
  }).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { port } = server.address() as AddressInfo;
  receiver = { url: `http://localhost:${port}/hook`, bodies, close: () => server.close() };
  person = await plant();
});
after(async () => {
  receiver.close();
  await world[Symbol.asyncDispose]();
});

async function plant(): Promise<Person> {
  const { ctx } = world;
  const identity = newIdentity();
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  for (const [document, names] of Object.entries(documents))
    await issueCredential(ctx, issuer, {
      user: identity.address,
      document,
      fields: names.map((field) => ({ field, data: valueOf(field) })),
      expiresAt: ctx.clock.now() + 3 * 365 * 86_400,
    });
  const headers = await openWalletSession(world.baseUrl, identity);
  const answer = await fetch(`${world.baseUrl}/w/credentials?limit=20`, { headers });
  const { items } = (await answer.json()) as {
    items: {
      id: string;
      fields: { field: FieldName; data: string; pepper: `0x${string}`; expiresAt: number }[];
    }[];
  };
  const held = items.flatMap(({ id, fields: given }) =>
    given.map(({ field, data, pepper, expiresAt }) => {
      const commitment = commitmentOf({ data, pepper });
      const leaf = leafOf({ user: identity.address, field, commitment, expiresAt });
      return { field, data, pepper, leaf, credentialId: id };
    }),
  );
  for (const { id } of items) {
    const url = `${world.baseUrl}/w/credentials/${id}/collected`;
    assert.equal((await fetch(url, { method: "POST", headers })).status, 204);
  }
  return { ...identity, held };
}

/** Every row of every table, as text. */
async function dump(): Promise<string> {
  const { db } = world.ctx;
  const tables = await db.query<{ name: string }>({
    name: "",
    text: "select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'",
    values: [],
  });
  const parts: string[] = [];
  for (const { name } of tables) {
    const text = `select coalesce(string_agg(t::text, E'\\n'), '') as rows from "${name}" as t`;
    const [row] = await db.query<{ rows: string }>({ name: "", text, values: [] });
    parts.push(`${name}\n${row?.rows ?? ""}`);
  }
  return parts.join("\n");
}

/** Calldata and logs of every block. */
async function chainText(): Promise<string> {
  const { node } = world.ctx.chain;
  const head = Number(await node.request("eth_blockNumber"));
  const parts: unknown[] = [];
  for (let number = 0; number <= head; number++)
    parts.push(await node.request("eth_getBlockByNumber", [`0x${number.toString(16)}`, true]));
  parts.push(await node.request("eth_getLogs", [{ fromBlock: "0x0", toBlock: "latest" }]));
  return JSON.stringify(parts);
}

/** The forms in which a value might lie about. */
function formsOf(value: string): string[] {
  const bytes = Buffer.from(value);
  return [
    value,
    bytes.toString("hex"),
    bytes.toString("base64").replace(/=+$/, "").slice(0, -1),
    encodeURIComponent(value),
  ];
}

async function assertNowhere(when: string): Promise<void> {
  const places = {
    database: await dump(),
    chain: await chainText(),
    metrics: await (await fetch(world.service.metricsUrl)).text(),
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
  // They count as soon as they are attested.
  while (answer.body.error?.message === "unverified fields") answer = await world.ask(request);
  assert.equal(answer.status, 200, JSON.stringify(answer.body.error));
  const approved = await approve(person, answer.body.data?.["link"], { fields: asked });
  assert.equal(approved.status, 200, await approved.text());
  const referenceKey = String(answer.body.data?.["referenceKey"]);
  await world.reach(referenceKey, "CONFIRMED");
  while (!receiver.bodies.some((body) => body.includes("CONFIRMED"))) await nextTurn();
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
  await assertNowhere("before the purge");
  await world.advance(86_400 + 120);
  await purgeBodies(world.ctx);
  await assertNowhere("after the purge");
  const resend = await world.call("GET", `/api/v2/kyc/events?referenceKey=${referenceKey}`);
  const items = resend.body.data?.["items"] as { event: string; body?: string; eventId: string }[];
  const tombstone = items.find(({ event }) => event === "data.transferred");
  assert.equal(tombstone?.body, undefined);
  const again = await world.call("POST", "/api/v2/kyc/redeliver", {
    body: { referenceKey, eventId: tombstone?.eventId },
  });
  assert.deepEqual([again.status, again.body.error?.reason], [410, "payload_expired"]);
});

async function nextTurn(): Promise<void> {
  await new Promise((resolve) => setTimeout(resolve, 20));
}

test("without its pepper a date of birth is not found by trying all of them", async () => {
  const text = await dump();
  const born = world.person.held.find(({ field }) => field === "IDCARD_DOB");
  assert.ok(born !== undefined);
  const user: Address = world.person.address;
  assert.ok(text.includes(born.leaf.slice(2)), "the leaf itself is kept");
  const pepper = `0x${"00".repeat(32)}` as const;
  const guesses = Array.from({ length: 366 * 60 }, (_, day) => {
    const data = new Date(Date.UTC(1950, 0, 1 + day)).toISOString().slice(0, 10);
    return [
      commitmentOf({ data, pepper }).slice(2),
      createHash("sha256").update(data).digest("hex"),
    ];
  });
  const found = guesses.flat().filter((guess) => text.includes(guess));
  assert.deepEqual(found, [], user);
});
