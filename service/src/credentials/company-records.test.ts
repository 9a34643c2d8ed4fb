// The records of businesses as their issuers see them, and which businesses a valid record vouches for.
import assert from "node:assert/strict";
import { test } from "node:test";
import { actsOn } from "../../../test/audited-acts.ts";
import { endCompanyRecords, purgeCompanyValues } from "./company-ending.ts";
import { type Queryable, sql } from "../platform/database/db.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { until } from "../../../test/patience.ts";
import { startJobs } from "../platform/jobs.ts";
import { sendToRegistry } from "./batches.ts";
import { credentialJobs } from "./jobs.ts";
import { deleteValues, listRecordsDue, makeRecordsDue, putBackStanding } from "./company-store.ts";
import * as issuerStore from "./issuer-store.ts";
import { createIssuer, createIssuerKey, distrustIssuer } from "./issuers.ts";
import { inAYear, openTestCredentials, someBusiness, someUser } from "./test-credentials.ts";

await using world = await openTestCredentials();
const { ctx } = world;
const url = "/api/v1/issuer/companies";

const lookAgainSeconds = 30;

const toldOf = (business: string): boolean[] =>
  world.companies.filter((told) => told.business === business).map((told) => told.isVouchedFor);

async function openIssuer(name: string) {
  const { id: issuerId } = await createIssuer(ctx, { name, environment: "live" }, "test");
  const { key } = await createIssuerKey(ctx, { issuerId, name: "backend" }, "test");
  const issue = async (business: string, given: object = {}): Promise<string> => {
    const fields = [{ field: "BUSINESS_LEGAL_NAME", data: "Canary Holding AG" }];
    const body = { business, fields, expiresAt: inAYear, ...given };
    const answer = await world.call({ method: "POST", url, as: key, body });
    assert.equal(answer.status, 201, JSON.stringify(answer.body));
    return String(answer.body["id"]);
  };
  /** The ids of each page. */
  const list = async (query: string): Promise<string[][]> => {
    const pages: string[][] = [];
    for (let cursor = ""; pages.length < 10;) {
      const { body } = await world.call({
        method: "GET",
        url: `${url}?${query}${cursor}`,
        as: key,
      });
      const { items, nextCursor } = body as { items: { id: string }[]; nextCursor?: string };
      pages.push(items.map(({ id }) => id));
      if (nextCursor === undefined) break;
      cursor = `&cursor=${nextCursor}`;
    }
    return pages;
  };
  const revoke = async (id: string): Promise<void> => {
    const path = `${url}/${id}/revoke`;
    const { status } = await world.call({ method: "POST", url: path, as: key, body: {} });
    assert.equal(status, 200);
  };
  return { issuerId, issue, list, revoke };
}

await test("an issuer lists its own records, newest first, page by page, of one business where asked", async () => {
  const [mine, theirs] = [await openIssuer("Example Register AG"), await openIssuer("Another")];
  const [business, other] = [await someBusiness(world), await someBusiness(world)];
  const ids: string[] = [];
  for (const each of [business, other, business, business]) {
    ids.push(await mine.issue(each));
    await theirs.issue(each);
    // Ids begin with their time, by which the list is sorted.
    world.advance(1);
  }
  const [first, second, third, fourth] = ids;
  assert.deepEqual(await mine.list("limit=3"), [[fourth, third, second], [first]]);
  assert.deepEqual(await mine.list(`limit=2&business=${business}`), [[fourth, third], [first]]);
  assert.deepEqual(await mine.list(`business=${other}`), [[second]]);
});

await test("after a revocation, a record that is declared, expired or of a distrusted issuer does not vouch for the business", async () => {
  const [mine, doubtful] = [await openIssuer("Third"), await openIssuer("Doubtful")];
  const declared = [{ field: "BUSINESS_DECLARED_LEGAL_NAME", data: "Canary" }];
  const soon = ctx.clock.now() + 10;
  const others: ((business: string) => Promise<string>)[] = [
    async (business) => mine.issue(business, { fields: declared }),
    async (business) => mine.issue(business, { expiresAt: soon }),
    async (business) => doubtful.issue(business),
  ];
  const businesses = await Promise.all(others.map(async () => someBusiness(world)));
  const revocable: string[] = [];
  for (const [at, business] of businesses.entries()) {
    await others[at]?.(business);
    revocable.push(await mine.issue(business));
  }
  await world.settle();
  await distrustIssuer(ctx, { issuerId: doubtful.issuerId, from: 1 }, "test");
  world.advance(10);
  for (const id of revocable) await mine.revoke(id);
  for (const [at, business] of businesses.entries()) {
    assert.equal(toldOf(business).at(-1), false, `business ${at}`);
  }
});

