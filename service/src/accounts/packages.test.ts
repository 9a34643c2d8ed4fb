import assert from "node:assert/strict";
import { test } from "node:test";
import { openTestContext } from "../../../test/test-context.ts";
import { untilBlocked } from "../../../test/lock-waits.ts";
import { sql } from "../platform/database/db.ts";
import { Problem } from "../platform/http/problems.ts";
import {
  buyPackage,
  createDomain,
  createOrganization,
  listPackages,
  readBalance,
  makeNextSigningKey,
  readSigningKeys,
  switchSigningKey,
  topUp,
} from "./index.ts";

await using ctx = await openTestContext();

/** Buys `count` packages for CHF 1 each, all at once. @returns how many ended how, and what is left of the money */
async function buyAtOnce(count: number, amountRappen: bigint) {
  const { id: organizationId } = await createOrganization(ctx, { name: "Buyer" }, "test");
  const purse = { organizationId, environment: "live" } as const;
  await topUp(ctx, { ...purse, amountRappen }, "test");
  const { id } = await createDomain(ctx, { ...purse, domain: "localhost" }, "test");
  const given = {
    clientDomainId: id,
    name: "Age",
    fields: null,
    transfers: 1,
    priceRappen: 100n,
  };
  const ends: string[] = [];
  let left = count;
  const buy = async (): Promise<void> => {
    while (left > 0) {
      left -= 1;
      const end = buyPackage(ctx, given, "test").then(
        () => "bought",
        (error: unknown) => (error instanceof Problem ? error.reason : String(error)),
      );
      ends.push(await end);
    }
  };
  // More buyers than connections would only wait for one, for which they have ten seconds.
  await Promise.all(Array.from({ length: ctx.config.databaseConnections }, buy));
  const { availableRappen } = await readBalance(ctx, purse);
  const bought = (await listPackages(ctx, id)).length;
  const tally = Object.fromEntries(
    [...new Set(ends)].toSorted().map((end) => [end, ends.filter((each) => each === end).length]),
  );
  return { tally, bought, availableRappen };
}

await test("of packages that are bought at once a client domain gets a hundred, and pays for those alone", async () => {
  assert.deepEqual(await buyAtOnce(130, 20_000n), {
    tally: { bought: 100, too_many: 30 },
    bought: 100,
    availableRappen: 10_000n,
  });
});

await test("of packages that are bought at once as many are bought as there is money for", async () => {
  assert.deepEqual(await buyAtOnce(40, 1_550n), {
    tally: { bought: 15, insufficient_credit: 25 },
    bought: 15,
    availableRappen: 50n,
  });
});

await test("a package that costs a Rappen is paid for, and none is sold for a Rappen more than there is", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Saver" }, "test");
  const purse = { organizationId, environment: "live" } as const;
  await topUp(ctx, { ...purse, amountRappen: 10n }, "test");
  const { id } = await createDomain(ctx, { ...purse, domain: "localhost" }, "test");
  const given = { clientDomainId: id, name: "Age", fields: null, transfers: 1 };
  const buy = async (priceRappen: bigint) => buyPackage(ctx, { ...given, priceRappen }, "test");
  await buy(1n);
  await assert.rejects(buy(10n), { reason: "insufficient_credit" });
  assert.equal((await readBalance(ctx, purse)).availableRappen, 9n);
  await buy(9n);
  assert.equal((await readBalance(ctx, purse)).availableRappen, 0n);
});

await test("a package has a name that can be shown, of up to 100 characters, without the spaces around it", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Namer" }, "test");
  const sandbox = { organizationId, domain: "localhost", environment: "sandbox" } as const;
  const { id: clientDomainId } = await createDomain(ctx, sandbox, "test");
  const given = { clientDomainId, fields: null, transfers: 1, priceRappen: 0n };
  const name = "a".repeat(100);
  const { kycPackage } = await buyPackage(ctx, { ...given, name: ` ${name} ` }, "test");
  assert.equal(kycPackage.name, name);
  for (const bad of ["", " ", `${name}a`, "two\nlines", "a\u202eb", "a\u0007b"])
    await assert.rejects(buyPackage(ctx, { ...given, name: bad }, "test"), {
      reason: "invalid_request",
    });
});

await test("a signing key that does not open leaves the keys of other packages readable", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Signer" }, "test");
  const live = { organizationId, environment: "live" } as const;
  const { id: clientDomainId } = await createDomain(ctx, { ...live, domain: "localhost" }, "test");
  const given = { clientDomainId, name: "P", fields: null, transfers: 1, priceRappen: 0n };
  const [damaged, whole] = [
    await buyPackage(ctx, given, "test"),
    await buyPackage(ctx, given, "test"),
  ];
  await ctx.db.query({
    name: "",
    text: "update kyc_package set signing_key_sealed = $2 where id = $1",
    values: [damaged.kycPackage.id, Buffer.from("damaged")],
  });
  const ids = [damaged.kycPackage.id, whole.kycPackage.id];
  assert.deepEqual(
    await readSigningKeys(ctx, ids),
    new Map([[whole.kycPackage.id, whole.signingKey]]),
  );
});

await test("a signing key signs for its own package, and for none that it was moved to", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Moving" }, "test");
  const place = { organizationId, environment: "live", domain: "localhost" };
  const { id: clientDomainId } = await createDomain(ctx, place, "test");
  const given = { clientDomainId, name: "Age", fields: null, transfers: 1, priceRappen: 0n };
  const own = await buyPackage(ctx, given, "test");
  const other = await buyPackage(ctx, given, "test");
  const [from, to] = [own.kycPackage.id, other.kycPackage.id];
  await ctx.db.query(sql`
    update kyc_package set signing_key_sealed = (select signing_key_sealed from kyc_package where id = ${from})
    where id = ${to}`);
  assert.deepEqual(await readSigningKeys(ctx, [from, to]), new Map([[from, own.signingKey]]));
});

await test("a successor of a signing key that got lost is replaced before anything is signed with it", async () => {
  const { id: organizationId } = await createOrganization(ctx, { name: "Rotating" }, "test");
  const purse = { organizationId, environment: "live" } as const;
  await topUp(ctx, { ...purse, amountRappen: 100n }, "test");
  const domain = await createDomain(ctx, { ...purse, domain: "localhost" }, "test");
  const given = { name: "Age", fields: null, transfers: 1, priceRappen: 100n };
  const bought = await buyPackage(ctx, { ...given, clientDomainId: domain.id }, "test");
  const { id } = bought.kycPackage;
  const keyInUse = async () => (await readSigningKeys(ctx, [id])).get(id);

  const lost = await makeNextSigningKey(ctx, { id }, "test");
  await assert.rejects(makeNextSigningKey(ctx, { id }, "test"), { reason: "invalid_request" });
  const kept = await makeNextSigningKey(ctx, { id, isReplacing: true }, "test");
  assert.notEqual(kept, lost);
  assert.equal(await keyInUse(), bought.signingKey);
  await switchSigningKey(ctx, id, "test");
  assert.equal(await keyInUse(), kept);

  const { makings } = await ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from kyc_package where id = ${id} for update`);
    const both = [makeNextSigningKey(ctx, { id }, "test"), makeNextSigningKey(ctx, { id }, "test")];
    const ended = Promise.allSettled(both);
    await untilBlocked(ctx.db, tx, both);
    return { makings: ended };
  });
  const statuses = (await makings).map(({ status }) => status);
  assert.deepEqual(statuses.toSorted(), ["fulfilled", "rejected"], "of two at once one is shown");
});
