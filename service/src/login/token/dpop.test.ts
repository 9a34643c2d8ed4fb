import assert from "node:assert/strict";
import { createHash, generateKeyPairSync, type KeyObject, randomUUID, sign } from "node:crypto";
import { after, test } from "node:test";
import { calculateJwkThumbprint, exportJWK, SignJWT } from "jose";
import {
  addClient,
  addCode,
  type Answer,
  claimsOf,
  familyStateOf,
  get,
  openTestLogin,
  post,
  redeem,
  refused,
  type TestClient,
} from "../test-login.ts";
import { tokenJobs } from "./token-jobs.ts";

const login = await openTestLogin();
after(async () => login[Symbol.asyncDispose]());
const confidential = await addClient(login);
const spa = await addClient(login, { method: "none" });

const pair = generateKeyPairSync("ec", { namedCurve: "P-256" });
const otherPair = generateKeyPairSync("rsa", { modulusLength: 2048 });
const jkt = await calculateJwkThumbprint(await exportJWK(pair.publicKey));
const tokenUrl = "http://localhost:4000/oauth2/token";
const userinfoUrl = "http://localhost:4000/userinfo";

interface ProofWish {
  readonly pair?: { publicKey: KeyObject; privateKey: KeyObject };
  readonly claims?: Record<string, unknown>;
  readonly header?: Record<string, unknown>;
  readonly accessToken?: string;
}

function hashOf(token: string): string {
  return createHash("sha256").update(token).digest("base64url");
}

async function proofOf(wish: ProofWish = {}): Promise<string> {
  const keys = wish.pair ?? pair;
  const claims = {
    htm: "POST",
    htu: tokenUrl,
    iat: login.clock.now(),
    jti: randomUUID(),
    ...(wish.accessToken === undefined ? {} : { ath: hashOf(wish.accessToken) }),
    ...wish.claims,
  };
  const alg = keys.publicKey.asymmetricKeyType === "rsa" ? "RS256" : "ES256";
  const jwk = await exportJWK(keys.publicKey);
  return new SignJWT(claims)
    .setProtectedHeader({ alg, typ: "dpop+jwt", jwk, ...wish.header })
    .sign(keys.privateKey);
}

async function redeemWith(
  client: TestClient,
  proof: string | undefined,
  request = {},
): Promise<Answer> {
  const code = await addCode(login, client, request);
  const isPublic = client === spa;
  return redeem(login, client, {
    ...code,
    form: isPublic ? { client_id: client.id } : {},
    headers: { dpop: proof, authorization: isPublic ? undefined : client.basic },
  });
}

async function refreshWith(
  client: TestClient,
  token: unknown,
  proof: string | undefined,
): Promise<Answer> {
  const isPublic = client === spa;
  return post(login, "/oauth2/token", {
    form: {
      grant_type: "refresh_token",
      refresh_token: String(token),
      ...(isPublic ? { client_id: client.id } : {}),
    },
    headers: { dpop: proof, authorization: isPublic ? undefined : client.basic },
  });
}

test("a proof binds the tokens to its key, in one database call", async () => {
  const code = await addCode(login, confidential);
  const proof = await proofOf();
  await login.ctx.clients.find(confidential.id);
  const before = login.ctx.db.callsTotal;
  const answer = await redeem(login, confidential, { ...code, headers: { dpop: proof } });
  assert.equal(login.ctx.db.callsTotal - before, 1);
  assert.equal(answer.status, 200, answer.text);
  assert.equal(answer.body["token_type"], "DPoP");
  assert.deepEqual(claimsOf(answer.body["access_token"])["cnf"], { jkt });
  const told = await post(login, "/oauth2/introspect", {
    form: { token: String(answer.body["access_token"]) },
    headers: { authorization: confidential.basic },
  });
  assert.deepEqual([told.body["token_type"], told.body["cnf"]], ["DPoP", { jkt }]);
});

