import assert from "node:assert/strict";
import { test } from "node:test";
import { actsOn } from "../../../test/audited-acts.ts";
import { commitmentOf, leafOf, verifyMerkleProof } from "@svc/protocol";
import { listOwnCredentials } from "./collection.ts";
import { forgetUser, purgeCredentials } from "./ending.ts";
import { issueCredential } from "./issue.ts";
import { createIssuer, createIssuerKey, distrustIssuer, revokeIssuerKey } from "./issuers.ts";
import { sql } from "../platform/database/db.ts";
import { inAYear, openTestCredentials, someUser } from "./test-credentials.ts";

// Calls from loopback are not limited.
await using world = await openTestCredentials({
  LIMIT_READS_PER_SECOND: "1",
  LIMIT_CREATES_PER_SECOND: "1",
});
const { ctx } = world;
const issuer = await createIssuer(ctx, { name: "Example Ident AG", environment: "live" }, "test");
const { key } = await createIssuerKey(ctx, { issuerId: issuer.id, name: "backend" }, "test");
const other = await createIssuer(ctx, { name: "Another", environment: "live" }, "test");
const { key: otherKey } = await createIssuerKey(ctx, { issuerId: other.id, name: "x" }, "test");

const url = "/api/v1/issuer/credentials";
const card = () => ({
  user: someUser() as string,
  document: "IDCARD",
  fields: [
    { field: "IDCARD_NAME", data: "Alice Muster" },
    { field: "IDCARD_DOB", data: "1990-05-17" },
    { field: "KYC_LEVEL", data: "HIGH" },
  ],
  expiresAt: inAYear,
});
const issue = async (body: unknown, headers: Record<string, string> = {}, as = key) =>
  world.call({ method: "POST", url, as, body, headers });
const reasonOf = (body: Record<string, unknown>): unknown =>
  (body["error"] as Record<string, unknown>)["reason"];
const messageOf = (body: Record<string, unknown>): string =>
  String((body["error"] as Record<string, unknown>)["message"]);

await test("201: a credential is issued with what is derived from it, and counts once it is final", async () => {
  const given = card();
  const { status, body } = await issue(given);
  assert.equal(status, 201);
  const { id, root, ...record } = body;
  assert.match(String(root), /^0x[0-9a-f]{64}$/);
  assert.equal(record["status"], "pending");
  assert.equal(record["collected"], false);
  const names = (record["fields"] as { field: string }[]).map(({ field }) => field);
  assert.deepEqual(names, [
    ..."AGE_BIRTH_YEAR AGE_IN_YEARS AGE_OVER_16 AGE_OVER_18 AGE_OVER_21 AGE_OVER_65".split(" "),
    ..."IDCARD_DOB IDCARD_NAME KYC_LEVEL".split(" "),
  ]);
  await world.settle();
  const read = await world.call({ method: "GET", url: `${url}/${String(id)}`, as: key });
  assert.equal(read.status, 200);
  assert.equal(read.body["status"], "live");
  assert.ok(!JSON.stringify(read.body).includes("Muster"), "no value comes back");
});

await test("every field has a pepper of its own, and its leaf and proof lead to the root", async () => {
  const given = card();
  await issue(given);
  const user = given.user as `0x${string}`;
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 1 });
  const [item] = items;
  assert.ok(item);
  const peppers = new Set(item.fields.map(({ pepper }) => pepper));
  assert.equal(peppers.size, item.fields.length);
  for (const { field, data, pepper, proof, expiresAt } of item.fields) {
    assert.ok(data !== undefined && pepper !== undefined && proof !== undefined);
    const leaf = leafOf({ user, field, commitment: commitmentOf({ data, pepper }), expiresAt });
    assert.ok(verifyMerkleProof({ leaf, proof, root: item.root }), field);
    assert.equal(proof.length, 4, "nine fields stand in a tree of sixteen");
  }
});

await test("two issuances of the same value have nothing in common", async () => {
  const given = card();
  await issue(given);
  await issue(given);
  const user = given.user as `0x${string}`;
  const { items } = await listOwnCredentials(ctx, user, { before: null, limit: 2 });
  assert.notEqual(items[0]?.root, items[1]?.root);
  const [one, two] = items.map(({ fields }) => fields.map(({ pepper }) => pepper));
  assert.ok(one?.every((pepper) => !two?.includes(pepper)));
});

