// The record of a business, from its issuer's call to its revocation; a leaf of it is proved by viem and the library of
// OpenZeppelin alone.
import assert from "node:assert/strict";
import { test } from "node:test";
import { SimpleMerkleTree } from "@openzeppelin/merkle-tree";
import {
  type Address,
  createPublicClient,
  custom,
  encodeAbiParameters,
  type Hex,
  keccak256,
  parseAbi,
  parseAbiParameters,
  stringToHex,
} from "viem";
import { setEntitlement } from "../../service/src/accounts/index.ts";
import {
  createIssuer,
  createIssuerKey,
  listCompanyFields,
  proveCompanyLeaves,
} from "../../service/src/credentials/index.ts";
import { setBusinessVerified } from "../../service/src/kyb/index.ts";
import { noteCompanyRecord } from "../../service/src/kyb/business/company-standing.ts";
import { dumpDatabase } from "../../service/src/credentials/test-credentials-store.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openKybWorld } from "../kyb-world.ts";

await using world = await openKybWorld({ members: ["alice", "bob"], isVerified: false });
const { ctx } = world;
const business = world.business.address;
const issuer = await createIssuer(
  ctx,
  { name: "Example Register AG", environment: "live" },
  "test",
);
const { key } = await createIssuerKey(ctx, { issuerId: issuer.id, name: "backend" }, "test");

