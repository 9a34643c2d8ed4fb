import assert from "node:assert/strict";
import { test } from "node:test";
import {
  commitmentOf,
  fieldNames,
  type Info,
  leafOf,
  parentNames,
  verifyMerkleProof,
} from "@svc/protocol";
import { revokeCredential, withdrawCredential } from "./ending.ts";
import { createIssuer, distrustIssuer, getBuiltInIssuer } from "./issuers.ts";
import { giveCredential, inAYear, openTestCredentials, someUser } from "./test-credentials.ts";

await using world = await openTestCredentials();
const { ctx, live, sandbox } = world;
const demo = await getBuiltInIssuer(ctx, "demo", "live");
const sandboxIssuer = await getBuiltInIssuer(ctx, "sandbox", "sandbox");

const verifiedUrl = (user: string, ...items: string[]): string => {
  const query = new URLSearchParams({ user });
  for (const item of items) query.append("items", item);
  return `/api/v1/blockchain/verified?${query.toString()}`;
};
const askVerified = async (user: string, ...items: string[]) =>
  world.call({ method: "GET", url: verifiedUrl(user, ...items), as: live.apiKey });
const askValid = async (user: string, infos: readonly object[], as = live.apiKey) =>
  world.call({
    method: "POST",
    url: "/api/v1/blockchain/valid",
    as,
    body: { user, infos },
  });
const triple = ({ field, data, pepper }: Info) => ({ field, data, pepper: pepper.slice(2) });
const messageOf = (body: Record<string, unknown>): unknown =>
  (body["error"] as Record<string, unknown>)["message"];
const unknown = (field: string) => ({ unValids: [field], reasons: { [field]: "UNKNOWN" } });

await test("200 verified: an answer has both lists, the literal message, and the names as they were asked", async () => {
  const user = someUser();
  await giveCredential(world, demo, { user });
  const { status, body, headers } = await askVerified(user, "IDCARD_DOB", "EMAIL");
  assert.equal(status, 200);
  assert.deepEqual(body, {
    data: { verifiedItems: ["IDCARD_DOB"], unVerifiedItems: ["EMAIL"] },
    message: "Items were successfully checked.",
    success: true,
  });
  assert.equal(headers["cache-control"], "no-store");
});

await test("200 verified: a list that is empty is omitted, and a repeated name counts once", async () => {
  const user = someUser();
  await giveCredential(world, demo, { user });
  const all = await askVerified(user, "IDCARD_DOB", "IDCARD_DOB");
  assert.deepEqual(all.body["data"], { verifiedItems: ["IDCARD_DOB"] });
  const none = await askVerified(user, "EMAIL");
  assert.deepEqual(none.body["data"], { unVerifiedItems: ["EMAIL"] });
});

await test("200 verified: a parent name is satisfied by any one document and echoed as asked", async () => {
  const user = someUser();
  await giveCredential(world, demo, {
    user,
    document: "PASSPORT",
    fields: [{ field: "PASSPORT_DOB", data: "1990-05-17" }],
  });
  const { body } = await askVerified(user, "DOB_PARENT_FIELD", "NAME_PARENT_FIELD");
  assert.deepEqual(body["data"], {
    verifiedItems: ["DOB_PARENT_FIELD"],
    unVerifiedItems: ["NAME_PARENT_FIELD"],
  });
});

await test("200 verified: every name of the catalogue may be asked at once", async () => {
  const names = [...fieldNames, ...parentNames];
  const { status, body } = await askVerified(someUser(), ...names);
  assert.equal(status, 200);
  assert.deepEqual(body["data"], { unVerifiedItems: names });
});

await test("200 verified: the identity is taken in any spelling", async () => {
  const user = someUser();
  await giveCredential(world, demo, { user });
  for (const spelling of [user.slice(2), user.toUpperCase().replace("0X", "0x")]) {
    const { body } = await askVerified(spelling, "IDCARD_DOB");
    assert.deepEqual(body["data"], { verifiedItems: ["IDCARD_DOB"] });
  }
});

