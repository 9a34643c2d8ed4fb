import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import { untilReached } from "../../../test/try-again.ts";
import { Problem, type Reason } from "../platform/http/problems.ts";
import {
  capture,
  createOrganization,
  hold,
  type Purse,
  readBalance,
  releaseHold,
  topUp,
} from "./index.ts";

await using ctx = await openTestContext();

const refusedWith =
  (reason: Reason, details?: Record<string, unknown>) =>
  (error: unknown): boolean => {
    if (details !== undefined) assert.deepEqual((error as Problem).options.details, details);
    return error instanceof Problem && error.reason === reason;
  };

async function makePurse(amountRappen: bigint): Promise<Purse> {
  const { id: organizationId } = await createOrganization(ctx, { name: "Payer" }, "test");
  if (amountRappen > 0n)
    await topUp(ctx, { organizationId, environment: "live", amountRappen }, "test");
  return { organizationId, environment: "live" };
}

const keep = async (purse: Purse, subject: string, amountRappen: bigint): Promise<void> =>
  ctx.db.transaction(async (tx) => hold(ctx, tx, { purse, subject, amountRappen }));
const take = async (purse: Purse, subject: string, amountRappen: bigint): Promise<void> =>
  ctx.db.transaction(async (tx) => capture(ctx, tx, { purse, subject, amountRappen }));
const free = async (purse: Purse, subject: string): Promise<void> =>
  ctx.db.transaction(async (tx) => releaseHold(ctx, tx, { purse, subject }));

const rows = async <Row extends object>(text: string, values: unknown[] = []): Promise<Row[]> =>
  ctx.db.query<Row>({ name: "", text, values });

await test("what names a payment is 1 to 200 characters on one line", async () => {
  const { organizationId, environment } = await makePurse(0n);
  const given = { organizationId, environment, amountRappen: 100n };
  for (const subject of ["", " ", "x".repeat(201), "a\nb", "a\u001b[31m"])
    await assert.rejects(topUp(ctx, { ...given, subject }, "test"), refusedWith("invalid_request"));
  await topUp(ctx, { ...given, subject: "x".repeat(200) }, "test");
});

await test("a payment is a Rappen to a million CHF, into the purse that it names and no other", async () => {
  const [purse, other] = [await makePurse(700n), await makePurse(700n)];
  const untouched = await readBalance(ctx, other);
  const { paidInRappen } = await topUp(ctx, { ...purse, amountRappen: 100_000_000n }, "test");
  assert.equal(paidInRappen, 100_000_700n);
  assert.equal(
    (await topUp(ctx, { ...purse, amountRappen: 1n }, "test")).paidInRappen,
    100_000_701n,
  );
  for (const amountRappen of [-1n, 0n, 100_000_001n])
    await assert.rejects(
      topUp(ctx, { ...purse, amountRappen }, "test"),
      refusedWith("invalid_request"),
    );
  await keep(purse, "request-own", 500n);
  await take(purse, "request-own", 300n);
  assert.deepEqual(await readBalance(ctx, other), untouched);
});

await test("a hold takes from what is available, and a capture spends some of it and frees the rest", async () => {
  const purse = await makePurse(1000n);
  await keep(purse, "request-a", 650n);
  const held = await readBalance(ctx, purse);
  assert.deepEqual(held, {
    availableRappen: 350n,
    heldRappen: 650n,
    spentRappen: 0n,
    packagesRappen: 0n,
    paidInRappen: 1000n,
  });
  await take(purse, "request-a", 400n);
  const spent = await readBalance(ctx, purse);
  assert.deepEqual(spent, {
    availableRappen: 600n,
    heldRappen: 0n,
    spentRappen: 400n,
    packagesRappen: 0n,
    paidInRappen: 1000n,
  });
});

await test("a hold that is released costs nothing", async () => {
  const purse = await makePurse(1000n);
  await keep(purse, "request-b", 1000n);
  await free(purse, "request-b");
  assert.equal((await readBalance(ctx, purse)).availableRappen, 1000n);
});

await test("a hold beyond what is available is refused with both amounts as numbers, and changes nothing", async () => {
  const purse = await makePurse(500n);
  const details = { requiredChf: 5.01, availableChf: 5 };
  await assert.rejects(keep(purse, "request-c", 501n), refusedWith("insufficient_credit", details));
  assert.equal((await readBalance(ctx, purse)).availableRappen, 500n);
});

await test("an organization that never had money is told so, and one that spent it all is told something else", async () => {
  const poor = await makePurse(0n);
  const details = { requiredChf: 4, availableChf: 0 };
  await assert.rejects(keep(poor, "request-d", 400n), refusedWith("no_credit_account", details));
  const spent = await makePurse(400n);
  await keep(spent, "request-e", 400n);
  await take(spent, "request-e", 400n);
  await assert.rejects(keep(spent, "request-f", 400n), refusedWith("insufficient_credit", details));
  const sandbox = { ...spent, environment: "sandbox" as const };
  await assert.rejects(keep(sandbox, "request-g", 400n), refusedWith("no_credit_account", details));
});