const fields = [
  { field: "BUSINESS_LEGAL_NAME", data: "Canary Holding 4417 AG" },
  { field: "BUSINESS_REGISTERED_CAPITAL", data: "100000.00 CHF" },
  { field: "BUSINESS_WEBSITE", data: "https://canary-4417.example/" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1", data: "Canary Muster 4417" },
  { field: "BUSINESS_DIRECTOR_DOB", subject: "director-1", data: "1970-05" },
];
const companies = "/api/v1/issuer/companies";
const readOne = async (id: string) => world.call("GET", `${companies}/${id}`, { apiKey: key });
const liveFields = async () =>
  listCompanyFields(ctx, ctx.db, {
    environment: "live",
    business,
    names: ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"],
    now: ctx.clock.now(),
  });
const isVerified = async (): Promise<unknown> =>
  (await world.call("GET", `/api/v1/kyb/status/${business}`)).body["verified"];

const reader = createPublicClient({
  transport: custom({
    request: async ({ method, params }: { method: string; params?: unknown[] }) =>
      ctx.chain.node.request(method, params ?? []),
  }),
});
const isLive = async (by: Address, root: Hex): Promise<boolean> =>
  reader.readContract({
    address: ctx.chain.contracts.registry,
    abi: parseAbi(["function isLive(address issuer, bytes32 root) view returns (bool)"]),
    functionName: "isLive",
    args: [by, root],
  });

/** The leaf, written after section 4 of the decisions alone; a person's field names its subject. */
function leafOf(given: {
  name: string;
  subject: string;
  data: string;
  pepper: Hex;
  end: number;
}): Hex {
  const typeHash = keccak256(
    stringToHex("Leaf(address user,bytes32 field,bytes32 commitment,uint64 expiresAt)"),
  );
  const field = given.subject === "" ? given.name : `${given.name}/${given.subject}`;
  const commitment = keccak256(
    encodeAbiParameters(parseAbiParameters("bytes32, bytes32"), [
      keccak256(stringToHex(given.data)),
      given.pepper,
    ]),
  );
  const words = encodeAbiParameters(
    parseAbiParameters("bytes32, address, bytes32, bytes32, uint64"),
    [typeHash, business, keccak256(stringToHex(field)), commitment, BigInt(given.end)],
  );
  return keccak256(keccak256(words));
}

await test("nobody vouches for a business before it has a record", async () => {
  assert.equal(await isVerified(), false);
  assert.deepEqual(await liveFields(), []);
});

const made = await world.call("POST", companies, {
  apiKey: key,
  headers: { "idempotency-key": "record-1" },
  body: { business, fields, expiresAt: ctx.clock.now() + 365 * 86_400 },
});
const id = String(made.body["id"]);
const root = made.body["root"] as Hex;

await test("an issuer's record is anchored, and from then on its fields are there", async () => {
  assert.equal(made.status, 201);
  await world.until("the record is live", async () =>
    (await readOne(id)).body["status"] === "live" ? true : null,
  );
  assert.equal(await isVerified(), true);
  assert.equal(await isLive(issuer.address, root), true);
  const found = await liveFields();
  assert.deepEqual(
    found.map(({ name, subject, value, provenance }) => [name, subject, value, provenance]),
    [
      ["BUSINESS_DIRECTOR_NAME", "director-1", "Canary Muster 4417", "Example Register AG"],
      ["BUSINESS_LEGAL_NAME", "", "Canary Holding 4417 AG", "Example Register AG"],
    ],
  );
});

await test("a record is issued once for one Idempotency-Key, and what cannot be one is refused by name", async () => {
  const expiresAt = Number(made.body["expiresAt"]);
  const body = { business, fields, expiresAt };
  const issue = async (changed: object, idempotencyKey: string, apiKey: string | null = key) => {
    const headers = { "idempotency-key": idempotencyKey };
    const answer = await world.call("POST", companies, {
      apiKey,
      headers,
      body: { ...body, ...changed },
    });
    return [answer.status, answer.body.error?.reason ?? answer.body["id"]];
  };
  assert.deepEqual(await issue({}, "record-1"), [200, id]);
  const conflict = [409, "idempotency_key_conflict"];
  assert.deepEqual(await issue({ fields: fields.slice(1) }, "record-1"), conflict);
  const [name, , , director] = fields;
  const invalid: object[] = [
    { business: "nobody" },
    { fields: [] },
    { fields: [name, name] },
    { fields: [{ field: "IDCARD_DOB", data: "1970-05-01" }] },
    { fields: [{ ...name, subject: "director-1" }] },
    { fields: [{ ...director, subject: undefined }] },
    { fields: [{ ...director, subject: "Anna Muster" }] },
    { expiresAt: ctx.clock.now() },
    { expiresAt: ctx.clock.now() + 21 * 366 * 86_400 },
    { asOf: ctx.clock.now() + 3600 },
  ];
  for (const [at, changed] of invalid.entries())
    assert.deepEqual(
      await issue(changed, `wrong-${at}`),
      [400, "invalid_request"],
      JSON.stringify(changed),
    );
  const unknown = { business: `0x${"12".repeat(20)}` };
  assert.deepEqual(await issue(unknown, "unknown"), [404, "business_not_found"]);
  assert.deepEqual(await issue({}, "no-key", null), [401, "apikey_missing"]);
  assert.deepEqual(await issue({}, "merchant", world.apiKey), [401, "apikey_invalid"]);
});

await test("a record is its issuer's alone", async () => {
  const given = { name: "Other Register AG", environment: "live" } as const;
  const { id: issuerId } = await createIssuer(ctx, given, "test");
  const { key: apiKey } = await createIssuerKey(ctx, { issuerId, name: "backend" }, "test");
  for (const named of [id, "nothing", "019aa000-0000-7000-8000-000000000000"]) {
    const asked = named === id ? { apiKey } : { apiKey: key };
    const read = await world.call("GET", `${companies}/${named}`, asked);
    assert.deepEqual([read.status, read.body.error?.reason], [404, "credential_not_found"]);
    const revoke = `${companies}/${named}/revoke`;
    const ended = await world.call("POST", revoke, { ...asked, body: {} });
    assert.deepEqual([ended.status, ended.body.error?.reason], [404, "credential_not_found"]);
  }
  const { body } = await world.call("GET", companies, { apiKey });
  assert.deepEqual(body["items"], []);
  assert.equal((await readOne(id)).body["status"], "live");
});

await test("every leaf is proved against the registry, and for another subject, business or value the proof fails", async () => {
  const found = await liveFields();
  const leaves = found.map(({ leaf }) => leaf);
  const proofs = await proveCompanyLeaves(ctx, { business, environment: "live", leaves });
  assert.equal(proofs.length, found.length);
  for (const { name, subject, value: data, pepper, expiresAt: end } of found) {
    const proof = proofs.find((each) => each.name === name && each.subject === subject);
    assert.ok(proof);
    const verify = (leaf: Hex): boolean =>
      SimpleMerkleTree.verify(proof.root, leaf, [...proof.proof]);
    const opening = { name, subject, data, pepper, end };
    assert.ok(verify(leafOf(opening)), name);
    assert.ok(await isLive(proof.issuer, proof.root));
    const receipt = await reader.getTransactionReceipt({ hash: proof.transactionHash });
    assert.equal(receipt.status, "success");
    const others = [
      { ...opening, subject: "director-2" },
      { ...opening, data: `${data} ` },
      { ...opening, end: end + 1 },
    ];
    for (const other of others) assert.ok(!verify(leafOf(other)), name);
  }
});

await test("the routes of users answer for the business as for an identity without credentials", async () => {
  const path = `/api/v1/blockchain/verified?user=${business}&items=EMAIL`;
  const { body } = await world.call("GET", path);
  assert.deepEqual(body["data"], { unVerifiedItems: ["EMAIL"] });
});

await test("nowhere in the database, and nowhere on chain, stands a value in the clear", async () => {
  const texts = [await dumpDatabase(ctx.db)];
  const latest = await reader.getBlockNumber();
  for (let number = 0n; number <= latest; number += 1n) {
    const block = await reader.getBlock({ blockNumber: number, includeTransactions: true });
    texts.push(...block.transactions.map(({ input }) => input));
  }
  const all = texts.join("\n").toLowerCase();
  assert.ok(all.includes(root.slice(2)));
  for (const text of ["canary", "100000.00 chf", "1970-05"]) {
    assert.ok(!all.includes(text), text);
    assert.ok(!all.includes(Buffer.from(text).toString("hex")), text);
  }
  assert.ok(!all.includes(Buffer.from("Canary").toString("hex")));
});

const validOf = async (claims: readonly object[], of: string = business, headers = {}) =>
  world.call("POST", "/api/v1/kyb/valid", {
    headers,
    body: { businessWalletAddress: of, fields: claims },
  });
const claimsOf = async () =>
  (await liveFields()).map(({ name, subject, leaf: hash }) => ({ name, subject, hash }));
const released = await claimsOf();
const unknown = released.map(({ name, subject }) => ({ name, subject, reason: "UNKNOWN" }));

await test("whoever the business released nothing to learns nothing of its leaves", async () => {
  const { status, body, headers } = await validOf(released);
  assert.equal(status, 200);
  assert.deepEqual(body, { valid: [], invalid: unknown });
  assert.equal(headers.get("cache-control"), "no-store");
});

await test("a check takes an Idempotency-Key like any other call", async () => {
  const first = await validOf(released, business, { "idempotency-key": "valid-1" });
  const again = await validOf(released, business, { "idempotency-key": "valid-1" });
  assert.deepEqual([first.status, again.status, again.body], [200, 200, first.body]);
  const other = await validOf(released.slice(1), business, { "idempotency-key": "valid-1" });
  assert.deepEqual([other.status, other.body.error?.reason], [409, "idempotency_key_conflict"]);
  const wrong = await validOf(released, business, { "idempotency-key": "a b" });
  assert.deepEqual([wrong.status, wrong.body.error?.reason], [400, "malformed_request"]);
});

await test("after a release its leaves are valid, others are unknown", async () => {
  await ctx.db.query(
    sql`insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, fields,
        quoted_rappen, status, sequence, created_at, expires_at, ended_at)
      values ('request', ${world.clientDomainId}, ${world.organizationId}, 'live', ${business}, 'Opening an account', '[]',
        100, 'released', 1, 0, 0, 0)`,
  );
  await ctx.db.query(
    sql`insert into kyb_charge (id, organization_id, environment, client_domain_id, request_id, business, amount_rappen,
        lines, created_at)
      values ('charge', ${world.organizationId}, 'live', ${world.clientDomainId}, 'request', ${business}, 100, '[]', 0)`,
  );
  const [director] = released;
  assert.ok(director);
  const { name, hash } = director;
  const upper = { ...director, hash: `0x${hash.slice(2).toUpperCase()}` };
  const strange = { name, subject: "director-2", hash };
  const { body } = await validOf([upper, strange, ...released.slice(1)]);
  assert.deepEqual(body, {
    valid: released.map((each) => ({ name: each.name, subject: each.subject })),
    invalid: [{ name, subject: "director-2", reason: "UNKNOWN" }],
  });
  const other = await validOf(released, `0x${"12".repeat(20)}`);
  assert.deepEqual(other.body, { valid: [], invalid: unknown });
});

await test("eight hundred leaves are checked at once, and no more", async () => {
  const [claim] = released;
  const longest = { ...claim, subject: "s".repeat(40) };
  const many = Array.from({ length: 801 }, () => longest);
  assert.equal((await validOf(many.slice(1))).status, 200);
  const { status, body } = await validOf(many);
  assert.deepEqual([status, body.error?.reason], [400, "malformed_request"]);
});

await test("a check under a key that was used before says what holds now, and no answer is kept", async () => {
  const { body } = await validOf(released, business, { "idempotency-key": "valid-1" });
  assert.deepEqual(body["invalid"], []);
  const kept = sql`select from kyb_idempotency where key = 'valid-1' and answer_sealed is not null`;
  assert.deepEqual(await ctx.db.query(kept), []);
});

await test("what is no leaf, no field or no business is refused; so is a caller without the entitlement", async () => {
  const [claim] = released;
  const wrong = [
    validOf([{ ...claim, hash: "0x12" }]),
    validOf([{ ...claim, value: "Canary" }]),
    validOf([]),
    validOf(released, "nobody"),
  ];
  for (const { status, body } of await Promise.all(wrong))
    assert.deepEqual([status, body.error?.reason], [400, "malformed_request"]);
  const { status, body } = await validOf([...released, { ...claim, name: "IDCARD_DOB" }]);
  const { reason, details } = body.error ?? {};
  assert.deepEqual([status, reason, details], [422, "unknown_field", { fields: ["IDCARD_DOB"] }]);
  const cut = await validOf([{ ...claim, [`${"a".repeat(89)}\u{1f600}`]: 1 }]);
  assert.match(
    cut.body.error?.message ?? "",
    /^malformed_request: fields\[0\]\.a{89}\ufffd is unknown/,
  );
  const { organizationId } = world;
  const entitlement = "kyb:data-request";
  await setEntitlement(ctx, { organizationId, entitlement, isGranted: false }, "test");
  const refused = await world.until("the entitlement is gone", async () => {
    const answer = await validOf(released);
    return answer.status === 200 ? null : answer;
  });
  assert.deepEqual([refused.status, refused.body.error?.reason], [403, "kyb_not_entitled"]);
  await setEntitlement(ctx, { organizationId, entitlement, isGranted: true }, "test");
  await world.until("it is back", async () =>
    (await validOf(released)).status === 200 ? true : null,
  );
});

await test("a revoked record is gone at once, its business verified no longer; the chain follows", async () => {
  const stopping = ctx.db.transaction(async (tx) => {
    const record = { business, environment: "live", isVouchedFor: false } as const;
    await noteCompanyRecord(ctx, tx, record);
    const rows = await tx.query(
      sql`select stop_reason as reason from business where address = ${business}`,
    );
    assert.deepEqual(rows, [{ reason: "business_not_verified" }], "what is asked of it ends");
    throw new Error("for the revocation to do");
  });
  await assert.rejects(stopping, /for the revocation to do/);
  const revoked = await world.call("POST", `${companies}/${id}/revoke`, { apiKey: key, body: {} });
  assert.deepEqual([revoked.status, revoked.body["status"]], [200, "revoked"]);
  assert.deepEqual(await liveFields(), []);
  assert.equal(await isVerified(), false);
  const { body } = await validOf(released);
  const invalid = unknown.map(({ name, subject }) => ({ name, subject, reason: "REVOKED" }));
  assert.deepEqual(body, { valid: [], invalid });
  await world.until("the chain follows", async () =>
    (await isLive(issuer.address, root)) ? null : true,
  );
});

const stands = async (address: Address): Promise<unknown> =>
  (await world.call("GET", `/api/v1/kyb/status/${address}`)).body["verified"];
const issueFor = async (address: Address, field: string, data: string): Promise<string> => {
  const expiresAt = ctx.clock.now() + 86_400;
  const body = { business: address, fields: [{ field, data }], expiresAt };
  const { status, body: issued } = await world.call("POST", companies, { apiKey: key, body });
  assert.equal(status, 201);
  return String(issued["id"]);
};
const revoke = async (credentialId: string): Promise<void> => {
  const path = `${companies}/${credentialId}/revoke`;
  assert.ok((await world.call("POST", path, { apiKey: key })).status < 300);
};

await test("the operator's word for a business outlives the records of issuers, and so does its withdrawal", async () => {
  const { address } = await world.found({ members: ["alice"], isVerified: false });
  const say = async (verified: boolean) =>
    setBusinessVerified(ctx, { address, isVerified: verified }, "test");
  const first = await issueFor(address, "BUSINESS_LEGAL_NAME", "Muster AG");
  await say(true);
  await revoke(first);
  assert.equal(await stands(address), true);
  await say(false);
  const second = await issueFor(address, "BUSINESS_WEBSITE", "https://muster.example/");
  assert.equal(await stands(address), false);
  await say(true);
  await revoke(second);
  assert.equal(await stands(address), true);
});

await test("where the operator says nothing any more, the records of issuers count again", async () => {
  const { address } = await world.found({ members: ["carl"] });
  const say = async (word: boolean | null) =>
    setBusinessVerified(ctx, { address, isVerified: word }, "test");
  await say(null);
  assert.equal(await stands(address), false, "no record vouches for it");
  await say(false);
  const record = await issueFor(address, "BUSINESS_LEGAL_NAME", "Muster AG");
  assert.equal(await stands(address), false);
  await say(null);
  assert.equal(await stands(address), true);
  await revoke(record);
  assert.equal(await stands(address), false);
  await issueFor(address, "BUSINESS_LEGAL_NAME", "Muster AG");
  assert.equal(await stands(address), true);
});

await test("the end of a record that never vouched for a business takes nothing from it", async () => {
  const { address } = await world.found({ members: ["bob"] });
  // As in rows of businesses that were vouched for before this column existed.
  await ctx.db.query(sql`update business set operator_word = null where address = ${address}`);
  const declared = await issueFor(address, "BUSINESS_DECLARED_LEGAL_NAME", "Muster AG");
  await revoke(declared);
  assert.equal(await stands(address), true);
});
