import assert from "node:assert/strict";
import { generateKeyPairSync, randomUUID } from "node:crypto";
import { after, test } from "node:test";
import { setImmediate } from "node:timers/promises";
import { exportJWK, SignJWT } from "jose";
import { patienceMs } from "../../../../test/patience.ts";
import type { Outbound } from "../../platform/outbound/outbound.ts";
import {
  addClient,
  addCode,
  type Answer,
  openTestLogin,
  post,
  redeem,
  refused,
} from "../test-login.ts";
import { changeTestClient, listTestFamilies } from "../test-login-store.ts";
import { tokenJobs } from "../token/token-jobs.ts";

const asked: string[] = [];
let published: unknown = { keys: [] };
let isAway = false;
let hostStatus = 200;
/** Ends when the host answers. */
let pause: Promise<void> | undefined;
/** Plays the host behind `jwks_uri`. */
const outbound: Outbound = {
  async send({ url }) {
    asked.push(url);
    await pause;
    if (isAway) return { kind: "failed", reason: "timeout" };
    return {
      kind: "answered",
      status: hostStatus,
      headers: {},
      body: Buffer.from(JSON.stringify(published)),
    };
  },
  close: async () => undefined,
};
const login = await openTestLogin({ outbound });
after(async () => login[Symbol.asyncDispose]());

const ec = generateKeyPairSync("ec", { namedCurve: "P-256" });
const rsa = generateKeyPairSync("rsa", { modulusLength: 2048 });
const ecJwk = { ...(await exportJWK(ec.publicKey)), kid: "ec-1" };
const rsaJwk = { ...(await exportJWK(rsa.publicKey)), kid: "rsa-1" };

async function ask(form: Record<string, string>, authorization?: string): Promise<Answer> {
  return post(login, "/oauth2/token", {
    form: { grant_type: "client_credentials", ...form },
    headers: { authorization },
  });
}

const type = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";

async function assertionOf(
  clientId: string,
  given: {
    claims?: Record<string, unknown>;
    header?: Record<string, unknown>;
    key?: Parameters<SignJWT["sign"]>[0];
  } = {},
): Promise<string> {
  const now = login.clock.now();
  const claims = {
    iss: clientId,
    sub: clientId,
    aud: "http://localhost:4000",
    jti: randomUUID(),
    iat: now,
    exp: now + 60,
    ...given.claims,
  };
  const header = { alg: "ES256", kid: "ec-1", ...given.header };
  return new SignJWT(claims).setProtectedHeader(header).sign(given.key ?? ec.privateKey);
}

test("a signed assertion proves a client once", async () => {
  const client = await addClient(login, {
    method: "private_key_jwt",
    jwks: { keys: [ecJwk, rsaJwk] },
  });
  const assertion = await assertionOf(client.id);
  const form = { client_assertion: assertion, client_assertion_type: type };
  assert.equal((await ask(form)).status, 200);
  refused(await ask(form), 401, "invalid_client");
  const header = { alg: "RS256", kid: "rsa-1" };
  // For five minutes, by a clock that is half a minute ahead.
  const now = login.clock.now();
  const claims = { iat: now + 30, nbf: now + 30, exp: now + 330 };
  const byRsa = await assertionOf(client.id, { header, key: rsa.privateKey, claims });
  assert.equal((await ask({ client_assertion: byRsa, client_assertion_type: type })).status, 200);
  const longest = { jti: "j".repeat(256), note: "n".repeat(5000) };
  const long = await assertionOf(client.id, { claims: longest });
  assert.equal((await ask({ client_assertion: long, client_assertion_type: type })).status, 200);
});

test("a key that a cached client was given since counts at once, and its signatures are not counted as guesses", async () => {
  const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [rsaJwk] } });
  const askBy = async (header: object, key: Parameters<SignJWT["sign"]>[0]) => {
    const assertion = await assertionOf(client.id, { header: { ...header }, key });
    return ask({ client_assertion: assertion, client_assertion_type: type });
  };
  const byRsa = async () => askBy({ alg: "RS256", kid: "rsa-1" }, rsa.privateKey);
  const byEc = async () => askBy({}, ec.privateKey);
  assert.equal((await byRsa()).status, 200);
  refused(await byEc(), 401, "invalid_client");
  await changeTestClient(login.ctx.db, client.id, { jwks: { keys: [ecJwk] } });
  // As often as wrong ones are forgiven, and once more.
  for (let call = 0; call < 11; call += 1) assert.equal((await byEc()).status, 200);
  refused(await byRsa(), 401, "invalid_client");
});