await test("200 verified: a credential counts once its attestation is final", async () => {
  const user = someUser();
  const { held } = await giveCredential(world, demo, { user, settles: false });
  const born = held.filter(({ field }) => field === "IDCARD_DOB").map(triple);
  assert.deepEqual((await askVerified(user, "IDCARD_DOB")).body["data"], {
    unVerifiedItems: ["IDCARD_DOB"],
  });
  assert.deepEqual((await askValid(user, born)).body["data"], unknown("IDCARD_DOB"));
  await world.settle();
  assert.deepEqual((await askValid(user, born)).body["data"], { valids: ["IDCARD_DOB"] });
  assert.deepEqual((await askVerified(user, "IDCARD_DOB")).body["data"], {
    verifiedItems: ["IDCARD_DOB"],
  });
});

await test("400 verified, proof and valid: a name outside the catalogue has the reason invalid_fields", async () => {
  const user = someUser();
  const read = async (path: string, field: string) =>
    world.call({
      method: "GET",
      url: `${path}?user=${user}&items=${encodeURIComponent(field)}`,
      as: live.apiKey,
    });
  for (const [field, quoted] of [
    ["SHOE_SIZE", "SHOE_SIZE"],
    ["", '""'],
    [`${"a".repeat(63)}\u{1f600}`, `${"a".repeat(63)}\ufffd`],
  ] as const)
    for (const { status, body } of [
      await read("/api/v1/blockchain/verified", field),
      await read("/api/v1/blockchain/proof", field),
      await world.call({
        method: "POST",
        url: "/api/v1/blockchain/valid",
        as: live.apiKey,
        body: { user, infos: [{ field, data: "1", pepper: "ab" }] },
      }),
    ]) {
      const { reason, message } = body["error"] as Record<string, unknown>;
      assert.deepEqual([status, reason], [400, "invalid_fields"]);
      assert.equal(message, `user fields (${quoted}) are invalid fields`);
    }
});

await test("400 verified: a call without items or user, with an unknown name or a bad or repeated user is refused", async () => {
  const user = someUser();
  const cases: [string, RegExp][] = [
    [`/api/v1/blockchain/verified?user=${user}`, /^Invalid Request: items/],
    ["/api/v1/blockchain/verified?items=EMAIL", /^Invalid Request: user/],
    [verifiedUrl(user, "EMAIL", "SHOE_SIZE"), /^user fields \(SHOE_SIZE\) are invalid fields$/],
    [verifiedUrl(user, "email"), /^user fields \(email\) are invalid fields$/],
    [verifiedUrl("0x12", "EMAIL"), /^Invalid Request: user/],
    [`${verifiedUrl(user, "EMAIL")}&user=${user}`, /^Invalid Request: user/],
  ];
  for (const [url, message] of cases) {
    const { status, body } = await world.call({ method: "GET", url, as: live.apiKey });
    assert.equal(status, 400, url);
    assert.match(String(messageOf(body)), message);
  }
});

await test("401 verified and valid: a call without a key is refused, and so is a key behind Bearer", async () => {
  const url = verifiedUrl(someUser(), "EMAIL");
  assert.equal((await world.call({ method: "GET", url })).status, 401);
  const as = `Bearer ${live.apiKey}`;
  assert.equal((await world.call({ method: "GET", url, as })).status, 401);
  const valid = await world.call({ method: "POST", url: "/api/v1/blockchain/valid", body: {} });
  assert.equal(valid.status, 401);
});

await test("405: POST on verified and GET on valid are refused in the envelope, with the method that is taken", async () => {
  const call = { url: "/api/v1/blockchain/verified", as: live.apiKey, body: {} };
  const post = await world.call({ ...call, method: "POST" });
  assert.equal(post.status, 405);
  assert.equal(post.headers["allow"], "GET");
  assert.equal(post.body["success"], false);
  const get = await world.call({ method: "GET", url: "/api/v1/blockchain/valid", as: live.apiKey });
  assert.equal(get.status, 405);
  assert.equal(get.headers["allow"], "POST");
  assert.equal(get.body["success"], false);
});

