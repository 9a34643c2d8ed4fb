import assert from "node:assert/strict";
import { test } from "node:test";
import {
  type Address,
  type BusinessFieldName,
  commitmentOf,
  leafFieldOf,
  leafOf,
  verifyMerkleProof,
} from "@svc/protocol";
import { sql } from "../platform/database/db.ts";
import { migrate } from "../platform/database/migrate.ts";
import { listOwnCredentials } from "./collection.ts";
import { endCompanyRecords, purgeCompanyValues } from "./company-ending.ts";
import {
  findCompanyNames,
  listCompanyFields,
  matchCompanyLeaves,
  proveCompanyLeaves,
} from "./company-fields.ts";
import { sampleCompanyFields } from "./company-sample.ts";
import { isSoleProprietor, listRecordsDue } from "./company-store.ts";
import { forgetUser, purgeCredentials } from "./ending.ts";
import { createIssuer, createIssuerKey, distrustIssuer } from "./issuers.ts";
import { inAYear, openTestCredentials, someBusiness, someUser } from "./test-credentials.ts";
import { dumpDatabase } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;
const issuer = await createIssuer(
  ctx,
  { name: "Example Register AG", environment: "live" },
  "test",
);
const { key } = await createIssuerKey(ctx, { issuerId: issuer.id, name: "backend" }, "test");