test("two clients may use the same jti", async () => {
  for (const key of ["first", "second"]) {
    const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [ecJwk] } });
    const assertion = await assertionOf(client.id, { claims: { jti: "1" } });
    const form = { client_assertion: assertion, client_assertion_type: type };
    refused(await ask({ ...form, client_id: randomUUID() }), 400, "invalid_request");
    assert.equal((await ask({ ...form, client_id: client.id })).status, 200, key);
  }
});

test("a replayed assertion revokes no token and reveals nothing about one", async () => {
  const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [ecJwk] } });
  const code = await addCode(login, client);
  const prove = async () => ({
    client_assertion: await assertionOf(client.id),
    client_assertion_type: type,
  });
  const headers = { authorization: undefined };
  const redeemed = await redeem(login, client, { ...code, form: await prove(), headers });
  const token = String(redeemed.body["access_token"]);
  const others = await addClient(login);
  const foreign = await redeem(login, others, await addCode(login, others));
  const nothing = [String(foreign.body["access_token"]), "junk"];
  const used = await prove();
  const introspect = async (form: object, about = token) =>
    post(login, "/oauth2/introspect", { form: { ...form, token: about } });
  assert.equal((await introspect(used)).body["active"], true);
  for (const about of [token, ...nothing])
    refused(await introspect(used, about), 401, "invalid_client");
  for (const about of [token, ...nothing]) {
    const answer = await post(login, "/oauth2/revoke", { form: { ...used, token: about } });
    refused(answer, 401, "invalid_client");
  }
  assert.equal((await introspect(await prove())).body["active"], true);
});

test("one assertion sent 20 times at once over two processes counts once", async () => {
  await using second = await openTestLogin({ with: login });
  const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [ecJwk] } });
  const form = {
    grant_type: "client_credentials",
    client_assertion: await assertionOf(client.id),
    client_assertion_type: type,
  };
  const all = await Promise.all(
    Array.from({ length: 20 }, async (_, at) =>
      post(at % 2 === 0 ? login : second, "/oauth2/token", { form }),
    ),
  );
  assert.equal(all.filter((answer) => answer.status === 200).length, 1);
});

test("an assertion that does not hold in every part is refused", async (t) => {
  const client = await addClient(login, {
    method: "private_key_jwt",
    jwks: { keys: [ecJwk, rsaJwk] },
  });
  const now = login.clock.now();
  const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const cases: [string, Parameters<typeof assertionOf>[1]][] = [
    ["another issuer", { claims: { iss: "somebody" } }],
    ["the token endpoint as audience", { claims: { aud: "http://localhost:4000/oauth2/token" } }],
    ["audiences as a list", { claims: { aud: ["http://localhost:4000"] } }],
    ["an end that is past", { claims: { exp: now } }],
    ["an end more than five minutes ahead", { claims: { exp: now + 331 } }],
    ["no expiry", { claims: { exp: undefined } }],
    ["a beginning in the future", { claims: { nbf: now + 31 } }],
    ["no jti", { claims: { jti: undefined } }],
    ["a jti of 257 characters", { claims: { jti: "j".repeat(257) } }],
    ["another typ", { header: { typ: "at+jwt" } }],
    ["another key", { key: stranger.privateKey }],
    ["an unknown key id", { header: { kid: "ec-2" } }],
    ["a key of another kind", { header: { kid: "rsa-1" } }],
  ];
  for (const [name, given] of cases) {
    await t.test(`an assertion with ${name} is refused`, async () => {
      const fresh = await addClient(login, {
        method: "private_key_jwt",
        jwks: { keys: [ecJwk, rsaJwk] },
      });
      const assertion = await assertionOf(fresh.id, given);
      refused(
        await ask({ client_assertion: assertion, client_assertion_type: type }),
        401,
        "invalid_client",
      );
    });
  }
  await t.test(
    "an assertion with an HMAC keyed with the public key, in whatever form, is refused",
    async () => {
      const header = { alg: "HS256", kid: "ec-1" };
      const exported = { type: "spki", format: "der" } as const;
      for (const secret of [
        ec.publicKey.export(exported),
        ec.publicKey.export({ ...exported, format: "pem" }),
        JSON.stringify(ecJwk),
        Buffer.from(String(ecJwk.x), "base64url"),
      ]) {
        const assertion = await assertionOf(client.id, { header, key: Buffer.from(secret) });
        refused(
          await ask({ client_assertion: assertion, client_assertion_type: type }),
          401,
          "invalid_client",
        );
      }
    },
  );
  await t.test(
    "an assertion of another type, that is no JWT or that is missing is refused",
    async () => {
      const assertion = await assertionOf(client.id);
      refused(
        await ask({ client_assertion: assertion, client_assertion_type: "saml" }),
        400,
        "invalid_request",
      );
      refused(
        await ask({ client_assertion: "junk", client_assertion_type: type }),
        401,
        "invalid_client",
      );
      refused(await ask({ client_assertion_type: type }), 400, "invalid_request");
    },
  );
});