await test("200 valid: an answer has the fields that are still valid, the literal message, and no empty list", async () => {
  const user = someUser();
  const { held } = await giveCredential(world, demo, { user });
  const { status, body } = await askValid(user, held.map(triple));
  assert.equal(status, 200);
  assert.deepEqual(body, {
    data: { valids: held.map(({ field }) => field) },
    message: "user was successfully checked.",
    success: true,
  });
});

await test("200 valid: a pepper is taken with or without 0x, in any case", async () => {
  const user = someUser();
  const [first] = (await giveCredential(world, demo, { user })).held;
  assert.ok(first);
  for (const pepper of [first.pepper, first.pepper.slice(2).toUpperCase()]) {
    const { body } = await askValid(user, [{ ...first, pepper }]);
    assert.deepEqual(body["data"], { valids: [first.field] });
  }
});

await test("200 valid: a bit flipped anywhere in a triple, or another user or field, is UNKNOWN", async () => {
  const user = someUser();
  const { held } = await giveCredential(world, demo, { user });
  const born = held.find(({ field }) => field === "IDCARD_DOB");
  assert.ok(born);
  const pepper = born.pepper.slice(2);
  for (let at = 0; at < pepper.length; at += 1) {
    const flipped = (Number.parseInt(pepper.charAt(at), 16) ^ 1).toString(16);
    const other = pepper.slice(0, at) + flipped + pepper.slice(at + 1);
    const { body } = await askValid(user, [{ ...born, pepper: other }]);
    assert.deepEqual(body["data"], unknown("IDCARD_DOB"));
  }
  for (const wrong of [
    { ...triple(born), data: "1990-05-18" },
    { ...triple(born), data: "" },
    { ...triple(born), pepper: "00" },
  ])
    assert.deepEqual((await askValid(user, [wrong])).body["data"], unknown("IDCARD_DOB"));
  const asOther = { ...triple(born), field: "PASSPORT_DOB" };
  assert.deepEqual((await askValid(user, [asOther])).body["data"], unknown("PASSPORT_DOB"));
  assert.deepEqual(
    (await askValid(someUser(), [triple(born)])).body["data"],
    unknown("IDCARD_DOB"),
  );
});

await test("200 valid: a field is EXPIRED from the second of its end on", async () => {
  const user = someUser();
  const expiresAt = ctx.clock.now() + 100;
  const { held } = await giveCredential(world, demo, { user, expiresAt });
  const born = held.filter(({ field }) => field === "IDCARD_DOB").map(triple);
  world.advance(99);
  assert.deepEqual((await askValid(user, born)).body["data"], { valids: ["IDCARD_DOB"] });
  world.advance(1);
  assert.deepEqual((await askValid(user, born)).body["data"], {
    unValids: ["IDCARD_DOB"],
    reasons: { IDCARD_DOB: "EXPIRED" },
  });
  assert.deepEqual((await askVerified(user, "IDCARD_DOB")).body["data"], {
    unVerifiedItems: ["IDCARD_DOB"],
  });
});

const revoked = { unValids: ["EMAIL"], reasons: { EMAIL: "REVOKED" } };
const email = { document: "CONTACT", fields: [{ field: "EMAIL", data: "a@example.com" }] };

await test("200 valid: a field is REVOKED as soon as its issuer revokes it, and its leaf is announced once", async () => {
  const user = someUser();
  const { id, held } = await giveCredential(world, demo, { user, ...email });
  await revokeCredential(ctx, demo, id);
  assert.deepEqual((await askValid(user, held.map(triple))).body["data"], revoked);
  assert.deepEqual((await askVerified(user, "EMAIL")).body["data"], { unVerifiedItems: ["EMAIL"] });
  const [told] = world.invalidated.splice(0);
  const leaf = leafOf({
    user,
    field: "EMAIL",
    expiresAt: inAYear,
    commitment: commitmentOfHeld(held),
  });
  assert.deepEqual(told, { leaf, user, field: "EMAIL" });
  await revokeCredential(ctx, demo, id);
  assert.deepEqual(world.invalidated, [], "a second revocation tells nobody");
});