await test("a hold ends once, for its own purse alone and never by more than it holds", async () => {
  const [purse, other] = [await makePurse(1000n), await makePurse(1000n)];
  await keep(purse, "request-h", 300n);
  // Ending it a second time would take what is held for another subject.
  await keep(purse, "request-i", 300n);
  await assert.rejects(keep(purse, "request-h", 300n), refusedWith("payment_booked"));
  await assert.rejects(take(other, "request-h", 300n), /no such open hold/);
  await assert.rejects(take(purse, "request-h", 301n), /no such open hold/);
  const ends = await Promise.allSettled([
    ...Array.from({ length: 6 }, async () => take(purse, "request-h", 300n)),
    ...Array.from({ length: 6 }, async () => free(purse, "request-h")),
  ]);
  assert.equal(ends.filter(({ status }) => status === "fulfilled").length, 1);
  await assert.rejects(keep(purse, "request-h", 300n), refusedWith("payment_booked"));
  const { availableRappen, heldRappen, spentRappen } = await readBalance(ctx, purse);
  assert.equal(heldRappen, 300n);
  assert.equal(availableRappen + spentRappen, 700n);
  await free(purse, "request-i");
});

await test("holds, captures and releases at once never go below zero and always sum to zero", async () => {
  const purse = await makePurse(2000n);
  const run = async (number: number): Promise<void> => {
    const subject = `race-${number}`;
    try {
      await untilReached(async () => keep(purse, subject, BigInt(100 + (number % 5) * 50)));
    } catch (error) {
      assert.ok(refusedWith("insufficient_credit")(error), String(error));
      return;
    }
    await untilReached(async () =>
      number % 3 === 0 ? free(purse, subject) : take(purse, subject, BigInt((number % 4) * 30)),
    );
  };
  await Promise.all(Array.from({ length: 80 }, async (_, number) => run(number)));
  const balance = await readBalance(ctx, purse);
  assert.equal(balance.heldRappen, 0n);
  assert.equal(balance.availableRappen + balance.spentRappen, 2000n);
  const [total] = await rows<{ sum: string }>(
    "select coalesce(sum(balance_rappen), 0)::text as sum from ledger_account",
  );
  assert.equal(total?.sum, "0");
  const wrong = await rows(
    `select a.id from ledger_account a where a.balance_rappen <>
       coalesce((select sum(amount_rappen) from ledger_movement where to_account_id = a.id), 0)
       - coalesce((select sum(amount_rappen) from ledger_movement where from_account_id = a.id), 0)`,
  );
  assert.deepEqual(wrong, [], "every balance is the sum of its movements");
  const unequal = await rows(
    `select h.subject from ledger_hold h where h.ended_at is not null and h.amount_rappen <>
       (select sum(amount_rappen) from ledger_movement m where m.subject = h.subject and m.kind in ('capture', 'free'))`,
  );
  assert.deepEqual(unequal, [], "what was captured and freed is what was held");
});

await test("a hold and its end are one call to the database each", async () => {
  const purse = await makePurse(1000n);
  await ctx.db.transaction(async (tx) => {
    let calls = 0;
    const counted: typeof tx = {
      query: async (statement) => {
        calls += 1;
        return tx.query(statement);
      },
    };
    await hold(ctx, counted, { purse, subject: "counted", amountRappen: 10n });
    await capture(ctx, counted, { purse, subject: "counted", amountRappen: 5n });
    assert.equal(calls, 2);
  });
});

await test("live money and play money of one organization never touch", async () => {
  const live = await makePurse(1000n);
  const sandbox: Purse = { ...live, environment: "sandbox" };
  const untouched = await readBalance(ctx, live);
  await topUp(ctx, { ...sandbox, amountRappen: 500n }, "test");
  await keep(sandbox, "request-play", 300n);
  const tooMuch = keep(sandbox, "request-more", 300n);
  await assert.rejects(tooMuch, refusedWith("insufficient_credit"));
  await assert.rejects(take(live, "request-play", 100n), /no such open hold/);
  await take(sandbox, "request-play", 100n);
  await keep(sandbox, "request-freed", 400n);
  await free(sandbox, "request-freed");
  assert.deepEqual(await readBalance(ctx, live), untouched);
  const { availableRappen, heldRappen, spentRappen } = await readBalance(ctx, sandbox);
  assert.deepEqual([availableRappen, heldRappen, spentRappen], [400n, 0n, 100n]);
});