test("an assertion's typ is a media type: neither its case nor its prefix counts", async () => {
  const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [ecJwk] } });
  const statusOf = async (typ: unknown): Promise<number> => {
    const assertion = await assertionOf(client.id, { header: { typ } });
    return (await ask({ client_assertion: assertion, client_assertion_type: type })).status;
  };
  for (const typ of ["jwt", "application/JWT", "Application/Client-Authentication+JWT", undefined])
    assert.equal(await statusOf(typ), 200, String(typ));
  for (const typ of ["text/jwt", "application/at+jwt", "jwt ", "", null])
    assert.equal(await statusOf(typ), 401, String(typ));
});

/** A client whose keys are behind its `jwks_uri`, where `published` is found. */
async function addPublisher() {
  const jwksUri = `https://shop.example/${randomUUID()}`;
  const client = await addClient(login, { method: "private_key_jwt", jwksUri });
  const send = async (given: Parameters<typeof assertionOf>[1] = {}): Promise<Answer> => {
    const assertion = await assertionOf(client.id, given);
    return ask({ client_assertion: assertion, client_assertion_type: type });
  };
  return {
    send,
    status: async (given: Parameters<typeof assertionOf>[1] = {}) => (await send(given)).status,
    fetches: (): number => asked.filter((url) => url === jwksUri).length,
  };
}

test("keys behind jwks_uri are fetched once, and again for an unknown key id, at most every 30 seconds", async () => {
  const { status: send, fetches } = await addPublisher();
  // Keys that we cannot use do not hide those that we can.
  published = { keys: [{ kty: "OKP", crv: "X25519", x: "AAAA", use: "enc" }, ecJwk] };
  assert.deepEqual(await Promise.all([send(), send(), send()]), [200, 200, 200]);
  assert.equal(fetches(), 1);
  const header = { alg: "RS256", kid: "rsa-1" };
  assert.equal(await send({ header, key: rsa.privateKey }), 401);
  assert.equal(fetches(), 1);
  published = { keys: [rsaJwk] };
  login.clock.advance(31);
  assert.equal(await send({ header, key: rsa.privateKey }), 200);
  assert.equal(fetches(), 2);
  assert.equal(await send(), 401);
  assert.equal(fetches(), 2);
});

test("whatever jwks_uri returns, nothing fails here, and no usable key in it is hidden", async () => {
  const long = "xcXF".repeat(12_000);
  const odd: unknown[] = [null, 5, "x", [], {}, { kty: "oct", k: "AAAA" }, { kty: "RSA" }];
  odd.push({ ...rsaJwk, n: long }, { ...rsaJwk, e: long }, { ...ecJwk, x: 5 });
  odd.push({ ...ecJwk, y: ecJwk.x }, { ...ecJwk, kid: {} });
  for (const shape of [null, 5, "x", [], { keys: null }, { keys: {} }, { keys: odd }]) {
    published = shape;
    const { send } = await addPublisher();
    refused(await send(), 401, "invalid_client");
  }
  published = { keys: [...odd, ecJwk] };
  const { status } = await addPublisher();
  assert.equal(await status(), 200);
});

test("a key that is new behind jwks_uri is refused no longer than until the set is fetched again", async () => {
  const { status: send } = await addPublisher();
  published = { keys: [ecJwk] };
  assert.equal(await send(), 200);
  published = { keys: [rsaJwk] };
  const fresh = { header: { alg: "RS256", kid: "rsa-1" }, key: rsa.privateKey };
  for (let at = 0; at < 11; at += 1) assert.equal(await send(fresh), 401);
  login.clock.advance(31);
  assert.equal(await send(fresh), 200);
});

test("a key that was replaced behind jwks_uri is found, also under the same key id and without one", async () => {
  const next = generateKeyPairSync("ec", { namedCurve: "P-256" });
  const nextJwk = await exportJWK(next.publicKey);
  for (const kid of ["ec-1", undefined]) {
    const { status, fetches } = await addPublisher();
    const send = async (key: typeof ec.privateKey): Promise<number> =>
      status({ header: { kid }, key });
    published = { keys: [{ ...ecJwk, kid }] };
    assert.equal(await send(ec.privateKey), 200);
    published = { keys: [{ ...nextJwk, kid }] };
    assert.equal(await send(next.privateKey), 401, "no more than one fetch in 30 s");
    login.clock.advance(31);
    assert.equal(await send(next.privateKey), 200);
    assert.equal(await send(ec.privateKey), 401);
    assert.equal(fetches(), 2);
  }
});