const url = "/api/v1/issuer/companies";
const fields = [
  { field: "BUSINESS_LEGAL_NAME", data: "Canary Holding AG" },
  { field: "BUSINESS_COMPANY_TYPE", data: "CORPORATION" },
  { field: "BUSINESS_DECLARED_LEGAL_NAME", data: "Canary" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1", data: "Canary Muster" },
  { field: "BUSINESS_DIRECTOR_NAME", subject: "director-2", data: "Canary Beispiel" },
];
const issue = async (given: object, headers: Record<string, string> = {}, as = key) =>
  world.call({ method: "POST", url, as, headers, body: { fields, expiresAt: inAYear, ...given } });
const revoke = async (id: unknown, as = key) =>
  world.call({ method: "POST", url: `${url}/${String(id)}/revoke`, as, body: {} });
const messageOf = (body: Record<string, unknown>): string =>
  String((body["error"] as Record<string, unknown>)["message"]);
const reasonOf = (body: Record<string, unknown>): unknown =>
  (body["error"] as Record<string, unknown>)["reason"];
const names: BusinessFieldName[] = ["BUSINESS_LEGAL_NAME", "BUSINESS_DIRECTOR_NAME"];
const questionOf = (business: Address, asked: readonly BusinessFieldName[] = names) => ({
  environment: "live" as const,
  business,
  names: asked,
  now: ctx.clock.now(),
});
/** Lists fields, and checks that the same names are found without values. */
async function listOf(business: Address, asked?: readonly BusinessFieldName[]) {
  const question = questionOf(business, asked);
  const listed = await listCompanyFields(ctx, ctx.db, question);
  assert.deepEqual(
    await findCompanyNames(ctx.db, question),
    new Set(listed.map(({ name }) => name)),
  );
  return listed;
}
const toldOf = (business: Address): boolean[] =>
  world.companies.filter((told) => told.business === business).map((told) => told.isVouchedFor);

await test("201: a record is issued without values in the answer, and counts once it is final", async () => {
  const business = await someBusiness(world);
  const { status, body, headers } = await issue({ business, asOf: ctx.clock.now() - 60 });
  assert.equal(status, 201);
  assert.equal(headers["cache-control"], "no-store");
  assert.equal(body["status"], "pending");
  assert.equal(body["asOf"], ctx.clock.now() - 60);
  assert.deepEqual(body["fields"], [
    { field: "BUSINESS_COMPANY_TYPE" },
    { field: "BUSINESS_DECLARED_LEGAL_NAME" },
    { field: "BUSINESS_DIRECTOR_NAME", subject: "director-1" },
    { field: "BUSINESS_DIRECTOR_NAME", subject: "director-2" },
    { field: "BUSINESS_LEGAL_NAME" },
  ]);
  assert.ok(!JSON.stringify(body).includes("Canary"));
  assert.deepEqual(toldOf(business), [true]);
  assert.deepEqual(await listOf(business), []);
  await world.settle();
  const read = await world.call({ method: "GET", url: `${url}/${String(body["id"])}`, as: key });
  assert.equal(read.body["status"], "live");
  assert.equal((await listOf(business)).length, 3);
});

await test("fields are listed with their proofs, the newest of each name and subject", async () => {
  const business = await someBusiness(world);
  await issue({ business });
  world.advance(1);
  const renamed = [{ field: "BUSINESS_LEGAL_NAME", data: "Renamed AG" }];
  const { body } = await issue({ business, fields: renamed });
  await world.settle();
  const found = await listOf(business);
  assert.deepEqual(
    found.map(({ name, subject, subjectType, value }) => [name, subject, subjectType, value]),
    [
      ["BUSINESS_DIRECTOR_NAME", "director-1", "DIRECTOR", "Canary Muster"],
      ["BUSINESS_DIRECTOR_NAME", "director-2", "DIRECTOR", "Canary Beispiel"],
      ["BUSINESS_LEGAL_NAME", "", "BUSINESS", "Renamed AG"],
    ],
  );
  for (const { name, subject, value, pepper, leaf, expiresAt, provenance, asOf } of found) {
    const commitment = commitmentOf({ data: value, pepper });
    const field = leafFieldOf({ name, subject });
    assert.equal(leaf, leafOf({ user: business, field, commitment, expiresAt }));
    assert.equal(provenance, "Example Register AG");
    assert.equal(asOf, ctx.clock.now() - (value === "Renamed AG" ? 0 : 1));
  }
  const [declared] = await listOf(business, ["BUSINESS_DECLARED_LEGAL_NAME"]);
  assert.equal(declared?.provenance, "declared");
  await revoke(body["id"]);
  const [old] = await listOf(business, ["BUSINESS_LEGAL_NAME"]);
  assert.equal(old?.value, "Canary Holding AG");
});

await test("a record takes one statement to list, and one to see what there is", async () => {
  const business = await someBusiness(world);
  await issue({ business });
  await world.settle();
  const before = ctx.db.callsTotal;
  await listCompanyFields(ctx, ctx.db, questionOf(business));
  assert.equal(ctx.db.callsTotal - before, 1);
  const asked: BusinessFieldName[] = ["BUSINESS_LEGAL_NAME", "BUSINESS_LEI"];
  const available = await findCompanyNames(ctx.db, questionOf(business, asked));
  assert.deepEqual([...available], ["BUSINESS_LEGAL_NAME"]);
  assert.equal(ctx.db.callsTotal - before, 2);
});

await test("a proof leads from a leaf to the root that was attested", async () => {
  const business = await someBusiness(world);
  const { body } = await issue({ business });
  await world.settle();
  const leaves = (await listOf(business)).map(({ leaf }) => leaf);
  const proofs = await proveCompanyLeaves(ctx, { business, environment: "live", leaves });
  assert.equal(proofs.length, leaves.length);
  for (const { leaf, proof, root, issuer: by } of proofs) {
    assert.equal(root, body["root"]);
    assert.equal(by, issuer.address);
    assert.ok(verifyMerkleProof({ leaf, proof, root }));
  }
  const named = proofs.map(({ name, subject }) => `${name} ${subject}`);
  assert.deepEqual(named.toSorted()[0], "BUSINESS_DIRECTOR_NAME director-1");
  const strange = { business: await someBusiness(world), environment: "live" as const, leaves };
  assert.deepEqual(await proveCompanyLeaves(ctx, strange), []);
});

await test("a leaf is live, expired, revoked, or unknown where name, subject or business are others", async () => {
  const business = await someBusiness(world);
  const { body } = await issue({ business, expiresAt: ctx.clock.now() + 100 });
  await world.settle();
  const [director] = await listOf(business, ["BUSINESS_DIRECTOR_NAME"]);
  assert.ok(director);
  const { name, subject, leaf: hash } = director;
  const match = async (changed: object = {}, of = business, later = 0) => {
    const claims = [{ name, subject, hash, ...changed }];
    const now = ctx.clock.now() + later;
    const found = await matchCompanyLeaves(ctx.db, {
      environment: "live",
      business: of,
      claims,
      now,
    });
    return found[0];
  };
  assert.equal(await match(), "LIVE");
  assert.equal(await match({ subject: "director-2" }), "UNKNOWN");
  assert.equal(await match({ name: "BUSINESS_UBO_NAME" }), "UNKNOWN");
  assert.equal(await match({}, await someBusiness(world)), "UNKNOWN");
  assert.equal(await match({}, business, 100), "EXPIRED");
  await revoke(body["id"]);
  assert.equal(await match(), "REVOKED");
});

await test("a revoked record ends at once, and the business is no longer verified unless another record vouches for it", async () => {
  const business = await someBusiness(world);
  const first = await issue({ business });
  const second = await issue({ business });
  await world.settle();
  await revoke(first.body["id"]);
  assert.equal((await listOf(business)).length, 3);
  assert.deepEqual(toldOf(business), [true, true]);
  const { status, body } = await revoke(second.body["id"]);
  assert.deepEqual([status, body["status"]], [200, "revoked"]);
  assert.deepEqual(await listOf(business), []);
  assert.deepEqual(toldOf(business), [true, true, false]);
  assert.equal((await revoke(second.body["id"])).status, 200);
  assert.deepEqual(toldOf(business), [true, true, false]);
  assert.ok(
    !world.invalidated.some(({ user }) => user === business),
    "merchants of users hear nothing",
  );
});

await test("a record with only declared fields, or one that says that the verification is open, does not vouch", async () => {
  const business = await someBusiness(world);
  const [name] = fields;
  for (const given of [
    [{ field: "BUSINESS_DECLARED_LEGAL_NAME", data: "Canary" }],
    [name, { field: "BUSINESS_VERIFIED", data: "false" }],
    [name, { field: "BUSINESS_VERIFICATION_STATUS", data: "SUSPENDED" }],
  ])
    assert.equal((await revoke((await issue({ business, fields: given })).body["id"])).status, 200);
  assert.deepEqual(toldOf(business), []);
});

await test("an expired record and one of a distrusted issuer end by themselves, the values seven days later", async () => {
  const other = await createIssuer(ctx, { name: "Other", environment: "live" }, "test");
  const made = await createIssuerKey(ctx, { issuerId: other.id, name: "x" }, "test");
  const expiring = await someBusiness(world);
  const distrusted = await someBusiness(world);
  const staying = await someBusiness(world);
  await issue({ business: expiring, expiresAt: ctx.clock.now() + 50 });
  await issue({ business: distrusted }, {}, made.key);
  await issue({ business: staying });
  await world.settle();
  await distrustIssuer(ctx, { issuerId: other.id, from: 1 }, "test");
  world.advance(50);
  assert.deepEqual([...(await listOf(expiring)), ...(await listOf(distrusted))], []);
  await endCompanyRecords(ctx);
  await endCompanyRecords(ctx);
  assert.deepEqual(
    [toldOf(expiring), toldOf(distrusted)],
    [
      [true, false],
      [true, false],
    ],
  );
  const valuesOf = async (business: Address): Promise<number> => {
    const rows = await ctx.db.query(
      sql`select from company_field join company_record using (credential_id) where business = ${business}`,
    );
    return rows.length;
  };
  world.advance(7 * 86_400 - 1);
  await purgeCompanyValues(ctx);
  assert.deepEqual([await valuesOf(expiring), await valuesOf(distrusted)], [5, 5]);
  world.advance(1);
  await purgeCompanyValues(ctx);
  assert.deepEqual([await valuesOf(expiring), await valuesOf(distrusted)], [0, 0]);
  assert.equal((await listOf(staying)).length, 3);
});

await test("no wallet ever sees, collects, loses or forgets a record", async () => {
  const business = await someBusiness(world);
  const { body } = await issue({ business });
  await world.settle();
  const page = await listOwnCredentials(ctx, business, { before: null, limit: 10 });
  assert.deepEqual(page.items, []);
  const id = String(body["id"]);
  for (const verb of ["collected", "withdraw"]) {
    const path = `/w/credentials/${id}/${verb}`;
    const { status } = await world.call({ method: "POST", url: path, as: business, body: {} });
    assert.equal(status, 404, verb);
  }
  world.advance(31 * 86_400);
  await purgeCredentials(ctx);
  await ctx.db.transaction(async (tx) => forgetUser(tx, business, ctx.clock.now()));
  assert.equal((await listOf(business)).length, 3);
});

await test("the issuer's credentials and records are apart", async () => {
  const business = await someBusiness(world);
  const { body } = await issue({ business });
  const id = String(body["id"]);
  const credentials = "/api/v1/issuer/credentials";
  const one = await world.call({ method: "GET", url: `${credentials}/${id}`, as: key });
  assert.equal(one.status, 404);
  const revoked = {
    method: "POST",
    url: `${credentials}/${id}/revoke`,
    as: key,
    body: {},
  } as const;
  assert.equal((await world.call(revoked)).status, 404);
  const all = await world.call({ method: "GET", url: credentials, as: key });
  assert.deepEqual(all.body["items"], []);
  const mine = await world.call({ method: "GET", url: `${url}?business=${business}`, as: key });
  assert.deepEqual(
    (mine.body["items"] as { id: string }[]).map((each) => each.id),
    [id],
  );
  const paged = await world.call({ method: "GET", url: `${url}?limit=1`, as: key });
  assert.ok(typeof paged.body["nextCursor"] === "string");
});

await test("the routes of users answer for a business as for an identity without credentials", async () => {
  const business = await someBusiness(world);
  await issue({ business });
  await world.settle();
  const as = world.live.apiKey;
  const path = `/api/v1/blockchain/verified?user=${business}&items=EMAIL`;
  const { body } = await world.call({ method: "GET", url: path, as });
  assert.deepEqual(body["data"], { unVerifiedItems: ["EMAIL"] });
  const named = path.replace("EMAIL", "BUSINESS_LEGAL_NAME");
  assert.equal((await world.call({ method: "GET", url: named, as })).status, 400);
});

await test("400: what is wrong is named by its field, and its value is not quoted", async () => {
  const business = await someBusiness(world);
  const director = { field: "BUSINESS_DIRECTOR_NAME", data: "Canary" };
  const name = { field: "BUSINESS_LEGAL_NAME", data: "Canary" };
  const wrong: [object, RegExp][] = [
    [{ business: "nobody" }, /business must be an address/],
    [
      { fields: [{ field: "IDCARD_DOB", data: "1990-05-17" }] },
      /fields\[0\].field is not a business/,
    ],
    [{ fields: [director] }, /fields\[0\] BUSINESS_DIRECTOR_NAME needs a subject/],
    [{ fields: [{ ...director, subject: "Director/1" }] }, /needs a subject/],
    [{ fields: [{ ...name, subject: "x" }] }, /BUSINESS_LEGAL_NAME tells of the business/],
    [{ fields: [name, name] }, /twice for the same subject/],
    [{ fields: [{ field: "BUSINESS_LEI", data: "Canary" }] }, /BUSINESS_LEI must be an LEI/],
    [{ expiresAt: ctx.clock.now() }, /expiresAt must be/],
    [{ asOf: ctx.clock.now() + 1 }, /asOf must be/],
    [{ fields: Array.from({ length: 401 }, () => name) }, /fields/],
    [
      {
        fields: [
          {
            field: "BUSINESS_WALLET_ADDRESS",
            data: "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed",
          },
        ],
      },
      /must be the wallet of this business/,
    ],
  ];
  for (const [given, message] of wrong) {
    const { status, body } = await issue({ business, ...given });
    assert.deepEqual([status, reasonOf(body)], [400, "invalid_request"], String(message));
    assert.match(messageOf(body), message);
    assert.ok(!messageOf(body).includes("Canary"));
  }
});

await test("404: no record is issued for an unknown business, and none of another issuer is revoked", async () => {
  const sandbox = await someBusiness(world, "sandbox");
  for (const business of [someUser(), sandbox]) {
    const { status, body } = await issue({ business });
    assert.deepEqual([status, reasonOf(body)], [404, "business_not_found"]);
  }
  assert.deepEqual(toldOf(sandbox), []);
  const { body } = await issue({ business: await someBusiness(world) });
  const other = await createIssuer(ctx, { name: "Third", environment: "live" }, "test");
  const made = await createIssuerKey(ctx, { issuerId: other.id, name: "x" }, "test");
  assert.equal((await revoke(body["id"], made.key)).status, 404);
  assert.equal((await revoke("x")).status, 404);
});

await test("Idempotency-Key: the same call answers the same record, another body under it is 409", async () => {
  const business = await someBusiness(world);
  const headers = { "idempotency-key": "4711" };
  const first = await issue({ business }, headers);
  const again = await issue({ business }, headers);
  assert.deepEqual([first.status, again.status], [201, 200]);
  assert.equal(first.body["id"], again.body["id"]);
  const other = await issue({ business, asOf: 1 }, headers);
  assert.deepEqual([other.status, reasonOf(other.body)], [409, "idempotency_key_conflict"]);
  const all = await world.call({ method: "GET", url: `${url}?business=${business}`, as: key });
  assert.equal((all.body["items"] as unknown[]).length, 1);
});

await test("a sole proprietor is recognised by the type of the company", async () => {
  const [company, person] = [await someBusiness(world), await someBusiness(world)];
  await issue({ business: company });
  await issue({
    business: person,
    fields: [{ field: "BUSINESS_COMPANY_TYPE", data: "SOLE_PROPRIETOR" }],
  });
  await world.settle();
  assert.equal(await isSoleProprietor(ctx.db, questionOf(company)), false);
  assert.equal(await isSoleProprietor(ctx.db, questionOf(person)), true);
});

const typeRecord = (type: string, lifetimeSeconds = 50) => ({
  fields: [{ field: "BUSINESS_COMPANY_TYPE", data: type }],
  expiresAt: ctx.clock.now() + lifetimeSeconds,
});

/** Lets records of 50 seconds expire, and purges their values. */
async function outlive(): Promise<void> {
  world.advance(50);
  await endCompanyRecords(ctx);
  world.advance(7 * 86_400);
  await purgeCompanyValues(ctx);
}

await test("a sole proprietor stays one when its record is over, until another type is attested or the type is revoked", async () => {
  const [person, grown, never] = [
    await someBusiness(world),
    await someBusiness(world),
    await someBusiness(world),
  ];
  for (const business of [person, grown])
    await issue({ business, ...typeRecord("SOLE_PROPRIETOR") });
  const { body } = await issue({ business: never, ...typeRecord("SOLE_PROPRIETOR", 86_400 * 30) });
  await world.settle();
  await outlive();
  await issue({ business: grown, ...typeRecord("CORPORATION") });
  assert.equal(await isSoleProprietor(ctx.db, questionOf(grown)), true, "not attested yet");
  await world.settle();
  await outlive();
  assert.deepEqual(await listOf(person, ["BUSINESS_COMPANY_TYPE"]), []);
  assert.equal(await isSoleProprietor(ctx.db, questionOf(person)), true);
  assert.equal(await isSoleProprietor(ctx.db, questionOf(grown)), false);
  assert.equal(await isSoleProprietor(ctx.db, questionOf(never)), true);
  await revoke(body["id"]);
  assert.equal(await isSoleProprietor(ctx.db, questionOf(never)), false);
});

await test("a valid record is examined once, and again at its end or when its issuer is distrusted", async () => {
  const { id: issuerId } = await createIssuer(
    ctx,
    { name: "Another", environment: "live" },
    "test",
  );
  const made = await createIssuerKey(ctx, { issuerId, name: "x" }, "test");
  const { body: own } = await issue({
    business: await someBusiness(world),
    ...typeRecord("CORPORATION"),
  });
  const { body: foreign } = await issue({ business: await someBusiness(world) }, {}, made.key);
  const dueOf = async () => {
    const due = await listRecordsDue(ctx.db, { now: ctx.clock.now(), limit: 1000 });
    return due.map(({ id, isOver }) => [id, isOver]);
  };
  assert.equal((await dueOf()).filter(([, isOver]) => isOver === false).length, 2);
  await endCompanyRecords(ctx);
  assert.deepEqual(await dueOf(), []);
  await world.settle();
  await distrustIssuer(ctx, { issuerId, from: ctx.clock.now() }, "test");
  assert.deepEqual(await dueOf(), [[foreign["id"], true]]);
  await endCompanyRecords(ctx);
  assert.deepEqual(await dueOf(), []);
  world.advance(50);
  assert.deepEqual(await dueOf(), [[own["id"], true]]);
  await endCompanyRecords(ctx);
});

await test("sole proprietors of older records stay recognised, and a type that is no longer known counts as sole proprietor", async () => {
  const [person, company, forgotten, typeless] = [
    await someBusiness(world),
    await someBusiness(world),
    await someBusiness(world),
    await someBusiness(world),
  ];
  await issue({ business: forgotten, ...typeRecord("CORPORATION") });
  await issue({ business: typeless, fields: fields.slice(0, 1) });
  await world.settle();
  await outlive();
  await issue({ business: person, ...typeRecord("SOLE_PROPRIETOR") });
  await issue({ business: company, ...typeRecord("CORPORATION") });
  await world.settle();
  await ctx.db.query(sql`alter table company_record drop column is_sole_proprietor`);
  await ctx.db.query(sql`delete from migration where number = 36`);
  assert.deepEqual(await migrate(ctx.db), ["0036_sole_proprietors.sql"]);
  await outlive();
  const known = [person, company, forgotten, typeless].map(async (business) =>
    isSoleProprietor(ctx.db, questionOf(business)),
  );
  assert.deepEqual(await Promise.all(known), [true, false, true, false]);
});

await test("four hundred fields fit in one record", async () => {
  const business = await someBusiness(world);
  const many = Array.from({ length: 400 }, (_, index) => ({
    field: "BUSINESS_UBO_NAME",
    subject: `ubo-${index}`,
    data: `Canary ${index}`,
  }));
  assert.equal((await issue({ business, fields: many })).status, 201);
  assert.equal((await issue({ business, fields: [...many, ...fields] })).status, 400);
  await world.settle();
  assert.equal((await listOf(business, ["BUSINESS_UBO_NAME"])).length, 400);
});

await test("the record of the made-up company is one that is taken", async () => {
  const business = await someBusiness(world);
  assert.equal((await issue({ business, fields: sampleCompanyFields(business) })).status, 201);
  assert.deepEqual(toldOf(business), [true]);
});

await test("no value stands in the database in the clear", async () => {
  const dump = await dumpDatabase(ctx.db);
  assert.ok(dump.includes("director-1"));
  for (const text of ["Canary", Buffer.from("Canary").toString("hex")])
    assert.ok(!dump.includes(text), text);
});