await test("400: what is wrong is named, never quoted", async () => {
  const good = card();
  const inTwentyYears = ctx.clock.now() + 20 * 366 * 86_400;
  const withField = (field: string, data: string) => ({ ...good, fields: [{ field, data }] });
  const cases: [unknown, RegExp][] = [
    [{ ...good, user: "alice" }, /user must be/],
    [{ ...good, document: "LIBRARY_CARD" }, /document must be one of/],
    [{ ...good, fields: [] }, /fields/],
    [
      { ...good, fields: Array.from({ length: 101 }, () => good.fields[0]) },
      /fields must have at most 100 items/,
    ],
    [{ ...good, fields: Array.from({ length: 100 }, () => good.fields[0]) }, /a field twice/],
    [{ ...good, expiresAt: ctx.clock.now() }, /expiresAt/],
    [{ ...good, expiresAt: inTwentyYears + 1 }, /expiresAt/],
    [{ ...good, expiresAt: "soon" }, /expiresAt/],
    [withField("SHOE_SIZE", "42"), /not a field of the catalogue/],
    [withField("DOB_PARENT_FIELD", "1990-05-17"), /not a field of the catalogue/],
    [withField("PASSPORT_DOB", "1990-05-17"), /PASSPORT_DOB does not belong/],
    [withField("AGE_OVER_18", "true"), /AGE_OVER_18 is derived/],
    [withField("IDCARD_DOB", "17 May"), /IDCARD_DOB must be a date/],
    [withField("IDCARD_NAME", "Ali\u202ece"), /IDCARD_NAME holds control or bidirectional/],
    [{ ...good, fields: [...good.fields, ...good.fields] }, /names a field twice/],
  ];
  assert.equal((await issue({ ...good, expiresAt: inTwentyYears })).status, 201);
  for (const [body, message] of cases) {
    const { status, body: answer } = await issue(body);
    assert.equal(status, 400, String(message));
    assert.match(messageOf(answer), message);
    assert.ok(!messageOf(answer).includes("May"));
  }
});

const bornOn = async (data: string) =>
  issue({ ...card(), fields: [{ field: "IDCARD_DOB", data }] });

await test("a date may be one that has begun only in the far east; the next one lies in the future", async () => {
  const dayAhead = (days: number): string =>
    new Date((ctx.clock.now() + 14 * 3600 + days * 86_400) * 1000).toISOString().slice(0, 10);
  world.advance(10 * 3600 - (ctx.clock.now() % 86_400) + 86_400 - 1);
  assert.equal((await bornOn(dayAhead(0))).status, 201, "before 10:00 UTC it is the day of UTC");
  const early = await bornOn(dayAhead(1));
  assert.equal(early.status, 400);
  assert.match(messageOf(early.body), /IDCARD_DOB lies in the future/);
  world.advance(1);
  assert.equal((await bornOn(dayAhead(0))).status, 201, "from 10:00 UTC it is the day after");
  assert.equal((await bornOn(dayAhead(1))).status, 400);
});

await test("401: a call without a key is refused, and so is a merchant's, revoked or damaged key, or one in the URL", async () => {
  const { id, key: gone } = await createIssuerKey(
    ctx,
    { issuerId: issuer.id, name: "old" },
    "test",
  );
  assert.equal((await issue(card(), {}, gone)).status, 201);
  await change(id, async () => revokeIssuerKey(ctx, id, "test"));
  const none = await world.call({ method: "POST", url, body: card() });
  assert.deepEqual([none.status, reasonOf(none.body)], [401, "apikey_missing"]);
  const damaged = key.slice(0, -1) + (key.endsWith("x") ? "y" : "x");
  const guessed = await createIssuerKey(ctx, { issuerId: issuer.id, name: "guessed" }, "test");
  await ctx.db.query(sql`update issuer_key set mac = ${Buffer.alloc(32)} where id = ${guessed.id}`);
  for (const wrong of [world.live.apiKey, gone, damaged, guessed.key, `Bearer ${key}`]) {
    const answer = await issue(card(), {}, wrong);
    assert.equal(reasonOf(answer.body), "apikey_invalid");
    const says = JSON.stringify(answer.body).includes("without Bearer");
    assert.equal(says, wrong.startsWith("Bearer "));
  }
  const inUrl = await world.call({ method: "GET", url: `${url}?key=${key}`, as: key });
  assert.equal(inUrl.status, 401);
  const verified = `/api/v1/blockchain/verified?user=${someUser()}&items=EMAIL`;
  assert.equal((await world.call({ method: "GET", url: verified, as: key })).status, 401);
});

/** Changes keys, and waits until the cached keys are up to date. */
async function change(told: string, work: () => Promise<unknown>): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<undefined>();
  // Listeners are called in the order of their subscription, so the cache of keys has been notified before.
  const unsubscribe = await ctx.notifications.subscribe("issuer-key", (payload) => {
    if (payload === told) resolve(undefined);
  });
  await work();
  await promise;
  unsubscribe();
}

