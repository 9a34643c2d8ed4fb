import assert from "node:assert/strict";
import { test } from "node:test";
import { actsOn } from "../../../test/audited-acts.ts";
import { rewrapAll } from "../platform/cryptography/sealed-columns.ts";
import { createSeal } from "../platform/cryptography/seal.ts";
import { credentialSealedColumns } from "./index.ts";
import { issueCredential } from "./issue.ts";
import { getBuiltInIssuer } from "./issuers.ts";
import { giveCredential, inAYear, openTestCredentials, someUser } from "./test-credentials.ts";
import { dumpDatabase } from "./test-credentials-store.ts";

await using world = await openTestCredentials();
const { ctx } = world;
const demo = await getBuiltInIssuer(ctx, "demo", "live");

const list = async (user: string, query = "") =>
  world.call({ method: "GET", url: `/w/credentials${query}`, as: user });
const post = async (user: string, path: string) =>
  world.call({ method: "POST", url: `/w/credentials/${path}`, as: user, body: {} });
const itemsOf = (body: Record<string, unknown>) =>
  body["items"] as { id: string; status: string; collected: boolean; fields: object[] }[];
const reasonOf = (body: Record<string, unknown>): unknown =>
  (body["error"] as Record<string, unknown>)["reason"];

await test("200 list: a credential shows values and peppers until it is collected, then names alone", async () => {
  const user = someUser();
  const { id } = await issueCredential(ctx, demo, {
    user,
    document: "CONTACT",
    fields: [{ field: "PHONE", data: "+41791234567" }],
    expiresAt: inAYear,
  });
  const [before] = itemsOf((await list(user)).body);
  assert.ok(before);
  assert.deepEqual(
    { ...before, fields: [], root: "", issuedAt: 0 },
    {
      id,
      environment: "live",
      issuer: { id: demo.address, name: "Demo issuer" },
      document: "CONTACT",
      status: "pending",
      collected: false,
      fields: [],
      root: "",
      issuedAt: 0,
    },
  );
  const [field] = before.fields as Record<string, unknown>[];
  assert.equal(field?.["data"], "+41791234567");
  assert.match(String(field?.["pepper"]), /^0x[0-9a-f]{64}$/);
  assert.equal((await post(user, `${id}/collected`)).status, 204);
  const [after] = itemsOf((await list(user)).body);
  assert.equal(after?.collected, true);
  assert.deepEqual(after?.fields, [{ field: "PHONE", expiresAt: inAYear }]);
  assert.equal((await post(user, `${id}/collected`)).status, 204, "again is no fault");
});

await test("before collection values stand sealed, after it nowhere", async () => {
  const user = someUser();
  const canaries = ["Canary Name 7719", "1931-03-07", "CANARYNUMBER55"];
  const given = {
    user,
    document: "IDCARD",
    fields: [
      { field: "IDCARD_NAME", data: canaries[0] ?? "" },
      { field: "IDCARD_DOB", data: canaries[1] ?? "" },
      { field: "IDCARD_DOCUMENT_NUMBER", data: canaries[2] ?? "" },
    ],
    expiresAt: inAYear,
  };
  const key = { key: "canary", body: JSON.stringify(given) };
  const { id } = await issueCredential(ctx, demo, { ...given, idempotency: key });
  await world.settle();
  const [item] = itemsOf((await list(user)).body);
  const fields = (item?.fields ?? []) as { pepper: string }[];
  assert.equal(fields.length, 9);
  const peppers = fields.map(({ pepper }) => pepper.slice(2));
  const secrets = [
    ...canaries,
    ...canaries.map((text) => Buffer.from(text).toString("hex")),
    ...canaries.map((text) => Buffer.from(text).toString("base64").slice(0, -4)),
    ...peppers,
  ];
  const find = (dump: string) => secrets.filter((secret) => dump.includes(secret));
  assert.deepEqual(find(await dumpDatabase(ctx.db)), []);
  await post(user, `${id}/collected`);
  const dump = await dumpDatabase(ctx.db);
  assert.deepEqual(find(dump), []);
  assert.ok(dump.includes(id), "the dump sees the credential itself");
});

