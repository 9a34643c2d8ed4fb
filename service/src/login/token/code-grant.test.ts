import assert from "node:assert/strict";
import { after, test } from "node:test";
import { sql } from "../../platform/database/db.ts";
import { endSession } from "../session/session-end.ts";
import { sha256 } from "../../platform/cryptography/sha256.ts";
import {
  addClient,
  addCode,
  familyStateOf,
  openTestLogin,
  redeem,
  redirectUri,
  refresh,
  refused,
} from "../test-login.ts";
import { untilBlocked } from "../../../../test/lock-waits.ts";
import { untilAvailable } from "../../../../test/try-again.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const secondUri = "https://shop.example/second";
const client = await addClient(login, { redirectUris: [redirectUri, secondUri] });

const challengeOf = (verifier: string): string => sha256(verifier).toString("base64url");

test("a code is refused for every request that does not fit its login", async (t) => {
  const other = await addClient(login);
  const cases: [
    string,
    Parameters<typeof addCode>[2],
    Record<string, string | readonly string[] | undefined>,
    number,
    string,
  ][] = [
    ["no code", {}, { code: undefined }, 400, "invalid_request"],
    ["an empty code", {}, { code: "" }, 400, "invalid_request"],
    ["another code", {}, { code: "x".repeat(43) }, 400, "invalid_grant"],
    ["an over-long code", {}, { code: "x".repeat(5000) }, 400, "invalid_request"],
    ["two codes", {}, { code: ["a", "b"] }, 400, "invalid_request"],
    ["no redirect_uri", {}, { redirect_uri: undefined }, 400, "invalid_request"],
    [
      "another redirect_uri",
      {},
      { redirect_uri: "https://shop.example/callback/" },
      400,
      "invalid_grant",
    ],
    ["the other redirect_uri of its client", {}, { redirect_uri: secondUri }, 400, "invalid_grant"],
    ["no verifier", {}, { code_verifier: undefined }, 400, "invalid_grant"],
    ["another verifier", {}, { code_verifier: "y".repeat(43) }, 400, "invalid_grant"],
    ["a short verifier", {}, { code_verifier: "y".repeat(42) }, 400, "invalid_request"],
    ["a verifier without challenge", { codeChallenge: undefined }, {}, 400, "invalid_grant"],
    [
      "an audience that was not granted",
      {},
      { audience: "https://api.example.com" },
      400,
      "invalid_target",
    ],
    [
      "a resource that was not granted",
      {},
      { resource: "https://other.example" },
      400,
      "invalid_target",
    ],
    ["another grant", {}, { grant_type: "password" }, 400, "unsupported_grant_type"],
    ["no grant", {}, { grant_type: undefined }, 400, "invalid_request"],
    [
      "two grants",
      {},
      { grant_type: ["authorization_code", "refresh_token"] },
      400,
      "invalid_request",
    ],
    [
      "a code of a login bound to another DPoP key",
      { dpopJkt: "k".repeat(43) },
      {},
      400,
      "invalid_grant",
    ],
  ];
  for (const [name, request, form, status, error] of cases) {
    await t.test(`a token request with ${name} is refused as ${error}`, async () => {
      const code = await addCode(login, client, request);
      refused(await redeem(login, client, { ...code, form }), status, error);
    });
  }
  await t.test("a token request with two codes is told which parameter is at fault", async () => {
    const answer = await redeem(login, client, {
      ...(await addCode(login, client)),
      form: { code: ["a", "b"] },
    });
    assert.match(String(answer.body["error_description"]), /\bcode\b/);
  });
  await t.test(
    "a token request of another client is refused, and its own client still gets tokens",
    async () => {
      const code = await addCode(login, client);
      refused(await redeem(login, other, code), 400, "invalid_grant");
      assert.equal((await redeem(login, client, code)).status, 200);
    },
  );
  await t.test(
    "a verifier whose hash begins or ends as the challenge does is another",
    async () => {
      const code = await addCode(login, client);
      const challenge = challengeOf(code.verifier);
      for (const isAlike of [
        (hash: string): boolean => hash.startsWith(challenge.slice(0, 2)),
        (hash: string): boolean => hash.endsWith(challenge.slice(-1)),
      ]) {
        let alike = "";
        for (let at = 0; !isAlike(challengeOf(alike)); at += 1)
          alike = String(at).padStart(43, "v");
        const form = { code_verifier: alike };
        refused(await redeem(login, client, { ...code, form }), 400, "invalid_grant");
      }
      assert.equal((await redeem(login, client, code)).status, 200);
    },
  );
  await t.test("a code of a login without challenge needs no verifier", async () => {
    const code = await addCode(login, client, { codeChallenge: undefined });
    assert.equal(
      (await redeem(login, client, { ...code, form: { code_verifier: undefined } })).status,
      200,
    );
  });
});

