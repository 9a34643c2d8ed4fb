import assert from "node:assert/strict";
import { createPublicKey, type JsonWebKey, verify } from "node:crypto";
import { test } from "node:test";
import { openContext } from "../../compose.ts";
import { advanceClock } from "../../platform/clock.ts";
import { parseConfig } from "../../platform/config/config.ts";
import { openDb } from "../../platform/database/db.ts";
import { openTestDatabase } from "../../platform/database/test-database.ts";
import { actsOn } from "../../../../test/audited-acts.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { createAttestationKeys } from "./attestation-keys.ts";
import {
  listAttestationKeys,
  revokeAttestationKey,
  rotateAttestationKey,
} from "./manage-attestation-keys.ts";

await using database = await openTestDatabase();
const lifetimeSeconds = 90 * 86_400;
await using ctx = await openContext(
  parseConfig({
    DATABASE_URL: database.url,
    MASTER_KEY: "11".repeat(32),
    LOG_LEVEL: "silent",
    KEY_LIFETIME_SECONDS: String(lifetimeSeconds),
    DATABASE_CONNECTIONS: "2",
  }),
);

interface Jwk extends JsonWebKey {
  kid: string;
  alg: string;
  n: string;
}

const published = async (keys: ReturnType<typeof createAttestationKeys>): Promise<Jwk[]> =>
  (JSON.parse((await keys.keySet()).body) as { keys: Jwk[] }).keys;

const partOf = (jwt: string, index: number): Record<string, unknown> =>
  JSON.parse(Buffer.from(jwt.split(".")[index] ?? "", "base64url").toString()) as Record<
    string,
    unknown
  >;

function isGenuine(jwt: string, keys: readonly Jwk[]): boolean {
  const { kid } = partOf(jwt, 0);
  const jwk = keys.find((each) => each.kid === kid);
  if (jwk === undefined) return false;
  const [header, claims, signature = ""] = jwt.split(".");
  const key = createPublicKey({ key: jwk, format: "jwk" });
  return verify(
    "sha256",
    Buffer.from(`${header}.${claims}`),
    key,
    Buffer.from(signature, "base64url"),
  );
}

async function advance(seconds: number): Promise<void> {
  await advanceClock(ctx.db, seconds);
  await ctx.clock.refresh();
}

const kidOf = async (status: string): Promise<string | undefined> =>
  (await listAttestationKeys(ctx)).find((key) => key.status === status)?.kid;

await test("processes that begin at once sign with one key, of RSA with 3072 bits, and publish it", async () => {
  await assert.rejects(rotateAttestationKey(ctx, "test"), /the first attestation makes/);
  assert.deepEqual(await listAttestationKeys(ctx), []);
  const processes = [createAttestationKeys(ctx), createAttestationKeys(ctx)];
  const signed = await Promise.all(
    processes.flatMap((keys) => [keys.sign(ctx.db, { a: 1 }), keys.sign(ctx.db, { a: 2 })]),
  );
  assert.equal(new Set(signed.map((jwt) => partOf(jwt, 0).kid)).size, 1);
  for (const keys of processes) {
    const set = await published(keys);
    assert.equal(set.length, 1);
    assert.equal(Buffer.from(set[0]?.n ?? "", "base64url").length * 8, 3072);
    assert.ok(signed.every((jwt) => isGenuine(jwt, set)));
  }
  const { alg, typ } = partOf(signed[0] ?? "", 0);
  assert.deepEqual({ alg, typ }, { alg: "RS256", typ: "kyb-attestation+jwt" });
});

await test("a successor is published before it signs, and what the old one signed stays good for 30 days", async () => {
  const keys = createAttestationKeys(ctx);
  const old = await keys.sign(ctx.db, {});
  await keys.rotate();
  assert.equal((await published(keys)).length, 2, "the next one is there for every cache");
  // Keys start at whole multiples of the lifetime.
  await advance(lifetimeSeconds - (ctx.clock.now() % lifetimeSeconds));
  const fresh = await keys.sign(ctx.db, {});
  assert.notEqual(partOf(fresh, 0).kid, partOf(old, 0).kid);
  await keys.rotate();
  await advance(30 * 86_400 - 60);
  assert.ok(isGenuine(old, await published(keys)) && isGenuine(fresh, await published(keys)));
  await advance(900);
  await keys.rotate();
  assert.ok(isGenuine(old, await published(keys)), "a verifier's clock may be slow");
  await advance(1100);
  const before = await listAttestationKeys(ctx);
  const aheadSeconds = 400 * 86_400;
  const now = (): number => ctx.clock.now() + aheadSeconds;
  const wrong = { ...ctx.clock, now, leadMs: () => aheadSeconds * 1000 };
  await createAttestationKeys({ ...ctx, clock: wrong }).rotate();
  assert.deepEqual(await listAttestationKeys(ctx), before, "a wrong clock retires no key");
  await keys.rotate();
  assert.equal(isGenuine(old, await published(keys)), false);
  assert.ok(isGenuine(fresh, await published(keys)));
  // Revoked too late for another key in its slot, so the previous key continues.
  await advance(lifetimeSeconds - (ctx.clock.now() % lifetimeSeconds) - 3600);
  await revokeAttestationKey(ctx, String(await kidOf("next")), "test");
  await advance(32 * 86_400);
  await keys.rotate();
  assert.ok(isGenuine(fresh, await published(keys)), "a revoked key retires no other");
  assert.equal(partOf(await keys.sign(ctx.db, {}), 0).kid, partOf(fresh, 0).kid);
});