test("a proof that does not hold in every part is refused and costs the code nothing", async (t) => {
  const now = login.clock.now();
  const privateJwk = await exportJWK(pair.privateKey);
  const small = generateKeyPairSync("rsa", { modulusLength: 1024 });
  const cases: [string, ProofWish | string][] = [
    ["that is no JWT", "junk"],
    ["that is sent twice", `${await proofOf()}, ${await proofOf()}`],
    ["of another typ", { header: { typ: "JWT" } }],
    ["without a key", { header: { jwk: undefined } }],
    ["with a private key", { header: { jwk: privateJwk } }],
    [
      "with a key of another kind than its alg",
      { header: { jwk: await exportJWK(otherPair.publicKey) } },
    ],
    [
      "with somebody else's key",
      {
        header: {
          jwk: await exportJWK(generateKeyPairSync("ec", { namedCurve: "P-256" }).publicKey),
        },
      },
    ],
    ["for another method", { claims: { htm: "GET" } }],
    ["for another address", { claims: { htu: userinfoUrl } }],
    ["for another host", { claims: { htu: "http://evil.example:4000/oauth2/token" } }],
    ["for another scheme", { claims: { htu: tokenUrl.replace("http:", "https:") } }],
    ["that is too old", { claims: { iat: now - 61 } }],
    ["that is too new", { claims: { iat: now + 61 } }],
    ["without a time", { claims: { iat: undefined } }],
    ["past its own end", { claims: { exp: now } }],
    ["with an end that is no time", { claims: { exp: "never" } }],
    ["before its own beginning", { claims: { nbf: now + 61 } }],
    ["without a jti", { claims: { jti: undefined } }],
    ["with a jti of 300 characters", { claims: { jti: "x".repeat(300) } }],
    ["longer than 8,192 characters", { claims: { note: "n".repeat(6200) } }],
    ["with a critical extension", { header: { crit: ["b64"], b64: true } }],
    ["with an extension that it does not call critical", { header: { b64: true } }],
  ];
  for (const [name, wish] of cases) {
    await t.test(`a proof ${name} is refused and costs the code nothing`, async () => {
      const code = await addCode(login, confidential);
      const proof = typeof wish === "string" ? wish : await proofOf(wish);
      refused(
        await redeem(login, confidential, { ...code, headers: { dpop: proof } }),
        400,
        "invalid_dpop_proof",
      );
      const good = {
        dpop: await proofOf({
          claims: { htu: `${tokenUrl}?x=1#y`, exp: now + 1, nbf: now + 60 },
        }),
      };
      assert.equal((await redeem(login, confidential, { ...code, headers: good })).status, 200);
    });
  }
  await t.test("a proof by an RSA key of 1,024 bits is refused", async () => {
    // No library signs with it.
    const header = { alg: "RS256", typ: "dpop+jwt", jwk: await exportJWK(small.publicKey) };
    const claims = { htm: "POST", htu: tokenUrl, iat: login.clock.now(), jti: randomUUID() };
    const input = [header, claims]
      .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
      .join(".");
    const signature = sign("sha256", Buffer.from(input), small.privateKey).toString("base64url");
    refused(await redeemWith(confidential, `${input}.${signature}`), 400, "invalid_dpop_proof");
  });
});

test("a proof counts once", async () => {
  const proof = await proofOf();
  assert.equal((await redeemWith(confidential, proof)).status, 200);
  refused(await redeemWith(confidential, proof), 400, "invalid_dpop_proof");
});

test("two DPoP keys may use the same jti", async () => {
  const claims = { jti: "1" };
  assert.equal((await redeemWith(confidential, await proofOf({ claims }))).status, 200);
  const ofOther = await proofOf({ claims, pair: otherPair });
  assert.equal((await redeemWith(confidential, ofOther)).status, 200);
});

for (const lateSeconds of [4, 300, 590])
  test(`a proof counts once even where the clock is ${lateSeconds} s behind that of the process that purged used ones`, async () => {
    await using own = await openTestLogin();
    const shop = await addClient(own);
    // By the client's clock, which may be as far ahead as a proof may be from the future.
    const headers = { dpop: await proofOf({ claims: { iat: own.clock.now() + 60 } }) };
    const spend = async (): Promise<Answer> =>
      redeem(own, shop, { ...(await addCode(own, shop)), headers });
    assert.equal((await spend()).status, 200);
    own.clock.advance(120);
    const { clock } = own;
    const early = {
      nowMs: () => clock.nowMs() + lateSeconds * 1000,
      now: () => clock.now() + lateSeconds,
    };
    const jobs = tokenJobs({ ...own.ctx, clock: early });
    await jobs.find(({ name }) => name === "used-once")?.run(AbortSignal.any([]));
    refused(await spend(), 400, "invalid_dpop_proof");
  });