await test("404: another issuer's credential, or one that does not exist, is neither shown nor revoked", async () => {
  const { body } = await issue(card());
  for (const id of [String(body["id"]), "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b5", "x"]) {
    const read = await world.call({ method: "GET", url: `${url}/${id}`, as: otherKey });
    assert.deepEqual([read.status, reasonOf(read.body)], [404, "credential_not_found"]);
    const call = { method: "POST", url: `${url}/${id}/revoke`, as: otherKey, body: {} } as const;
    assert.equal((await world.call(call)).status, 404);
  }
  const own = await world.call({ method: "GET", url: `${url}/${String(body["id"])}`, as: key });
  assert.equal(own.body["status"], "pending");
});

await test("Idempotency-Key: the same call answers the same credential, another body under it is 409", async () => {
  const given = card();
  const header = { "idempotency-key": "order-1" };
  const first = await issue(given, header);
  assert.equal(first.status, 201);
  const again = await issue(given, header);
  assert.equal(again.status, 200);
  assert.equal(again.body["id"], first.body["id"]);
  const changed = await issue({ ...given, expiresAt: inAYear - 1 }, header);
  assert.deepEqual([changed.status, reasonOf(changed.body)], [409, "idempotency_key_conflict"]);
  const theirs = await issue(given, header, otherKey);
  assert.equal(theirs.status, 201, "another issuer's keys are its own");
  assert.equal((await issue(given, { "idempotency-key": "a b" })).status, 400);
});

await test("Idempotency-Key: a repeat is answered with the first credential when it could not be issued any more", async () => {
  const given = { ...card(), expiresAt: ctx.clock.now() + 60 };
  const header = { "idempotency-key": "order-4" };
  const first = await issue(given, header);
  world.advance(61);
  const again = await issue(given, header);
  assert.deepEqual([again.status, again.body["id"]], [200, first.body["id"]]);
  const changed = await issue({ ...given, document: "PASSPORT" }, header);
  assert.deepEqual([changed.status, reasonOf(changed.body)], [400, "invalid_request"]);
  assert.equal((await issue(given, { "idempotency-key": "order-5" })).status, 400);
  assert.equal((await issue(given, header, otherKey)).status, 400, "nor is it another issuer's");
});

await test("Idempotency-Key: a key stands for its first call for 24 hours, and for another one after that", async () => {
  const given = card();
  const header = { "idempotency-key": "order-6" };
  const { body: first } = await issue(given, header);
  world.advance(86_399);
  await purgeCredentials(ctx);
  const again = await issue(given, header);
  assert.deepEqual([again.status, again.body["id"]], [200, first["id"]]);
  world.advance(1);
  await purgeCredentials(ctx);
  const anew = await issue(given, header);
  assert.equal(anew.status, 201);
  assert.notEqual(anew.body["id"], first["id"]);
});

await test("Idempotency-Key: a day is over to the second, also for a key that was not deleted yet", async () => {
  const given = { ...card(), expiresAt: ctx.clock.now() + 2 * 86_400 };
  const header = { "idempotency-key": "order-7" };
  const { body: first } = await issue(given, header);
  world.advance(86_400);
  const changed = { ...given, expiresAt: given.expiresAt - 1 };
  const anew = await issue(changed, header);
  assert.equal(anew.status, 201);
  assert.notEqual(anew.body["id"], first["id"]);
  world.advance(86_399);
  const again = await issue(changed, header);
  assert.deepEqual([again.status, again.body["id"]], [200, anew.body["id"]]);
  world.advance(1);
  assert.equal((await issue(changed, header)).status, 400, "it could not be issued any more");
});

await test("Idempotency-Key: of calls at the same moment one issues", async () => {
  const given = card();
  const header = { "idempotency-key": "order-2" };
  const answers = await Promise.all(Array.from({ length: 6 }, async () => issue(given, header)));
  assert.equal(new Set(answers.map(({ body }) => body["id"])).size, 1);
  assert.deepEqual(
    answers.map(({ status }) => status).toSorted((a, b) => a - b),
    [200, 200, 200, 200, 200, 201],
  );
});

await test("Idempotency-Key: a repeat is answered with the first credential, deleted with its user or not", async () => {
  const user = someUser();
  const idempotency = { key: "order-3", body: "the same" };
  const given = { ...card(), user, idempotency };
  const first = await issueCredential(ctx, issuer, given);
  const forget = async () =>
    ctx.db.transaction(async (tx) => forgetUser(tx, user, ctx.clock.now()));
  // The user is deleted right after the transaction of the repetition.
  const transaction: typeof ctx.db.transaction = async (work) => {
    try {
      return await ctx.db.transaction(work);
    } finally {
      await forget();
    }
  };
  const deleting = { ...ctx, db: { ...ctx.db, transaction } };
  const again = await issueCredential(deleting, issuer, given);
  assert.deepEqual(again, { ...first, isRepeated: true });
  const anew = await issueCredential(ctx, issuer, given);
  assert.ok(!anew.isRepeated && anew.id !== first.id, "nothing is remembered of a deleted user");
});

