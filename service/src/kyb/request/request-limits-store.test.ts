// The statements count the requests and blocks of the right pair only.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { sql } from "../../platform/database/db.ts";
import { openTestKyb, type TestRequester } from "../test-kyb-store.ts";
import { countRequests, findOpen, type Pair } from "./request-limits-store.ts";
import {
  deleteBlock,
  findRequestingOrganization,
  insertBlock,
  listBlocks,
} from "./requester-block-store.ts";

await using kyb = await openTestKyb();
const { db } = kyb;
const [own, other] = [await kyb.addOrganization(), await kyb.addOrganization()];
const [business, elsewhere] = [await kyb.addBusiness(), await kyb.addBusiness()];
const pairs: readonly Pair[] = [
  { ...own, business },
  { ...other, business },
  { ...own, business: elsewhere },
];

async function addRequest(
  table: "data" | "signature",
  of: TestRequester & { business: Address; createdAt: number; status?: string; id?: string },
): Promise<string> {
  const { business: asked, createdAt, status = "pending_approval" } = of;
  const { id = `${table}-${of.organizationId}-${asked}-${createdAt}` } = of;
  const endedAt = status === "pending_approval" ? null : createdAt;
  await db.query(
    table === "data"
      ? sql`insert into data_request (id, client_domain_id, organization_id, environment, business, purpose, fields,
            quoted_rappen, status, sequence, created_at, expires_at, ended_at)
          values (${id}, ${of.clientDomainId}, ${of.organizationId}, 'live', ${asked}, '', '[]', 1, ${status}, 1,
            ${createdAt}, 0, ${endedAt})`
      : sql`insert into signature_request (id, client_domain_id, organization_id, environment, business, message_kind,
            digest, purpose, status, sequence, created_at, expires_at, ended_at)
          values (${id}, ${of.clientDomainId}, ${of.organizationId}, 'live', ${asked}, 'TEXT', ${Buffer.alloc(32)}, '',
            ${status}, 1, ${createdAt}, 0, ${endedAt})`,
  );
  return id;
}

const count = async (pair: Pair, since = 10, last = 1) =>
  db.transaction(async (tx) => countRequests(tx, pair, { since, count: last }));

await test("requests of both kinds count for their own organization and business: open ones, and those of the last day", async () => {
  const data = await addRequest("data", { ...own, business, createdAt: 11 });
  const signature = await addRequest("signature", { ...own, business, createdAt: 12 });
  await addRequest("data", { ...other, business, createdAt: 13, status: "refused" });
  await addRequest("signature", { ...other, business, createdAt: 14, status: "refused" });
  await addRequest("data", { ...own, business: elsewhere, createdAt: 10, status: "refused" });
  await addRequest("signature", { ...own, business: elsewhere, createdAt: 10, status: "refused" });
  const counted = await Promise.all(pairs.map(async (pair) => count(pair)));
  assert.deepEqual(
    counted.map(({ open, firstOfLastAt }) => [open, firstOfLastAt]),
    [
      [2, 12],
      [0, 14],
      [0, null],
    ],
  );
  assert.equal((await count({ ...own, business }, 10, 2)).firstOfLastAt, 11);
  assert.equal((await count({ ...own, business }, 11, 2)).firstOfLastAt, null);
  assert.deepEqual(await findOpen(db, { ...own, business }), [data, signature]);
  assert.deepEqual(await findOpen(db, { ...other, business }), []);
});

const isFree = async (pair: Pair): Promise<boolean> =>
  kyb.isFree(async (tx) => countRequests(tx, pair, { since: 0, count: 1 }));

await test("counting the requests of a pair makes only other requests of the same pair wait", async () => {
  await db.transaction(async (tx) => {
    await countRequests(tx, { ...own, business }, { since: 0, count: 1 });
    const free = [];
    for (const pair of pairs) free.push(await isFree(pair));
    assert.deepEqual(free, [false, true, true]);
  });
});

const blocked = async (): Promise<boolean[]> =>
  Promise.all(pairs.map(async (pair) => (await count(pair)).isBlocked));

await test("a block concerns one organization and one business, and so does its end", async () => {
  await insertBlock(db, { ...own, business }, 1);
  assert.deepEqual(await blocked(), [true, false, false]);
  await insertBlock(db, { ...other, business }, 1);
  await insertBlock(db, { ...own, business: elsewhere }, 1);
  await deleteBlock(db, { ...own, business });
  assert.deepEqual(await blocked(), [false, true, true]);
});

await test("a business finds an organization only by a request to itself, of either kind", async () => {
  for (const table of ["data", "signature"] as const) {
    const id = await addRequest(table, { ...own, business, createdAt: 1, status: "refused" });
    assert.equal(await findRequestingOrganization(db, { id, business }), own.organizationId);
    assert.equal(await findRequestingOrganization(db, { id, business: elsewhere }), null);
  }
});

await test("a block names the organization's last request to that business, of either kind, and none to another", async () => {
  for (const [first, second] of [
    ["data", "signature"],
    ["signature", "data"],
  ] as const) {
    const asker = await kyb.addOrganization();
    const [blocking, asked] = [await kyb.addBusiness(), await kyb.addBusiness()];
    const ask = async (table: typeof first, of: Address, id: string): Promise<string> =>
      addRequest(table, { ...asker, business: of, createdAt: 1, status: "refused", id });
    await insertBlock(db, { ...asker, business: blocking }, 1);
    const lastOf = async (): Promise<string | undefined> =>
      (await listBlocks(db, blocking, { before: null, limit: 9 }))[0]?.requestId;
    for (const [at, table] of [first, second].entries()) {
      const id = await ask(table, blocking, `${first}-${at}`);
      await ask("data", asked, `${id}-data`);
      await ask("signature", asked, `${id}-signature`);
      assert.equal(await lastOf(), id);
    }
  }
});