test("a login's id, which its QR code shows, is no code, and guessing with it revokes nothing", async () => {
  const code = await addCode(login, client);
  const [loginId = ""] = code.code.split(".");
  const guesses = [loginId, `${loginId}.`, `${loginId}.${"A".repeat(43)}`, `${code.code}A`];
  const refuseAll = async () => {
    for (const guess of guesses)
      refused(
        await redeem(login, client, { ...code, form: { code: guess } }),
        400,
        "invalid_grant",
      );
  };
  await refuseAll();
  const { status, body } = await redeem(login, client, code);
  assert.equal(status, 200);
  await refuseAll();
  assert.equal(await familyStateOf(login, body["access_token"]), null);
});

test("a code dies after its lifetime", async () => {
  const code = await addCode(login, client);
  login.clock.advance(60);
  refused(await redeem(login, client, code), 400, "invalid_grant");
});

test("a code is of no use once its session has ended", async () => {
  const code = await addCode(login, client);
  await login.ctx.db.transaction(async (tx) => endSession(tx, code.sessionId, login.clock.now()));
  refused(await redeem(login, client, code), 400, "invalid_grant");
});

test("a code's reuse revokes its tokens, but only if it comes from its client with its verifier", async () => {
  const code = await addCode(login, client);
  const first = await redeem(login, client, code);
  const other = await addClient(login);
  refused(await redeem(login, other, code), 400, "invalid_grant");
  refused(
    await redeem(login, client, { ...code, form: { code_verifier: "z".repeat(43) } }),
    400,
    "invalid_grant",
  );
  refused(
    await redeem(login, client, { ...code, headers: { authorization: other.basic } }),
    400,
    "invalid_grant",
  );
  const elsewhere = { redirect_uri: "https://shop.example/other" };
  refused(await redeem(login, client, { ...code, form: elsewhere }), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, first.body["access_token"]), null);
  refused(await redeem(login, client, code), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, first.body["access_token"]), "code_reuse");
  refused(await refresh(login, client, first.body["refresh_token"]), 400, "invalid_grant");
});

test("one code redeemed 50 times at once over two processes succeeds once and ends revoked", async () => {
  await using second = await openTestLogin({ with: login, connections: 10 });
  const code = await addCode(login, client);
  const all = await Promise.all(
    Array.from({ length: 50 }, async (_, index) =>
      untilAvailable(async () => redeem(index % 2 === 0 ? login : second, client, code)),
    ),
  );
  const good = all.filter((answer) => answer.status === 200);
  assert.equal(good.length, 1);
  assert.ok(
    all.every((answer) => answer.status === 200 || answer.body["error"] === "invalid_grant"),
  );
  assert.equal(await familyStateOf(login, good[0]?.body["access_token"]), "code_reuse");
});

test("a code that is redeemed while its session ends waits for that, and yields nothing", async () => {
  const code = await addCode(login, client);
  const redeemed = await login.ctx.db.transaction(async (tx) => {
    await endSession(tx, code.sessionId, login.clock.now());
    const under = redeem(login, client, code);
    await untilBlocked(login.ctx.db, tx, [under]);
    return { under };
  });
  refused(await redeemed.under, 400, "invalid_grant");
});

test("a session that ends while a code of it is redeemed ends the tokens that this yields", async () => {
  const code = await addCode(login, client);
  const { redeemed, ended } = await login.ctx.db.transaction(async (tx) => {
    await tx.query(sql`select from session where id = ${code.sessionId} for update`);
    const redeeming = redeem(login, client, code);
    await untilBlocked(login.ctx.db, tx, [redeeming]);
    const ending = login.ctx.db.transaction(async (other) =>
      endSession(other, code.sessionId, login.clock.now()),
    );
    await untilBlocked(login.ctx.db, tx, [redeeming, ending]);
    return { redeemed: redeeming, ended: ending };
  });
  const { status, body } = await redeemed;
  assert.equal(status, 200);
  assert.equal(await ended, true);
  assert.equal(await familyStateOf(login, body["access_token"]), "session_ended");
  refused(await refresh(login, client, body["refresh_token"]), 400, "invalid_grant");
});