await test("a record that is being attested when its issuer is distrusted ends if that was too late, and stays if not", async () => {
  for (const { lateSeconds, told } of [
    { lateSeconds: -1, told: [true] },
    { lateSeconds: 0, told: [true, false] },
  ]) {
    const issuer = await openIssuer(`Hasty ${lateSeconds}`);
    await world.settle();
    const business = await someBusiness(world);
    const id = await issuer.issue(business);
    await sendToRegistry(ctx);
    const from = ctx.clock.now();
    await distrustIssuer(ctx, { issuerId: issuer.issuerId, from }, "test");
    for (let look = 0; look < 2; look += 1) {
      await endCompanyRecords(ctx);
      assert.deepEqual(toldOf(business), [true], "the chain has it perhaps, and it is not final");
      world.advance(lookAgainSeconds);
    }
    await world.settle();
    const blockTime = from + lateSeconds;
    await ctx.db.query(sql`update credential set attested_at = ${blockTime} where id = ${id}`);
    await endCompanyRecords(ctx);
    assert.deepEqual(toldOf(business), told);
  }
});

await test("a record that is sent to the chain after the distrust of its issuer began ends at once", async () => {
  const issuer = await openIssuer("Leaked");
  await world.settle();
  const business = await someBusiness(world);
  const from = ctx.clock.now();
  world.advance(3600);
  await issuer.issue(business);
  await distrustIssuer(ctx, { issuerId: issuer.issuerId, from }, "test");
  await sendToRegistry(ctx);
  await endCompanyRecords(ctx);
  assert.deepEqual(toldOf(business), [true, false]);
  await world.settle();
});

await test("once an issuer is distrusted, a business that nobody else vouches for does not wait for the next look", async () => {
  const { issuerId, issue } = await openIssuer("Distrusted now");
  const business = await someBusiness(world);
  await issue(business);
  await world.settle();
  const job = credentialJobs(ctx).find(({ name }) => name === "company-ending");
  assert.ok(job);
  await using _ = startJobs(ctx, [{ ...job, everySeconds: 3600 }]);
  await distrustIssuer(ctx, { issuerId, from: 1 }, "test");
  await until("the business is no longer vouched for", async () =>
    toldOf(business).at(-1) === false ? true : null,
  );
});

await test("a record that is looked at while its issuer is being distrusted is looked at again", async () => {
  const { issuerId, issue } = await openIssuer("Distrusted meanwhile");
  const business = await someBusiness(world);
  const id = await issue(business);
  await world.settle();
  const now = ctx.clock.now();
  let look: Promise<unknown> = Promise.resolve();
  await ctx.db.transaction(async (tx) => {
    await issuerStore.distrustIssuer(tx, issuerId, 1);
    await makeRecordsDue(tx, [issuerId]);
    look = putBackStanding(ctx.db, [id], now);
    await untilBlocked(ctx.db, tx, [look]);
  });
  await look;
  const due = await listRecordsDue(ctx.db, { now, limit: 1000 });
  assert.equal(due.find((each) => each.id === id)?.isOver, true);
  await endCompanyRecords(ctx);
  assert.deepEqual(toldOf(business), [true, false]);
});

await test("values that are locked are left to the next purge, and the others are purged", async () => {
  const { issue } = await openIssuer("Example Register AG");
  const fields = [
    { field: "BUSINESS_LEGAL_NAME", data: "Canary Holding AG" },
    { field: "BUSINESS_DECLARED_LEGAL_NAME", data: "Canary" },
  ];
  const id = await issue(await someBusiness(world), { fields, expiresAt: ctx.clock.now() + 50 });
  await world.settle();
  world.advance(50);
  await endCompanyRecords(ctx);
  world.advance(7 * 86_400);
  const left = sql`select name from company_field where credential_id = ${id}`;
  await ctx.db.transaction(async (tx) => {
    const held = await tx.query(sql`
      select name from company_field where credential_id = ${id} order by name limit 1 for update`);
    await purgeCompanyValues(ctx);
    assert.deepEqual(await ctx.db.query(left), held);
  });
  await purgeCompanyValues(ctx);
  assert.deepEqual(await ctx.db.query(left), []);
});

