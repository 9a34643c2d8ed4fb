// What is read of credentials to find one person's, where PostgreSQL had found records of businesses alone.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import {
  collectCredential,
  deleteOfUser,
  findCredential,
  listOwned,
  lockOfUser,
} from "../../service/src/credentials/credential-store.ts";
import { insertOrder } from "../../service/src/kyc/order-store.ts";
import type { Queryable } from "../../service/src/platform/database/db.ts";
import { openWorld, type World } from "../world.ts";

const records = 1500;
const persons = 500;
const id = "01890000-0000-7000-8000-000000000000";
const user = `0x${"11".repeat(20)}` as const;
let world: World;
before(async () => {
  world = await openWorld();
  await addCredentials();
});
after(async () => world[Symbol.asyncDispose]());

const run = async <Row extends object>(on: Queryable, text: string): Promise<Row[]> =>
  on.query<Row>({ name: "", text, values: [] });

async function addCredentials(): Promise<void> {
  const { db } = world.ctx;
  const insert = async (document: string, count: number): Promise<unknown> =>
    run(
      db,
      `insert into credential (id, issuer_id, environment, user_address, document, root, tree, created_at, expires_at)
      select gen_random_uuid(), '${id}', 'live', '0x' || left(encode(sha256(n::text::bytea), 'hex'), 40), '${document}',
        sha256(('${document}' || n)::bytea), '', 0, 1e10
      from generate_series(1, ${count}) as n`,
    );
  await run(
    db,
    `insert into issuer (id, kind, name, address, environment, created_at) values ('${id}', 'api', 'A', '${user}', 'live', 0)`,
  );
  await run(db, "delete from credential");
  await insert("COMPANY", records);
  await run(db, "vacuum analyze credential");
  await insert("EMAIL", persons);
}

/** How many rows and entries of indexes of the credentials the work reads. */
async function countReads(work: (tx: Queryable) => Promise<unknown>): Promise<number> {
  return world.ctx.db.transaction(async (tx) => {
    const earlier = await readsOf(tx);
    await work(tx);
    return (await readsOf(tx)) - earlier;
  });
}

async function readsOf(tx: Queryable): Promise<number> {
  const [row] = await run<{ reads: number }>(
    tx,
    `select sum(pg_stat_get_xact_tuples_returned(read))::int as reads from (
      select 'credential'::regclass as read
      union all select indexrelid from pg_index where indrelid = 'credential'::regclass) as each`,
  );
  return row?.reads ?? 0;
}

const order = {
  id,
  referenceKey: "00",
  packageId: id,
  clientDomainId: id,
  organizationId: id,
  environment: "live",
  user,
  required: [],
  optional: [],
  callback: "",
  expiration: 0,
  reference: null,
  purpose: null,
  returnUrl: null,
  createdAt: 0,
  salt: `0x${"00".repeat(32)}`,
} as const;

const works: [name: string, work: (tx: Queryable) => Promise<unknown>][] = [
  ["a credential is found", async (tx) => findCredential(tx, id)],
  ["a credential is collected", async (tx) => collectCredential(tx, { id, user, now: 0 })],
  [
    "a person's credentials are listed",
    async (tx) => listOwned(tx, user, { before: null, limit: 9 }),
  ],
  ["a person's credentials are locked", async (tx) => lockOfUser(tx, user)],
  ["a person's credentials are deleted", async (tx) => deleteOfUser(tx, user, 0)],
  ["an order is made", async (tx) => insertOrder(tx, order)],
];

for (const [name, work] of works)
  test(`${name} without a look at those of others`, async () => {
    assert.equal(await countReads(work), 0);
  });