test(
  "an assertion by a known key waits for no fetch of the keys",
  { timeout: patienceMs },
  async (t) => {
    t.after(() => {
      pause = undefined;
    });
    const { status: send, fetches } = await addPublisher();
    published = { keys: [ecJwk] };
    assert.equal(await send(), 200);
    login.clock.advance(31);
    const host = Promise.withResolvers<void>();
    pause = host.promise;
    const stranger = send({ header: { kid: "ec-2" } });
    while (fetches() < 2) await setImmediate();
    const first = await Promise.race([send(), stranger.then(() => "the stranger")]);
    host.resolve();
    assert.equal(first, 200);
    assert.equal(await stranger, 401);
  },
);

test("keys that cannot be fetched do not count as a wrong secret, and are not fetched more often", async (t) => {
  t.after(() => {
    isAway = false;
    hostStatus = 200;
  });
  const faults: [string, () => void][] = [
    ["the host is away", () => (isAway = true)],
    ["something else is there", () => (published = { error: "maintenance" })],
    ["an error comes with keys", () => (hostStatus = 503)],
  ];
  for (const [name, breakHost] of faults) {
    await t.test(
      `the keys of a client last for a while where ${name}, and nobody has to wait`,
      async () => {
        isAway = false;
        hostStatus = 200;
        published = { keys: [ecJwk] };
        const { send, fetches } = await addPublisher();
        assert.equal((await send()).status, 200);
        breakHost();
        login.clock.advance(60);
        assert.equal((await send()).status, 200, "what was fetched lasts for a while");
        // A new key there, while the host is down.
        for (let at = 0; at < 11; at += 1) {
          const answer = await send({ header: { kid: "ec-2" } });
          refused(answer, 401, "invalid_client");
          assert.match(answer.text, /jwks_uri cannot be fetched/);
        }
        assert.equal(fetches(), 2);
        login.clock.advance(600);
        for (let at = 0; at < 11; at += 1) refused(await send(), 401, "invalid_client");
        assert.equal(fetches(), 3);
        isAway = false;
        hostStatus = 200;
        published = { keys: [ecJwk] };
        login.clock.advance(31);
        assert.equal((await send()).status, 200, "nobody has to wait");
        const stranger = generateKeyPairSync("ec", { namedCurve: "P-256" });
        const statuses: number[] = [];
        for (let at = 0; at < 11; at += 1)
          statuses.push((await send({ key: stranger.privateKey })).status);
        const wrong = Array.from({ length: 10 }, () => 401);
        assert.deepEqual(statuses, [...wrong, 429], "wrong signatures count as ever");
      },
    );
  }
});

test("a key behind jwks_uri counts for ten minutes after it was fetched, even while its host is down", async (t) => {
  t.after(() => {
    isAway = false;
  });
  const { send, status, fetches } = await addPublisher();
  published = { keys: [ecJwk] };
  assert.equal(await status(), 200);
  login.clock.advance(590);
  isAway = true;
  assert.equal(await status({ header: { kid: "ec-2" } }), 401);
  isAway = false;
  published = { keys: [rsaJwk] };
  login.clock.advance(9);
  assert.equal(await status(), 200);
  login.clock.advance(1);
  // As often as wrong ones are forgiven, and once more: nothing was guessed.
  for (let at = 0; at < 11; at += 1) {
    const answer = await send();
    refused(answer, 401, "invalid_client");
    assert.match(answer.text, /jwks_uri cannot be fetched/);
  }
  assert.equal(fetches(), 2);
  login.clock.advance(20);
  const fresh = { header: { alg: "RS256", kid: "rsa-1" }, key: rsa.privateKey };
  assert.equal(await status(fresh), 200);
  assert.equal(fetches(), 3);
});

test("an assertion counts once for its whole life, whatever was purged meanwhile, and a replay leaves no row", async () => {
  const client = await addClient(login, { method: "private_key_jwt", jwks: { keys: [ecJwk] } });
  const form = {
    client_assertion: await assertionOf(client.id, { claims: { exp: login.clock.now() + 330 } }),
    client_assertion_type: type,
  };
  assert.equal((await ask(form)).status, 200);
  login.clock.advance(329);
  const { clock } = login;
  // A process whose clock is as far ahead of this one's as it may be.
  const early = { nowMs: () => clock.nowMs() + 590_000, now: () => clock.now() + 590 };
  const jobs = tokenJobs({ ...login.ctx, clock: early });
  await jobs.find(({ name }) => name === "used-once")?.run(AbortSignal.any([]));
  const before = (await listTestFamilies(login.ctx.db)).length;
  refused(await ask(form), 401, "invalid_client");
  assert.equal((await listTestFamilies(login.ctx.db)).length, before);
});