function commitmentOfHeld(held: readonly Info[]): `0x${string}` {
  const [first] = held;
  assert.ok(first);
  return commitmentOf(first);
}

await test("200 valid: a field is REVOKED when its user has withdrawn it", async () => {
  const user = someUser();
  const { id, held } = await giveCredential(world, demo, { user, ...email });
  await withdrawCredential(ctx, user, id);
  assert.deepEqual((await askValid(user, held.map(triple))).body["data"], revoked);
  assert.equal(world.invalidated.splice(0).length, 1);
});

await test("200 valid: a field is REVOKED once its issuer is distrusted from before it, and earlier ones stay valid", async () => {
  const issuer = await createIssuer(ctx, { name: "Doubtful", environment: "live" }, "test");
  const [early, late] = [someUser(), someUser()];
  const before = await giveCredential(world, issuer, { user: early, ...email });
  world.advance(60);
  const from = ctx.clock.now();
  const after = await giveCredential(world, issuer, { user: late, ...email });
  world.advance(60);
  await distrustIssuer(ctx, { issuerId: issuer.id, from }, "test");
  assert.deepEqual((await askValid(late, after.held.map(triple))).body["data"], revoked);
  const kept = await askValid(early, before.held.map(triple));
  assert.deepEqual(kept.body["data"], { valids: ["EMAIL"] });
});

await test("200 valid: every leaf kept for the field is tried, old ones too", async () => {
  const user = someUser();
  const first = await giveCredential(world, demo, { user, ...email });
  const second = await giveCredential(world, demo, {
    user,
    ...email,
    fields: [{ field: "EMAIL", data: "b@example.com" }],
  });
  const both = [...first.held, ...second.held].map(triple);
  assert.deepEqual((await askValid(user, both)).body["data"], { valids: ["EMAIL"] });
  await revokeCredential(ctx, demo, first.id);
  assert.deepEqual((await askValid(user, both)).body["data"], {
    valids: ["EMAIL"],
    unValids: ["EMAIL"],
    reasons: { EMAIL: "REVOKED" },
  });
  world.invalidated.splice(0);
});

await test("400 valid: a malformed body, pepper, identity or field is refused, and the message names it", async () => {
  const user = someUser();
  const info = { field: "EMAIL", data: "a@example.com", pepper: "ab" };
  const bodies: [unknown, RegExp][] = [
    [{}, /^Invalid Request: user/],
    [{ user }, /^Invalid Request: infos/],
    [{ user, infos: [] }, /^Invalid Request: infos/],
    [{ user, infos: [{ ...info, pepper: "xy" }] }, /^Invalid Request: infos\[0\].pepper/],
    [{ user, infos: [{ ...info, pepper: "abc" }] }, /^Invalid Request: infos\[0\].pepper/],
    [{ user, infos: [{ ...info, data: 1 }] }, /^Invalid Request: infos/],
    [{ user: "alice", infos: [info] }, /^Invalid Request: user/],
    [{ user, infos: [{ ...info, field: "SHOE" }] }, /^user fields \(SHOE\) are invalid fields$/],
    [
      { user, infos: [{ ...info, field: "DOB_PARENT_FIELD" }] },
      /^user fields \(DOB_PARENT_FIELD\) are invalid fields$/,
    ],
  ];
  for (const [body, message] of bodies) {
    const answer = await world.call({
      method: "POST",
      url: "/api/v1/blockchain/valid",
      as: live.apiKey,
      body,
    });
    assert.equal(answer.status, 400);
    assert.match(String(messageOf(answer.body)), message);
  }
});

const repeat = <Item>(item: Item, count: number): Item[] =>
  Array.from({ length: count }, () => item);

await test("200 and 413 valid: images fit, up to 8 MiB and 400 infos are read, and unknown members are ignored", async () => {
  const user = someUser();
  const image = { field: "SELFIE_IMAGE", pepper: "ab", data: "A".repeat(1_000_000), more: 1 };
  const large = await askValid(user, repeat(image, 7));
  assert.deepEqual(large.body["data"], unknown("SELFIE_IMAGE"));
  assert.equal((await askValid(user, repeat(image, 9))).status, 413);
  const small = { ...image, data: "A" };
  assert.equal((await askValid(user, repeat(small, 400))).status, 200);
  assert.equal((await askValid(user, repeat(small, 401))).status, 400);
});

