// Two processes end requests of the same two organizations at one instant, each in another order: neither waits for the
// money that the other is about to free.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { Address } from "@svc/protocol";
import { expireBallots } from "../../service/src/kyb/ballot/ballots.ts";
import { stopBusinesses } from "../../service/src/kyb/business/standing.ts";
import { setBusinessVerified } from "../../service/src/kyb/index.ts";
import type { KybContext } from "../../service/src/kyb/kyb-context.ts";
import { dataRequestBallots } from "../../service/src/kyb/request/data-request-ballots.ts";
import { announceDataRefusals } from "../../service/src/kyb/request/data-requests.ts";
import { sql } from "../../service/src/platform/database/db.ts";
import { openDataWorld, registerEndpoint } from "../kyb-data-world.ts";
import { insertBusinesses } from "../kyb-many-businesses.ts";
import { addMerchant } from "../kyb-merchant.ts";
import { checkMoney } from "../kyb-money-checks.ts";
import { untilBlocked } from "../lock-waits.ts";

await using world = await openDataWorld({ fundsRappen: 100_000n });
const { ctx } = world;
const { db } = ctx;

const one = world.apiKey;
/** The key of another organization that has money. */
const { apiKey: other } = await addMerchant(world, {
  entitlements: ["kyb:data-request", "kyb:pii"],
  fundsRappen: 100_000n,
});
await registerEndpoint(world, other);

/** The context of the job in a second process; the first process is the world's own. */
const second = {
  ...ctx,
  ballotKinds: { data_request: dataRequestBallots },
  endBusinessLogins: async () => undefined,
} as unknown as KybContext;

async function asked(businessWalletAddress: Address, apiKey: string): Promise<string> {
  const { status, body } = await world.ask({ businessWalletAddress }, { apiKey });
  assert.equal(status, 201, JSON.stringify(body));
  return String(body["requestId"]);
}

async function checkEnded(ids: readonly string[]): Promise<void> {
  await world.until("every request has ended", async () => {
    const open = await db.query(sql`
      select from data_request where id = any(${[...ids]}) and status = 'pending_approval'`);
    return open.length === 0 ? true : null;
  });
  await checkMoney(ctx);
}

async function deadlocks(): Promise<number> {
  const [row] = await db.query<{ deadlocks: number }>(sql`
    select deadlocks from pg_stat_database where datname = current_database()`);
  return row?.deadlocks ?? 0;
}

/** Holds the money of both organizations until each process waits for the one that comes first in its order. */
async function meet(first: () => Promise<unknown>, then: () => Promise<void>): Promise<void> {
  const before = await deadlocks();
  const { done } = await db.transaction(async (tx) => {
    // After 15 idle seconds PostgreSQL would end this transaction, and nobody would wait for the money any more.
    await tx.query(sql`set local idle_in_transaction_session_timeout = 0`);
    await tx.query(sql`select from ledger_account where kind = 'available' for update`);
    await first();
    await untilBlocked(db, tx);
    const begun = then();
    await untilBlocked(db, tx, 2);
    return { done: begun };
  });
  await done;
  assert.equal(await deadlocks(), before);
}

/** Makes these requests overdue, the first of them the longest. */
async function expire(ids: readonly string[], seconds: number): Promise<void> {
  await db.query(sql`
    update ballot set expires_at = ${ctx.clock.now() - seconds} + place
    from unnest(${[...ids]}::text[]) with ordinality as given (request, place) where id = request`);
}

/** Marks these as refused, with the delay of the refusal over. */
async function refuse(ids: readonly string[], seconds: number): Promise<void> {
  await db.query(sql`
    with ended as (
      update ballot set status = 'refused', ended_at = ${ctx.clock.now()} where id = any(${[...ids]}))
    update data_request set refused_due_at = ${ctx.clock.now() - seconds} + place
    from unnest(${[...ids]}::text[]) with ordinality as given (request, place) where id = request`);
}

for (const [what, end, work] of [
  ["requests that lapse", expire, expireBallots],
  ["refusals that are due", refuse, announceDataRefusals],
] as const)
  await test(`${what} free the money of two organizations on two processes without a deadlock`, async () => {
    const [here = "0x", there = "0x"] = await insertBusinesses(world, 2, ["alice", "bob"]);
    const early = [await asked(here, one), await asked(here, other)];
    const late = [await asked(there, other), await asked(there, one)];
    await meet(
      async () => end(early, 50),
      async () => {
        await end(late, 100);
        await work(second);
      },
    );
    await checkEnded([...early, ...late]);
  });

const stop = async (address: Address): Promise<unknown> =>
  setBusinessVerified(ctx, { address, isVerified: false }, "test");

await test("two businesses that are stopped on two processes free the money of two organizations without a deadlock", async () => {
  const [here = "0x", there = "0x"] = await insertBusinesses(world, 2, ["alice", "bob"]);
  const ids = [
    await asked(here, one),
    await asked(here, other),
    await asked(there, other),
    await asked(there, one),
  ];
  await meet(
    async () => stop(here),
    async () => {
      await stop(there);
      await stopBusinesses(second);
    },
  );
  await checkEnded(ids);
});
