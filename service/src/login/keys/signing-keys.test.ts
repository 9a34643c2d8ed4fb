import assert from "node:assert/strict";
import { after, test } from "node:test";
import { createLocalJWKSet, jwtVerify } from "jose";
import type { Clock } from "../../platform/clock.ts";
import { createSeal } from "../../platform/cryptography/seal.ts";
import { signJwt } from "./jwt.ts";
import { revokeSigningKey, rotateSigningKey } from "./manage-signing-keys.ts";
import { lockKeys, revokeKey } from "./signing-key-store.ts";
import { ensureKeys, openSigningKeys } from "./signing-keys.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { addClient, addCode, get, openTestLogin, redeem, type TestLogin } from "../test-login.ts";
import { listTestKeys } from "../test-login-store.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const day = 86_400;

interface Jwk {
  readonly kid: string;
  readonly alg: string;
  readonly kty: string;
}

async function publishedOf(on: TestLogin, set: "jwks" | "wallet-jwks"): Promise<Jwk[]> {
  const answer = await get(on, `/.well-known/${set}.json`);
  return (answer.body as { keys: Jwk[] }).keys;
}

test("processes that start at once on an empty table make a key and a successor for each purpose, and agree on them", async () => {
  await using first = await openTestLogin();
  await using second = await openTestLogin({ with: first });
  for (const { kid } of await listTestKeys(first.ctx.db)) await revokeKey(first.ctx.db, kid, 1);
  await Promise.all([ensureKeys(first.ctx), ensureKeys(second.ctx), ensureKeys(first.ctx)]);
  const made = await listTestKeys(first.ctx.db);
  assert.equal(made.length, 6);
  await using third = await openTestLogin({ with: first });
  await Promise.all([first, second].map(async ({ ctx }) => ctx.signingKeys.refresh()));
  for (const purpose of ["login-rs256", "login-es256", "wallet-es256"] as const) {
    const [signs] = made.filter((key) => key.purpose === purpose).map(({ kid }) => kid);
    for (const { ctx } of [first, second, third])
      assert.equal(ctx.signingKeys.current(purpose).kid, signs);
  }
});

test("no key's id begins with a hyphen, so `svc key revoke` takes every one", async () => {
  await using own = await openTestLogin();
  for (const { kid } of await listTestKeys(own.ctx.db)) await revokeKey(own.ctx.db, kid, 1);
  const { random } = own.ctx;
  let draws = 0;
  const bytes = (length: number): Buffer => {
    draws += 1;
    return draws % 2 === 1 ? Buffer.alloc(length, 0xf8) : random.bytes(length);
  };
  await ensureKeys({ ...own.ctx, random: { ...random, bytes } });
  const kids = (await listTestKeys(own.ctx.db)).map(({ kid }) => kid);
  assert.equal(kids.length, 6);
  assert.deepEqual(
    kids.filter((kid) => kid.startsWith("-")),
    [],
  );
});

test("login and wallet keys are published apart, public parts alone", async () => {
  const loginKeys = await publishedOf(login, "jwks");
  const walletKeys = await publishedOf(login, "wallet-jwks");
  assert.deepEqual(loginKeys.map((key) => key.alg).toSorted(), [
    "ES256",
    "ES256",
    "RS256",
    "RS256",
  ]);
  assert.deepEqual(
    walletKeys.map((key) => key.alg),
    ["ES256", "ES256"],
  );
  assert.ok(walletKeys.every((key) => !loginKeys.some((other) => other.kid === key.kid)));
  for (const key of [...loginKeys, ...walletKeys]) {
    const members = Object.keys(key).toSorted();
    const expected =
      key.kty === "RSA"
        ? ["alg", "e", "kid", "kty", "n", "use"]
        : ["alg", "crv", "kid", "kty", "use", "x", "y"];
    assert.deepEqual(members, expected);
  }
});

test("key sets and discovery are answered with an etag, and 304 to whoever has them", async () => {
  for (const name of [
    "jwks.json",
    "wallet-jwks.json",
    "openid-configuration",
    "oauth-authorization-server",
  ]) {
    const first = await get(login, `/.well-known/${name}`);
    assert.equal(first.headers["cache-control"], "public, max-age=300");
    assert.equal(first.headers["access-control-allow-origin"], "*");
    assert.match(String(first.headers["content-type"]), /^application\/json/);
    const etag = String(first.headers["etag"]);
    for (const known of [etag, `W/${etag}`, `"other", ${etag}`, "*"]) {
      const second = await get(login, `/.well-known/${name}`, { "if-none-match": known });
      assert.deepEqual([second.status, second.text], [304, ""], known);
    }
    const changed = await get(login, `/.well-known/${name}`, { "if-none-match": '"other"' });
    assert.equal(changed.status, 200);
  }
});

