// What orders read from the index: released triples, leaves, and the names that a link may request.
import assert from "node:assert/strict";
import { test } from "node:test";
import { type Address, commitmentOf, type Info, leafOf } from "@svc/protocol";
import { findLiveLeaves, findVerified, listSupposedLeaves, matchLeaves } from "./checks.ts";
import { revokeCredential } from "./ending.ts";
import { getBuiltInIssuer } from "./issuers.ts";
import { giveCredential, inAYear, openTestCredentials, someUser } from "./test-credentials.ts";

await using world = await openTestCredentials();
const { ctx, live } = world;
const demo = await getBuiltInIssuer(ctx, "demo", "live");
const sandboxIssuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");

const wrongInfo = (field: Info["field"]): Info => ({
  field,
  data: "x",
  pepper: `0x${"5c".repeat(32)}`,
});

await test("triples are matched in their order, and a thousand leaves are looked at in one call", async () => {
  const user = someUser();
  const { id, held } = await giveCredential(world, demo, { user });
  const wrong: Info = { ...(held[0] as Info), data: "else" };
  const matches = await matchLeaves(ctx, {
    keyId: null,
    environment: "live",
    user,
    infos: [wrong, ...held],
  });
  assert.equal(matches[0], null);
  assert.deepEqual(
    matches.slice(1).map((match) => match?.status),
    held.map(() => "LIVE"),
  );
  const leaves = matches.flatMap((match) => (match === null ? [] : [match.leaf]));
  const many = Array.from(
    { length: 1000 },
    (_, index) => leaves[index % leaves.length] ?? leaves[0],
  );
  const before = ctx.db.callsTotal;
  const found = await findLiveLeaves(ctx, ctx.db, many as `0x${string}`[]);
  assert.equal(ctx.db.callsTotal - before, 1);
  assert.deepEqual([...found].toSorted(), leaves.toSorted());
  await ctx.db.transaction(async (tx) => {
    assert.equal((await findLiveLeaves(ctx, tx, leaves)).size, leaves.length);
  });
  await revokeCredential(ctx, demo, id);
  assert.equal((await findLiveLeaves(ctx, ctx.db, leaves)).size, 0);
  const expiresAt = ctx.clock.now() + 60;
  const { held: short } = await giveCredential(world, demo, { user, expiresAt });
  const infos = short.filter(({ field }) => field === "IDCARD_DOB");
  const [match] = await matchLeaves(ctx, { keyId: null, environment: "live", user, infos });
  assert.ok(match);
  world.advance(expiresAt - ctx.clock.now() - 1);
  assert.equal((await findLiveLeaves(ctx, ctx.db, [match.leaf])).size, 1);
  world.advance(1);
  assert.equal((await findLiveLeaves(ctx, ctx.db, [match.leaf])).size, 0);
});

await test("for a triple that opens no leaf, leaves are guessed with each end that the user's leaves of these fields have in that environment", async () => {
  const user = someUser();
  const mail = [{ field: "EMAIL", data: "a@example.com" }] as const;
  await giveCredential(world, demo, { user, expiresAt: inAYear - 1 });
  await giveCredential(world, demo, { user });
  await giveCredential(world, demo, { user, document: "CONTACT", fields: mail });
  await giveCredential(world, demo, { user: someUser(), expiresAt: inAYear - 2 });
  await giveCredential(world, sandboxIssuer, { user, expiresAt: inAYear - 3 });
  const infos = [wrongInfo("EMAIL"), wrongInfo("IDCARD_DOB")];
  const supposed = (field: Info["field"], expiresAt: number) =>
    leafOf({ user, field, commitment: commitmentOf(wrongInfo(field)), expiresAt });
  const email = supposed("EMAIL", inAYear);
  const lists = await listSupposedLeaves(ctx, { environment: "live", user, infos });
  assert.deepEqual(lists.slice(0, 4), [
    [email, supposed("IDCARD_DOB", inAYear)],
    [email, supposed("IDCARD_DOB", inAYear - 1)],
    [email, supposed("IDCARD_DOB", inAYear)],
    [email, supposed("IDCARD_DOB", inAYear)],
  ]);
});

await test("the count of guessed leaves and of database calls does not depend on what the user has or had", async () => {
  const [user, nobody] = [someUser(), someUser()];
  await giveCredential(world, demo, { user, expiresAt: inAYear - 1 });
  await giveCredential(world, demo, { user });
  const infos = [wrongInfo("IDCARD_DOB")];
  for (const asked of [
    { environment: "live", user, infos },
    { environment: "live", user, infos: [wrongInfo("PHONE")] },
    { environment: "live", user: nobody, infos },
    { environment: "sandbox", user, infos },
  ] as const) {
    const before = ctx.db.callsTotal;
    const lists = await listSupposedLeaves(ctx, asked);
    assert.equal(ctx.db.callsTotal - before, 1);
    assert.deepEqual(
      lists.map(({ length }) => length),
      [1, 1, 1, 1, 1, 1, 1, 1],
    );
  }
});

await test("a link offers no fields of a user about whom the organization may not ask", async () => {
  const user = someUser();
  await giveCredential(world, demo, { user });
  const requester = { id: null, organizationId: live.organizationId, environment: "live" } as const;
  const names = ["IDCARD_DOB"] as const;
  world.setMayAsk((organizationId: string, asked: Address) =>
    organizationId === live.organizationId ? asked !== user : true,
  );
  assert.deepEqual((await findVerified(ctx, requester, { user, names })).verified, []);
  world.setMayAsk(() => true);
  assert.deepEqual((await findVerified(ctx, requester, { user, names })).verified, ["IDCARD_DOB"]);
});