await test("attestations are signed even if transactions hold every connection of the process", async () => {
  const keys = createAttestationKeys(ctx);
  await keys.sign(ctx.db, {});
  await advance(60);
  const allHold = Promise.withResolvers<void>();
  let holding = 0;
  const signInTransaction = async (): Promise<string> =>
    ctx.db.transaction(async (tx) => {
      holding += 1;
      if (holding === 2) allHold.resolve();
      await allHold.promise;
      return keys.sign(tx, {});
    });
  const signed = await Promise.all([signInTransaction(), signInTransaction()]);
  const set = await published(keys);
  assert.ok(signed.every((jwt) => isGenuine(jwt, set)));
});

await test("an operator has the published successor take over, and what the old key signed stays good", async () => {
  const keys = createAttestationKeys(ctx);
  const old = await keys.sign(ctx.db, {});
  await keys.rotate();
  await advance(1);
  const next = await kidOf("next");
  assert.equal(await rotateAttestationKey(ctx, "test"), next);
  assert.deepEqual(await actsOn(ctx.db, String(next)), ["test attestation-key.rotate"]);
  await keys.rotate();
  const fresh = await keys.sign(ctx.db, {});
  assert.equal(partOf(fresh, 0).kid, next);
  const set = await published(keys);
  assert.ok(isGenuine(old, set) && isGenuine(fresh, set));
  assert.ok(await kidOf("next"), "the one after it is published already");
});

await test("of two concurrent rotations one is refused", async () => {
  const keys = createAttestationKeys(ctx);
  await keys.sign(ctx.db, {});
  await keys.rotate();
  await advance(2);
  const both = await Promise.allSettled([1, 2].map(async () => rotateAttestationKey(ctx, "test")));
  const kids = both.flatMap((each) => (each.status === "fulfilled" ? [each.value] : []));
  assert.equal(new Set(kids).size, kids.length, "nobody is told of a rotation that was another's");
  assert.ok(kids.length > 0);
});

await test("a key is not revoked while something that it signed is being stored", async () => {
  await using observer = openDb({ ...database.connection, connections: 1 });
  const keys = createAttestationKeys(ctx);
  const { revoking } = await ctx.db.transaction(async (tx) => {
    const { kid } = partOf(await keys.sign(tx, {}), 0);
    const revoked = revokeAttestationKey(ctx, String(kid), "test");
    await untilBlocked(observer, tx, [revoked]);
    return { revoking: revoked };
  });
  await revoking;
});

await test("a revoked key is no longer published, and its published successor signs, also repeatedly", async () => {
  const keys = createAttestationKeys(ctx);
  for (let round = 0; round < 3; round += 1) {
    const old = await keys.sign(ctx.db, {});
    const [current, next] = [await kidOf("current"), await kidOf("next")];
    assert.equal(partOf(old, 0).kid, current);
    await revokeAttestationKey(ctx, String(current), "test");
    await keys.rotate();
    assert.equal(isGenuine(old, await published(keys)), false);
    const fresh = await keys.sign(ctx.db, {});
    assert.equal(partOf(fresh, 0).kid, next);
    assert.ok(isGenuine(fresh, await published(keys)));
    await assert.rejects(revokeAttestationKey(ctx, String(current), "test"), /no such live/);
    const acts = await actsOn(ctx.db, String(current));
    assert.equal(acts.filter((act) => act === "test attestation-key.revoke").length, 1);
  }
  const { length } = await listAttestationKeys(ctx);
  for (const { kid } of await listAttestationKeys(ctx))
    await revokeAttestationKey(ctx, kid, "test");
  assert.ok(length > 1);
  await keys.rotate();
  assert.ok(
    isGenuine(await keys.sign(ctx.db, {}), await published(keys)),
    "a fresh one where all are gone",
  );
});

await test("a process that missed the notification of a revocation signs with the successor nevertheless", async () => {
  const keys = createAttestationKeys(ctx);
  const old = await keys.sign(ctx.db, {});
  await keys.rotate();
  const next = await kidOf("next");
  await revokeAttestationKey(ctx, String(partOf(old, 0).kid), "test");
  assert.equal(partOf(await keys.sign(ctx.db, {}), 0).kid, next);
});

await test("keys are kept sealed, and found again after a restart", async () => {
  const before = await createAttestationKeys(ctx).sign(ctx.db, {});
  const after = await createAttestationKeys(ctx).sign(ctx.db, {});
  assert.equal(partOf(before, 0).kid, partOf(after, 0).kid);
  const rows = await ctx.db.query<{ private_sealed: Buffer }>({
    name: "",
    text: "select private_sealed from attestation_key",
    values: [],
  });
  for (const { private_sealed: sealed } of rows)
    assert.equal(sealed.includes(Buffer.from("300d06092a864886f70d0101010500", "hex")), false);
});