test("the published successor takes over without a restart, and the old key stays until its last token is dead", async () => {
  await using own = await openTestLogin();
  const before = await publishedOf(own, "jwks");
  const old = own.ctx.signingKeys.current("login-rs256");
  own.clock.advance(90 * day);
  const current = own.ctx.signingKeys.current("login-rs256");
  assert.notEqual(current.kid, old.kid);
  assert.ok(
    before.some((key) => key.kid === current.kid),
    "it was published before",
  );
  await ensureKeys(own.ctx);
  await own.ctx.signingKeys.refresh();
  const starts = (await listTestKeys(own.ctx.db)).filter((key) => key.purpose === "login-rs256");
  own.clock.advance((starts.at(-1)?.startsAt ?? 0) - own.clock.now());
  await ensureKeys(own.ctx);
  await own.ctx.signingKeys.refresh();
  const isPublished = async (): Promise<boolean> =>
    (await publishedOf(own, "jwks")).some((key) => key.kid === current.kid);
  own.clock.advance(day + 899);
  assert.ok(await isPublished(), "its tokens may live");
  own.clock.advance(1);
  assert.ok(!(await isPublished()), "its tokens are dead");
  const isKept = async (): Promise<boolean> => {
    await ensureKeys(own.ctx);
    return (await listTestKeys(own.ctx.db)).some((key) => key.kid === current.kid);
  };
  own.clock.advance(own.ctx.config.refreshAbsoluteSeconds);
  assert.ok(await isKept(), "its id tokens are hints as long as their logins are refreshed");
  own.clock.advance(1);
  assert.ok(!(await isKept()));
});

test("a key stays as long as what it signed for wallets, however short tokens live: an offer is open for an hour", async () => {
  await using own = await openTestLogin({ environment: { ACCESS_TOKEN_LIFETIME_SECONDS: "60" } });
  const { kid } = own.ctx.signingKeys.current("wallet-es256");
  const next = (await listTestKeys(own.ctx.db)).findLast(
    ({ purpose }) => purpose === "wallet-es256",
  );
  own.clock.advance((next?.startsAt ?? 0) - own.clock.now());
  assert.notEqual(own.ctx.signingKeys.current("wallet-es256").kid, kid);
  const isPublished = async (): Promise<boolean> =>
    (await publishedOf(own, "wallet-jwks")).some((key) => key.kid === kid);
  own.clock.advance(3600 + 899);
  assert.ok(await isPublished(), "wallets whose clocks run behind may still take an offer");
});

test("a token is verifiable until its end where tokens have been given a shorter life since", async () => {
  const environment = { ACCESS_TOKEN_LIFETIME_SECONDS: String(day) };
  await using before = await openTestLogin({ environment });
  await using own = await openTestLogin({ with: before });
  const shop = await addClient(before);
  const tokens = (await redeem(before, shop, await addCode(before, shop))).body;
  own.clock.advance(1);
  await rotateSigningKey(own.ctx, "login-rs256", "test");
  await own.ctx.signingKeys.refresh();
  own.clock.advance(day - 2);
  const set = createLocalJWKSet({ keys: await publishedOf(own, "jwks") });
  const currentDate = new Date(own.clock.nowMs());
  const { payload } = await jwtVerify(String(tokens["access_token"]), set, { currentDate });
  assert.equal(payload.exp, own.clock.now() + 1);
});

test("a revoked key is gone everywhere at once and its tokens count no more", async () => {
  await using own = await openTestLogin();
  await using second = await openTestLogin({ with: own });
  const shop = await addClient(own);
  const tokens = (await redeem(own, shop, await addCode(own, shop))).body;
  const authorization = `Bearer ${String(tokens["access_token"])}`;
  assert.equal((await get(second, "/userinfo", { authorization })).status, 200);
  const { kid } = own.ctx.signingKeys.current("login-rs256");
  const published = await publishedOf(own, "jwks");
  await revokeSigningKey(own.ctx, kid, "test");
  await assert.rejects(revokeSigningKey(own.ctx, kid, "test"), /no such live signing key/);
  await own.ctx.signingKeys.refresh();
  await second.ctx.signingKeys.refresh();
  for (const process of [own, second]) {
    assert.equal((await get(process, "/userinfo", { authorization })).status, 401);
    assert.ok(!(await publishedOf(process, "jwks")).some((key) => key.kid === kid));
    const next = process.ctx.signingKeys.current("login-rs256");
    assert.ok(
      published.some((key) => key.kid === next.kid),
      "the published successor took over",
    );
  }
});