await test("200 revoke: a credential is revoked at once and for good, and revoking or withdrawing it then changes nothing", async () => {
  const given = card();
  const { body } = await issue(given);
  await world.settle();
  const one = `${url}/${String(body["id"])}`;
  const revoke = async () =>
    world.call({ method: "POST", url: `${one}/revoke`, as: key, body: {} });
  const read = async () => world.call({ method: "GET", url: one, as: key });
  const revoked = await revoke();
  assert.deepEqual([revoked.status, revoked.body["status"]], [200, "revoked"]);
  const shown = await read();
  assert.equal(shown.body["status"], "revoked");
  world.advance(60);
  const again = await revoke();
  assert.deepEqual([again.status, again.body], [200, revoked.body]);
  const withdraw = `/w/credentials/${String(body["id"])}/withdraw`;
  await world.call({ method: "POST", url: withdraw, as: given.user, body: {} });
  const actor = `issuer:${issuer.id}`;
  assert.deepEqual(await actsOn(ctx.db, String(body["id"])), [
    `${actor} credential.issue`,
    `${actor} credential.revoke`,
  ]);
  assert.deepEqual((await read()).body, shown.body);
});

await test("200 list: an issuer's own credentials come newest first, in pages, of one user where asked", async () => {
  const given = card();
  await issue(given);
  world.advance(1);
  await issue(given);
  const of = `${url}?user=${given.user}&limit=1`;
  const first = await world.call({ method: "GET", url: of, as: key });
  const [newest] = first.body["items"] as { id: string; issuedAt: number }[];
  const next = `${of}&cursor=${String(first.body["nextCursor"])}`;
  const second = await world.call({ method: "GET", url: next, as: key });
  const [oldest] = second.body["items"] as { id: string; issuedAt: number }[];
  assert.ok(newest && oldest && newest.issuedAt > oldest.issuedAt);
  assert.equal(second.body["nextCursor"], undefined);
  const ids: string[] = [];
  for (let cursor = ""; ids.length < 100;) {
    const { body } = await world.call({ method: "GET", url: `${url}?limit=3${cursor}`, as: key });
    const { items, nextCursor } = body as { items: { id: string }[]; nextCursor?: string };
    ids.push(...items.map(({ id }) => id));
    if (nextCursor === undefined) break;
    cursor = `&cursor=${nextCursor}`;
  }
  assert.ok(ids[0] === newest.id && ids.includes(oldest.id));
  assert.ok(ids.length > 3 && new Set(ids).size === ids.length, `${ids.length}`);
  const theirs = await world.call({ method: "GET", url: of, as: otherKey });
  assert.deepEqual(theirs.body["items"], []);
  await issue(card(), {}, otherKey);
  const { body: listed } = await world.call({ method: "GET", url, as: otherKey });
  const others = (listed["items"] as { id: string }[]).map(({ id }) => id);
  assert.ok(others.length > 0 && others.every((id) => !ids.includes(id)));
  const wrong = await world.call({ method: "GET", url: `${url}?cursor=x`, as: key });
  assert.equal(wrong.status, 400);
});

await test("403: a distrusted issuer issues nothing more", async () => {
  const issued = await issue(card(), {}, otherKey);
  assert.equal(issued.status, 201);
  const given = { issuerId: other.id, from: ctx.clock.now() };
  await change("", async () => distrustIssuer(ctx, given, "test"));
  const answer = await issue(card(), {}, otherKey);
  assert.deepEqual([answer.status, reasonOf(answer.body)], [403, "issuer_distrusted"]);
});

/** A call from another address than loopback. */
async function statusOf(method: "GET" | "POST", authorization: string): Promise<number> {
  const call = { method, url, remoteAddress: "203.0.113.9", headers: { authorization } };
  return (await world.http.inject(method === "POST" ? { ...call, payload: {} } : call)).statusCode;
}

await test("429: a key of an issuer reads and creates four times at once, whatever another one does", async () => {
  for (const [method, answered] of [
    ["GET", 200],
    ["POST", 400],
  ] as const) {
    const statuses: number[] = [];
    while (statuses.length < 5) statuses.push(await statusOf(method, key));
    assert.deepEqual(statuses, [answered, answered, answered, answered, 429]);
    assert.equal(await statusOf(method, otherKey), answered);
  }
});