test("a proof counts once for a refresh too, and a second use of it costs the refresh token nothing", async () => {
  const { body } = await redeemWith(confidential, await proofOf());
  const proof = await proofOf();
  const next = await refreshWith(confidential, body["refresh_token"], proof);
  assert.equal(next.status, 200, next.text);
  const token = next.body["refresh_token"];
  refused(await refreshWith(confidential, token, proof), 400, "invalid_dpop_proof");
  assert.equal((await refreshWith(confidential, token, await proofOf())).status, 200);
});

test("a login that named its key is finished with that key alone", async () => {
  assert.equal((await redeemWith(confidential, await proofOf(), { dpopJkt: jkt })).status, 200);
  refused(
    await redeemWith(confidential, await proofOf({ pair: otherPair }), { dpopJkt: jkt }),
    400,
    "invalid_grant",
  );
  refused(await redeemWith(confidential, undefined, { dpopJkt: jkt }), 400, "invalid_grant");
});

test("a client that must bind its tokens gets none without a proof", async () => {
  const strict = await addClient(login, { dpopRequired: true });
  refused(await redeemWith(strict, undefined), 400, "invalid_request");
  assert.equal((await redeemWith(strict, await proofOf())).status, 200);
  const form = { grant_type: "client_credentials" };
  const ask = async (headers: Record<string, string>): Promise<Answer> =>
    post(login, "/oauth2/token", { form, headers: { authorization: strict.basic, ...headers } });
  refused(await ask({}), 400, "invalid_request");
  assert.equal((await ask({ dpop: await proofOf() })).body["token_type"], "DPoP");
});

test("a public client's refresh token is bound to its key; a confidential client may change keys, not drop them", async () => {
  const bound = await redeemWith(spa, await proofOf());
  const token = bound.body["refresh_token"];
  refused(await refreshWith(spa, token, undefined), 400, "invalid_grant");
  refused(await refreshWith(spa, token, await proofOf({ pair: otherPair })), 400, "invalid_grant");
  const next = await refreshWith(spa, token, await proofOf());
  assert.equal(next.body["token_type"], "DPoP");
  const again = await refreshWith(spa, token, await proofOf());
  assert.equal(again.body["refresh_token"], next.body["refresh_token"]);

  const free = await redeemWith(confidential, await proofOf());
  refused(
    await refreshWith(confidential, free.body["refresh_token"], undefined),
    400,
    "invalid_grant",
  );
  const moved = await refreshWith(
    confidential,
    free.body["refresh_token"],
    await proofOf({ pair: otherPair }),
  );
  const { cnf } = claimsOf(moved.body["access_token"]) as { cnf: { jkt: string } };
  assert.notEqual(cnf.jkt, jkt);
  // Both keys hold the same token, so a repeat by the old one is a reuse.
  const repeated = await refreshWith(confidential, free.body["refresh_token"], await proofOf());
  refused(repeated, 400, "invalid_grant");
  const current = await refreshWith(confidential, moved.body["refresh_token"], await proofOf());
  refused(current, 400, "invalid_grant");
});

test("a thief who binds a login to his own key does not hide that its refresh token was used twice", async () => {
  for (const client of [spa, confidential]) {
    const { body: owned } = await redeemWith(client, undefined);
    const stolen = await refreshWith(client, owned["refresh_token"], await proofOf());
    assert.equal(stolen.body["token_type"], "DPoP");
    login.clock.advance(60);
    refused(await refreshWith(client, owned["refresh_token"], undefined), 400, "invalid_grant");
    assert.equal(await familyStateOf(login, owned["access_token"]), "reuse");
    const next = await refreshWith(client, stolen.body["refresh_token"], await proofOf());
    refused(next, 400, "invalid_grant");
  }
});