test("of two keys that are revoked at once neither leaves the service without a key that signs", async () => {
  await using own = await openTestLogin();
  const { ctx, clock } = own;
  const listKeys = async () =>
    (await listTestKeys(ctx.db)).filter(({ purpose }) => purpose === "login-es256");
  const transaction: typeof ctx.db.transaction = async (work) => {
    const done = await ctx.db.transaction(work);
    const signers = (await listKeys()).filter(({ startsAt }) => startsAt <= clock.now());
    assert.ok(signers.length > 0);
    return done;
  };
  const watched = { ...ctx, db: { ...ctx.db, transaction } };
  const known = await listKeys();
  const { revoking } = await ctx.db.transaction(async (tx) => {
    await lockKeys(tx);
    const calls = known.map(async ({ kid }) => revokeSigningKey(watched, kid, "test"));
    await untilBlocked(ctx.db, tx, calls);
    return { revoking: Promise.all(calls) };
  });
  assert.equal((await revoking).length, 2);
});

test("a revoked key is gone even where another key is sealed under an unknown master key", async () => {
  await using own = await openTestLogin();
  const { kid } = own.ctx.signingKeys.current("login-rs256");
  const ahead = { ...own.ctx, seal: createSeal(["77".repeat(32)]) };
  await rotateSigningKey(ahead, "login-rs256", "test");
  await revokeKey(own.ctx.db, kid, own.ctx.clock.now());
  await assert.rejects(own.ctx.signingKeys.refresh(), /its master key is not configured/);
  const published = await publishedOf(own, "jwks");
  assert.ok(published.length > 0 && published.every((each) => each.kid !== kid));
});

test("the successor of a revoked key signs at once even where the clock is behind, and no older key does", async () => {
  await using own = await openTestLogin();
  const { clock, ctx } = own;
  const ahead = { now: () => clock.now() + 4, nowMs: () => clock.nowMs() + 4000 };
  const current = (): string => ctx.signingKeys.current("login-rs256").kid;
  const rotate = async (by: Clock): Promise<void> => {
    await rotateSigningKey({ ...ctx, clock: by }, "login-rs256", "test");
    await ctx.signingKeys.refresh();
  };
  const revokeCurrent = async (by: Clock): Promise<void> => {
    await revokeSigningKey({ ...ctx, clock: by }, current(), "test");
    await ctx.signingKeys.refresh();
  };
  const findNext = async (): Promise<string | undefined> => {
    const keys = await listTestKeys(ctx.db);
    return keys.find((key) => key.purpose === "login-rs256" && key.startsAt > clock.now())?.kid;
  };
  let next = await findNext();
  await revokeCurrent(ahead);
  assert.equal(current(), next, "nothing else is left");
  next = await findNext();
  await rotate(ahead);
  await revokeCurrent(ahead);
  assert.equal(current(), next, "it had its successor a moment before");
  clock.advance(60);
  for (let rotation = 0; rotation < 2; rotation += 1) {
    await rotate(clock);
    clock.advance(1);
  }
  next = await findNext();
  await revokeCurrent(clock);
  assert.equal(current(), next, "the one before began a moment ago too");
});

test("a list of keys that was read before a revocation, and arrives after it, brings no revoked key back", async () => {
  // On its one connection statements go in order.
  await using own = await openTestLogin({ connections: 1 });
  const { ctx } = own;
  const held = Promise.withResolvers<void>();
  let isHeld = false;
  const query: typeof ctx.db.query = async (statement) => {
    const rows = await ctx.db.query(statement);
    if (isHeld) {
      isHeld = false;
      await held.promise;
    }
    return rows as never;
  };
  await using keys = await openSigningKeys({ ...ctx, db: { ...ctx.db, query } });
  const { kid } = keys.current("login-rs256");
  isHeld = true;
  const late = keys.refresh();
  await revokeSigningKey(ctx, kid, "test");
  const prompt = keys.refresh();
  await listTestKeys(ctx.db);
  held.resolve();
  await Promise.all([late, prompt]);
  assert.ok(!keys.keySet("login").body.includes(kid));
});

test("other processes learn of a revoked key by notification", async () => {
  await using own = await openTestLogin();
  // On its one connection statements go in order.
  await using second = await openTestLogin({ with: own, connections: 1 });
  const { kid } = own.ctx.signingKeys.current("login-es256");
  const { promise: told, resolve } = Promise.withResolvers<void>();
  await second.ctx.notifications.subscribe("signing-key", (payload) => {
    if (payload === kid) resolve();
  });
  await revokeSigningKey(own.ctx, kid, "test");
  await told;
  // The keys' own handler was called before ours, so its read was sent earlier.
  await listTestKeys(second.ctx.db);
  assert.ok(!second.ctx.signingKeys.keySet("login").body.includes(kid));
});

test("ES256 signatures verify whatever their length in DER", async () => {
  const key = login.ctx.signingKeys.current("login-es256");
  const set = createLocalJWKSet({ keys: await publishedOf(login, "jwks") });
  for (let at = 0; at < 300; at += 1) {
    const { payload } = await jwtVerify(signJwt(key, "JWT", { at }), set);
    assert.equal(payload["at"], at);
  }
});