/** The number of scans for values in the transaction so far, by index or sequential. */
async function countFieldScans(tx: Queryable): Promise<number> {
  const [row] = await tx.query<{ scans: number }>(sql`
    select sum(pg_stat_get_xact_numscans(each))::int as scans from (
      select 'company_field'::regclass as each
      union all select indexrelid from pg_index where indrelid = 'company_field'::regclass) as places`);
  return row?.scans ?? NaN;
}

await test("a record whose values were purged is skipped by the next purge", async () => {
  const { issue } = await openIssuer("Example Register AG");
  await issue(await someBusiness(world), { expiresAt: ctx.clock.now() + 50 });
  await world.settle();
  world.advance(50);
  await endCompanyRecords(ctx);
  world.advance(7 * 86_400);
  await purgeCompanyValues(ctx);
  await ctx.db.transaction(async (tx) => {
    const earlier = await countFieldScans(tx);
    assert.equal(await deleteValues(tx, ctx.clock.now() - 7 * 86_400, 10), 0);
    // The one scan is that of the deletion itself, which deletes nothing.
    assert.equal((await countFieldScans(tx)) - earlier, 1);
  });
});

await test("403: a distrusted issuer issues no record, and what an issuer does is audited once", async () => {
  const doubtful = await openIssuer("Fourth");
  const business = await someBusiness(world);
  const id = await doubtful.issue(business);
  for (let time = 0; time < 2; time += 1) await doubtful.revoke(id);
  const actor = `issuer:${doubtful.issuerId}`;
  const acts = [`${actor} company.issue`, `${actor} company.revoke`];
  assert.deepEqual(await actsOn(ctx.db, id), acts);
  const { issuerId } = doubtful;
  const { key } = await createIssuerKey(ctx, { issuerId, name: "unused" }, "test");
  await distrustIssuer(ctx, { issuerId, from: ctx.clock.now() }, "test");
  const fields = [{ field: "BUSINESS_LEGAL_NAME", data: "Canary Holding AG" }];
  const body = { business, fields, expiresAt: inAYear };
  assert.equal((await world.call({ method: "POST", url, as: key, body })).status, 403);
});

await test("an issuer that a process still has cached as trusted cannot issue, and its records verify no businesses", async () => {
  const { id: issuerId } = await createIssuer(ctx, { name: "Gone", environment: "live" }, "test");
  const { key } = await createIssuerKey(ctx, { issuerId, name: "backend" }, "test");
  const expiresAt = inAYear;
  const issueRecord = async (business: string) =>
    world.call({
      method: "POST",
      url,
      as: key,
      body: { business, fields: [{ field: "BUSINESS_LEGAL_NAME", data: "Canary AG" }], expiresAt },
    });
  const fields = [{ field: "IDCARD_NAME", data: "Canary Muster" }];
  const card = { user: someUser(), document: "IDCARD", fields, expiresAt };
  const issueCard = async () =>
    world.call({ method: "POST", url: "/api/v1/issuer/credentials", as: key, body: card });
  const [before, after] = [await someBusiness(world), await someBusiness(world)];
  assert.deepEqual([(await issueRecord(before)).status, (await issueCard()).status], [201, 201]);
  assert.deepEqual(toldOf(before), [true]);
  // As if another process wrote it and its notification had not arrived yet.
  const now = ctx.clock.now();
  await ctx.db.query(sql`update issuer set distrusted_from = ${now} where id = ${issuerId}`);
  for (const answer of [await issueRecord(after), await issueCard()]) {
    const { reason } = answer.body["error"] as { reason: string };
    assert.deepEqual([answer.status, reason], [403, "issuer_distrusted"]);
  }
  assert.deepEqual(toldOf(after), []);
});