test("a repeat within the grace with another key, or without one, revokes the login", async () => {
  for (const proof of [undefined, await proofOf({ pair: otherPair })]) {
    const { body: bound } = await redeemWith(spa, await proofOf());
    assert.equal((await refreshWith(spa, bound["refresh_token"], await proofOf())).status, 200);
    refused(await refreshWith(spa, bound["refresh_token"], proof), 400, "invalid_grant");
    assert.equal(await familyStateOf(login, bound["access_token"]), "reuse");
  }
  const { body: free } = await redeemWith(spa, undefined);
  assert.equal((await refreshWith(spa, free["refresh_token"], undefined)).status, 200);
  refused(await refreshWith(spa, free["refresh_token"], await proofOf()), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, free["access_token"]), "reuse");
});

test("userinfo takes a bound token with its proof alone, in one call, and never as Bearer", async () => {
  const access = String((await redeemWith(confidential, await proofOf())).body["access_token"]);
  const plain = String((await redeemWith(confidential, undefined)).body["access_token"]);
  const at = { htm: "GET", htu: userinfoUrl };
  const ask = async (authorization: string, dpop?: string): Promise<Answer> =>
    get(login, "/userinfo", { authorization, ...(dpop === undefined ? {} : { dpop }) });
  const proof = await proofOf({ accessToken: access, claims: at });
  const before = login.ctx.db.callsTotal;
  assert.equal((await ask(`DPoP ${access}`, proof)).status, 200);
  assert.equal(login.ctx.db.callsTotal - before, 1);

  const cases: [string, string | undefined, string][] = [
    [`DPoP ${access}`, proof, "invalid_dpop_proof"],
    [`DPoP ${access}`, undefined, "invalid_dpop_proof"],
    [`Bearer ${access}`, undefined, "invalid_token"],
    [`Bearer ${access}`, await proofOf({ accessToken: access, claims: at }), "invalid_token"],
    [`DPoP ${access}`, await proofOf({ claims: at }), "invalid_dpop_proof"],
    [`DPoP ${access}`, await proofOf({ accessToken: plain, claims: at }), "invalid_dpop_proof"],
    [`DPoP ${access}`, await proofOf({ claims: { ...at, ath: "" } }), "invalid_dpop_proof"],
    [
      `DPoP ${access}`,
      await proofOf({ claims: { ...at, ath: hashOf(access).slice(0, -1) } }),
      "invalid_dpop_proof",
    ],
    [
      `DPoP ${access}`,
      await proofOf({ accessToken: access, claims: at, pair: otherPair }),
      "invalid_token",
    ],
    [`DPoP ${plain}`, await proofOf({ accessToken: plain, claims: at }), "invalid_token"],
  ];
  for (const [authorization, dpop, error] of cases) {
    const answer = await ask(authorization, dpop);
    refused(answer, 401, error);
    assert.match(
      String(answer.headers["www-authenticate"]),
      /^(?:DPoP|Bearer) realm="svc", error=/,
    );
  }
});

test("a bound token is of no use once it is revoked, with whatever proof", async () => {
  const { body } = await redeemWith(confidential, await proofOf());
  const access = String(body["access_token"]);
  const ask = async (): Promise<Answer> => {
    const claims = { htm: "GET", htu: userinfoUrl };
    const dpop = await proofOf({ accessToken: access, claims });
    return get(login, "/userinfo", { authorization: `DPoP ${access}`, dpop });
  };
  assert.equal((await ask()).status, 200);
  const headers = { authorization: confidential.basic };
  await post(login, "/oauth2/revoke", { form: { token: access }, headers });
  refused(await ask(), 401, "invalid_token");
});

test("a code's reuse without its key revokes nothing", async () => {
  const code = await addCode(login, confidential, { dpopJkt: jkt });
  const first = await redeem(login, confidential, { ...code, headers: { dpop: await proofOf() } });
  for (const dpop of [undefined, await proofOf({ pair: otherPair })])
    refused(
      await redeem(login, confidential, { ...code, headers: { dpop } }),
      400,
      "invalid_grant",
    );
  assert.equal(await familyStateOf(login, first.body["access_token"]), null);
  const again = { ...code, headers: { dpop: await proofOf() } };
  refused(await redeem(login, confidential, again), 400, "invalid_grant");
  assert.equal(await familyStateOf(login, first.body["access_token"]), "code_reuse");
});