await test("a sealed credential goes along when the master key is changed", async () => {
  const user = someUser();
  await issueCredential(ctx, demo, {
    user,
    document: "CONTACT",
    fields: [{ field: "PHONE", data: "+41791234567" }],
    expiresAt: inAYear,
  });
  const seal = createSeal(["6b".repeat(32), "5a".repeat(32)]);
  const done = await rewrapAll({ db: ctx.db, seal }, credentialSealedColumns, { batch: 10 });
  assert.ok(done.some(({ table, rewrapped }) => table === "credential" && rewrapped > 0));
  // Back again, since the other tests read with the former key.
  const back = createSeal(["5a".repeat(32), "6b".repeat(32)]);
  await rewrapAll({ db: ctx.db, seal: back }, credentialSealedColumns, { batch: 10 });
  const [item] = itemsOf((await list(user)).body);
  const [field] = (item?.fields ?? []) as { data?: string }[];
  assert.equal(field?.data, "+41791234567");
});

await test("200 withdraw: a credential ends at once with its values, and withdrawing it again is no fault", async () => {
  const user = someUser();
  const fields = [{ field: "PHONE", data: "+41791234567" }];
  const given = { user, document: "CONTACT", fields, expiresAt: inAYear };
  const { id } = await issueCredential(ctx, demo, given);
  assert.ok("data" in (itemsOf((await list(user)).body)[0]?.fields[0] ?? {}));
  for (let time = 0; time < 2; time += 1) {
    const { status, body } = await post(user, `${id}/withdraw`);
    assert.deepEqual([status, body], [200, { status: "withdrawn" }]);
  }
  assert.deepEqual((await actsOn(ctx.db, id)).slice(1), [`${user} credential.withdraw`]);
  const [item] = itemsOf((await list(user)).body);
  assert.equal(item?.status, "withdrawn");
  assert.deepEqual(item.fields, [{ field: "PHONE", expiresAt: inAYear }]);
});

await test("404: another user's credential is not seen, collected or withdrawn", async () => {
  const user = someUser();
  const stranger = someUser();
  const { id } = await giveCredential(world, demo, { user });
  assert.deepEqual(itemsOf((await list(stranger)).body), []);
  for (const verb of ["collected", "withdraw"]) {
    const { status, body } = await post(stranger, `${id}/${verb}`);
    assert.deepEqual([status, reasonOf(body)], [404, "credential_not_found"]);
  }
  assert.equal(itemsOf((await list(user)).body)[0]?.status, "live");
});

await test("401: a call without a wallet session is refused", async () => {
  assert.equal((await world.call({ method: "GET", url: "/w/credentials" })).status, 401);
  const path = "/w/credentials/0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b5/withdraw";
  assert.equal((await world.call({ method: "POST", url: path, body: {} })).status, 401);
});

await test("200 list: pages show the newest first and none twice, and one with large values ends early", async () => {
  const user = someUser();
  const jpeg = Buffer.concat([Buffer.from([0xff, 0xd8, 0xff]), Buffer.alloc(786_400)]);
  const image = { field: "SELFIE_IMAGE", data: jpeg.toString("base64") };
  for (let index = 0; index < 10; index += 1) {
    world.advance(1);
    await issueCredential(ctx, demo, {
      user,
      document: "SELFIE",
      fields: [image],
      expiresAt: inAYear,
    });
  }
  const seen: string[] = [];
  const sizes: number[] = [];
  let cursor: unknown = "";
  while (typeof cursor === "string") {
    const { body } = await list(user, `?limit=9${cursor === "" ? "" : `&cursor=${cursor}`}`);
    sizes.push(itemsOf(body).length);
    seen.push(...itemsOf(body).map(({ id }) => id));
    cursor = body["nextCursor"];
  }
  assert.equal(new Set(seen).size, 10);
  assert.deepEqual(seen, seen.toSorted().toReversed());
  assert.deepEqual(sizes, [7, 3]);
});