await test("no sandbox value is visible under a live key, nor the reverse", async () => {
  const user = someUser();
  const mine = await giveCredential(world, sandboxIssuer, { user, ...email });
  const theirs = await giveCredential(world, demo, { user });
  const seen = await askVerified(user, "EMAIL", "IDCARD_DOB");
  assert.deepEqual(seen.body["data"], {
    verifiedItems: ["IDCARD_DOB"],
    unVerifiedItems: ["EMAIL"],
  });
  assert.deepEqual((await askValid(user, mine.held.map(triple))).body["data"], unknown("EMAIL"));
  const inSandbox = await askValid(user, mine.held.map(triple), sandbox.apiKey);
  assert.deepEqual(inSandbox.body["data"], { valids: ["EMAIL"] });
  const born = theirs.held.filter(({ field }) => field === "IDCARD_DOB").map(triple);
  const crossed = await askValid(user, born, sandbox.apiKey);
  assert.deepEqual(crossed.body["data"], unknown("IDCARD_DOB"));
});

async function counted(call: () => Promise<{ body: unknown }>) {
  const before = ctx.db.callsTotal;
  const { body } = await call();
  return { body, calls: ctx.db.callsTotal - before };
}

await test("whoever may not ask gets what a user without credentials gets, after as many database calls", async () => {
  const user = someUser();
  const { held } = await giveCredential(world, demo, { user, ...email });
  const infos = held.map(triple);
  await askVerified(user, "EMAIL");
  const none = {
    verified: await counted(async () => askVerified(someUser(), "EMAIL")),
    valid: await counted(async () => askValid(someUser(), infos)),
  };
  world.setMayAsk(() => false);
  assert.deepEqual(await counted(async () => askVerified(user, "EMAIL")), none.verified);
  assert.deepEqual(await counted(async () => askValid(user, infos)), none.valid);
  assert.equal(none.verified.calls, 1);
  assert.equal(none.valid.calls, 1);
  world.setMayAsk(() => true);
});

await test("200 proof: an answer has what leads from a delivered field to the registry, and nothing else", async () => {
  const user = someUser();
  const { held, root } = await giveCredential(world, demo, { user, ...email });
  const [first] = held;
  assert.ok(first);
  const commitment = commitmentOf(first);
  const leaf = leafOf({ user, field: "EMAIL", commitment, expiresAt: inAYear });
  const url = `/api/v1/blockchain/proof?user=${user}&items=EMAIL`;
  const before = await world.call({ method: "GET", url, as: live.apiKey });
  assert.deepEqual(before.body["data"], {}, "nothing was delivered");
  world.setDelivered([leaf]);
  const { status, body } = await world.call({ method: "GET", url, as: live.apiKey });
  assert.equal(status, 200);
  const [proof] = (body["data"] as { proofs: Record<string, unknown>[] }).proofs;
  assert.ok(proof);
  assert.deepEqual(
    { ...proof, proof: undefined, transactionHash: undefined },
    {
      field: "EMAIL",
      commitment,
      expiresAt: inAYear,
      leaf,
      root,
      proof: undefined,
      issuer: demo.address,
      transactionHash: undefined,
      chainId: 31_337,
      registry: `0x${"a1".repeat(20)}`,
    },
  );
  assert.match(String(proof["transactionHash"]), /^0x[0-9a-f]{64}$/);
  assert.ok(verifyMerkleProof({ leaf, root, proof: proof["proof"] as `0x${string}`[] }));
  const crossed = await world.call({ method: "GET", url, as: sandbox.apiKey });
  assert.deepEqual(crossed.body["data"], {});
  world.setMayAsk(() => false);
  const refused = await world.call({ method: "GET", url, as: live.apiKey });
  assert.deepEqual(refused.body["data"], {});
  world.setMayAsk(() => true);
  world.setDelivered([]);
});
