import assert from "node:assert/strict";
import { test } from "node:test";
import type { Db } from "../platform/database/db.ts";
import { listLiveFields } from "./check-store.ts";
import { openingOf } from "./leaf.ts";
import { openLookups, purgeLookups } from "./lookups.ts";
import { getBuiltInIssuer } from "./issuers.ts";
import { giveCredential, inAYear, openTestCredentials, someUser } from "./test-credentials.ts";
import { countScans, insertOthers } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;

const rowsOf = async (db: Db) =>
  db.query<{ key_id: string; user_address: string; at: number }>({
    name: "",
    text: "select key_id, user_address, at from lookup order by at, user_address",
    values: [],
  });

await test("who asked about whom is recorded once a minute, and deleted after a year", async () => {
  const [alice, bob] = [someUser(), someUser()].toSorted() as [`0x${string}`, `0x${string}`];
  const start = ctx.clock.now() - (ctx.clock.now() % 60);
  const [lookups, another] = [openLookups(ctx), openLookups(ctx)];
  await Promise.all([alice, bob, alice].map(async (user) => lookups.note({ keyId: "key1", user })));
  await another.note({ keyId: "key1", user: alice });
  assert.deepEqual(await rowsOf(ctx.db), [
    { key_id: "key1", user_address: alice, at: start },
    { key_id: "key1", user_address: bob, at: start },
  ]);
  const before = ctx.db.callsTotal;
  await lookups.note({ keyId: "key1", user: alice });
  assert.equal(ctx.db.callsTotal, before, "it is known to be written down");
  world.advance(365 * 86_400);
  await purgeLookups(ctx);
  assert.equal((await rowsOf(ctx.db)).length, 2);
  world.advance(60);
  await purgeLookups(ctx);
  await lookups.findOpenedLeaves({ keyId: null, user: alice, environment: "live", openings: [] });
  assert.deepEqual(await rowsOf(ctx.db), [], "nor is it written down that somebody answers");
});

await test("a merchant's question is recorded when it is answered, by the same call, even if the merchant may not ask it", async () => {
  const user = someUser();
  world.setMayAsk(() => false);
  const infos = [{ field: "EMAIL", data: "a@example.com", pepper: `0x${"11".repeat(32)}` }];
  const asks = [
    { method: "GET", url: `/api/v1/blockchain/verified?user=${user}&items=EMAIL` },
    { method: "POST", url: "/api/v1/blockchain/valid", body: { user, infos } },
    { method: "GET", url: `/api/v1/blockchain/proof?user=${user}&items=EMAIL` },
  ] as const;
  for (const ask of asks) {
    world.advance(60);
    // So that the calls below find the API key cached.
    const url = `/api/v1/blockchain/verified?user=${someUser()}&items=EMAIL`;
    await world.call({ method: "GET", url, as: world.live.apiKey });
    const before = ctx.db.callsTotal;
    const { status } = await world.call({ ...ask, as: world.live.apiKey });
    const calls = ctx.db.callsTotal - before;
    assert.equal(status, 200);
    const minute = ctx.clock.now() - (ctx.clock.now() % 60);
    const rows = await rowsOf(ctx.db);
    const row = rows.find((each) => each.user_address === user && each.at === minute);
    assert.ok(row !== undefined && world.live.apiKey.includes(row.key_id), ask.url);
    if (!ask.url.includes("proof")) assert.equal(calls, 1, ask.url);
  }
  world.setMayAsk(() => true);
});

await test("each minute in which somebody asked is recorded, however soon it comes after the last one", async () => {
  const user = someUser();
  world.advance(59 - (ctx.clock.now() % 60));
  const start = ctx.clock.now() - 59;
  const lookups = openLookups(ctx);
  for (const seconds of [1, 59, 59, 0]) {
    await lookups.note({ keyId: "key2", user });
    world.advance(seconds);
  }
  const rows = await rowsOf(ctx.db);
  const minutes = rows.filter((row) => row.user_address === user).map(({ at }) => at - start);
  assert.deepEqual(minutes, [0, 60, 120]);
});

await test("of concurrent questions each gets the answer for its own user and environment", async () => {
  const demo = await getBuiltInIssuer(ctx, "demo", "live");
  const known = await Promise.all(
    Array.from({ length: 5 }, async () => {
      const user = someUser();
      await giveCredential(world, demo, {
        user,
        settles: false,
        expiresAt: inAYear + 400 * 86_400,
      });
      return user;
    }),
  );
  await world.settle();
  const asked = Array.from({ length: 150 }, (_, index) => ({
    keyId: `key${index}`,
    user: index % 3 === 0 ? (known[index % 5] ?? someUser()) : someUser(),
    environment: index % 2 === 0 ? ("live" as const) : ("sandbox" as const),
    fields: index % 4 === 0 ? (["EMAIL"] as const) : (["IDCARD_DOB", "EMAIL"] as const),
  }));
  const answers = await Promise.all(
    asked.map(async (question) => ctx.lookups.findLiveFields(question)),
  );
  for (const [index, { environment, fields }] of asked.entries()) {
    const isKnown = index % 3 === 0 && environment === "live" && fields.length === 2;
    assert.deepEqual(answers[index], isKnown ? ["IDCARD_DOB"] : [], String(index));
  }
});

await test("of concurrent questions about openings each finds only the leaves of its own user and environment", async () => {
  const demo = await getBuiltInIssuer(ctx, "demo", "live");
  const [alice, bob] = [someUser(), someUser()];
  const openings: string[] = [];
  for (const user of [alice, bob]) {
    const given = { user, expiresAt: inAYear + 400 * 86_400 };
    const { held } = await giveCredential(world, demo, given);
    openings.push(...held.slice(0, 1).map(openingOf));
  }
  const find = async (user: typeof alice, environment: "live" | "sandbox") => {
    const leaves = await ctx.lookups.findOpenedLeaves({ keyId: null, user, environment, openings });
    return leaves.map(({ opening }) => openings.indexOf(opening));
  };
  const answers = await Promise.all([
    find(alice, "live"),
    find(bob, "sandbox"),
    find(bob, "live"),
    find(someUser(), "live"),
    find(alice, "sandbox"),
  ]);
  assert.deepEqual(answers, [[0], [], [1], [], []]);
});

await test("a question about a user reads nobody else's leaves, however few there are", async () => {
  const user = someUser();
  const issuer = await getBuiltInIssuer(ctx, "demo", "live");
  const expiresAt = ctx.clock.now() + 3600;
  const { id } = await giveCredential(world, issuer, { user, expiresAt });
  await insertOthers(ctx.db, id, 200);
  const question = { user, environment: "live", fields: ["IDCARD_DOB"] } as const;
  await ctx.db.transaction(async (tx) => {
    const before = await countScans(tx);
    const asked = { lookups: [], now: ctx.clock.now() };
    assert.deepEqual(await listLiveFields(tx, [question], asked), [["IDCARD_DOB"]]);
    assert.equal(await countScans(tx), before);
  });
});
