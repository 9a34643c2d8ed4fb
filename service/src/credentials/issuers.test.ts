import assert from "node:assert/strict";
import { test } from "node:test";
import { issuerIdentity } from "@svc/protocol";
import { Problem, type Reason } from "../platform/http/problems.ts";
import {
  createIssuer,
  createIssuerKey,
  distrustIssuer,
  ensureBuiltInIssuers,
  getBuiltInIssuer,
  getIssuer,
  listIssuerKeys,
  listIssuers,
  revokeIssuerKey,
} from "./issuers.ts";
import { builtInIssuers } from "./issuer.ts";
import { openTestCredentials } from "./test-credentials.ts";
import { dumpDatabase } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;

const refusedWith =
  (reason: Reason) =>
  (error: unknown): boolean =>
    error instanceof Problem && error.reason === reason;

await test("an issuer's address on chain is derived from its id, or its own", async () => {
  const derived = await createIssuer(ctx, { name: "Ident AG", environment: "live" }, "test");
  assert.equal(derived.address, issuerIdentity(derived.id));
  const address = "0x52908400098527886E0F7030069857D2E4169EE7";
  const own = await createIssuer(ctx, { name: "Own", environment: "sandbox", address }, "test");
  assert.equal(own.address, address.toLowerCase());
  const again = createIssuer(ctx, { name: "Twice", environment: "live", address }, "test");
  await assert.rejects(again, refusedWith("invalid_request"));
  const zero = { name: "Zero", environment: "live", address: `0x${"0".repeat(40)}` };
  await assert.rejects(createIssuer(ctx, zero, "test"), refusedWith("invalid_request"));
});

await test("the built-in issuers exist once, and the demo issuer only in dev", async () => {
  await Promise.all([ensureBuiltInIssuers(ctx), ensureBuiltInIssuers(ctx)]);
  const builtIn = (await listIssuers(ctx)).filter(({ kind }) => kind !== "api");
  assert.deepEqual(builtIn.map(({ kind, environment }) => `${kind} ${environment}`).toSorted(), [
    "demo live",
    "email live",
    "email sandbox",
    "sandbox sandbox",
  ]);
  await using bare = await openTestCredentials();
  const production = {
    ...bare.ctx,
    config: { ...bare.ctx.config, profile: "production" as const },
  };
  await ensureBuiltInIssuers(production);
  const left = await getBuiltInIssuer(production, "demo", "live");
  assert.equal(left.distrustedFrom, 1, "one that dev left behind counts for nothing");
  assert.ok((await dumpDatabase(bare.ctx.db)).includes(",issuer.distrust,"));
  assert.ok(builtInIssuers("production").every(({ kind }) => kind !== "demo"));
});

await test("a key is shown once, kept as a MAC, listed without it, and ends when it is revoked", async () => {
  const { id: issuerId } = await createIssuer(ctx, { name: "Keys", environment: "live" }, "test");
  const other = await createIssuer(ctx, { name: "Other", environment: "live" }, "test");
  await createIssuerKey(ctx, { issuerId: other.id, name: "another's" }, "test");
  const made = await createIssuerKey(ctx, { issuerId, name: "backend" }, "test");
  assert.match(made.key, /^svc_issuer_[0-9A-Za-z]{12}_[0-9A-Za-z]{49}$/);
  assert.ok(!(await dumpDatabase(ctx.db)).includes(made.key.slice(25)));
  const [id, createdAt] = [made.id, ctx.clock.now()];
  const listed = { id, issuerId, name: "backend", createdAt, lastUsedAt: null };
  assert.deepEqual(await listIssuerKeys(ctx, issuerId), [listed]);
  await revokeIssuerKey(ctx, made.id, "test");
  assert.deepEqual(await listIssuerKeys(ctx, issuerId), []);
  await assert.rejects(revokeIssuerKey(ctx, made.id, "test"), refusedWith("apikey_not_found"));
});

await test("an issuer has twenty live keys at most, and a built-in one none", async () => {
  const { id: issuerId } = await createIssuer(ctx, { name: "Many", environment: "live" }, "test");
  const made = await Promise.allSettled(
    Array.from({ length: 22 }, async () => createIssuerKey(ctx, { issuerId, name: "k" }, "test")),
  );
  assert.equal(made.filter(({ status }) => status === "fulfilled").length, 20);
  const demo = await getBuiltInIssuer(ctx, "demo", "live");
  const own = createIssuerKey(ctx, { issuerId: demo.id, name: "k" }, "test");
  await assert.rejects(own, refusedWith("invalid_request"));
});

await test("distrust only grows, never reaches into the future, and every act is audited", async () => {
  const { id: issuerId } = await createIssuer(ctx, { name: "Bad", environment: "live" }, "test");
  const now = ctx.clock.now();
  for (const wrong of [now + 1, 0])
    await assert.rejects(
      distrustIssuer(ctx, { issuerId, from: wrong }, "test"),
      refusedWith("invalid_request"),
    );
  const from = async (time: number) => distrustIssuer(ctx, { issuerId, from: time }, "test");
  assert.equal((await from(now - 10)).distrustedFrom, now - 10);
  assert.equal((await from(now)).distrustedFrom, now - 10);
  assert.equal((await from(now - 20)).distrustedFrom, now - 20);
  assert.equal((await getIssuer(ctx, issuerId)).distrustedFrom, now - 20);
  const dump = await dumpDatabase(ctx.db);
  for (const action of [
    "issuer.create",
    "issuer-key.create",
    "issuer-key.revoke",
    "issuer.distrust",
  ])
    assert.ok(dump.includes(`,${action},`), action);
});

await test("a distrusted issuer gets no keys any more", async () => {
  const { id: issuerId } = await createIssuer(ctx, { name: "Gone", environment: "live" }, "test");
  await distrustIssuer(ctx, { issuerId, from: ctx.clock.now() }, "test");
  const key = createIssuerKey(ctx, { issuerId, name: "k" }, "test");
  await assert.rejects(key, refusedWith("invalid_request"));
});

await test("404: an issuer that does not exist is not found", async () => {
  for (const id of ["0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b5", "x"])
    await assert.rejects(getIssuer(ctx, id), refusedWith("issuer_not_found"));
});
