import assert from "node:assert/strict";
import { after, before, describe, test, type TestContext } from "node:test";

import {
  audience,
  clientId,
  clientSecret,
  openFakeIssuer,
  subject,
  type FakeIssuer,
} from "../test/fake-issuer.ts";
import { alice, signedHeaders, signingKey, statusBody } from "../test/signed-webhook.ts";
import {
  MerchantError,
  openKyb,
  openKyc,
  openMerchant,
  verifyReceipt,
  verifyWebhook,
} from "./index.ts";

const t = 1_800_000_000;
const body = statusBody(3, "INITIATED");
/** What a program in JavaScript passes on for a variable that is not set. */
const unset = undefined as never;

let fake: FakeIssuer;
before(async () => {
  fake = await openFakeIssuer();
});
after(() => fake[Symbol.asyncDispose]());

const anchors = {
  rpcUrl: "http://localhost:1",
  chainId: 1,
  registry: alice,
  settlement: alice,
  operator: alice,
  issuers: [alice],
};

const options = () => ({
  issuer: fake.url,
  clientId,
  clientSecret,
  redirectUri: "http://localhost:4001/callback",
});

async function logIn() {
  const { login } = openMerchant({ ...options(), now: () => fake.now });
  const { url, ...pending } = await login.start();
  const { headers } = await fetch(url, { redirect: "manual" });
  return { login, session: await login.finish(headers.get("location") ?? "", pending) };
}

function errorOf(open: () => unknown): MerchantError {
  try {
    open();
  } catch (error) {
    assert.ok(error instanceof MerchantError);
    return error;
  }
  return assert.fail("nothing was thrown");
}

test("a client id, secret or API key that is not set is refused when the SDK is opened", () => {
  const rows: [() => unknown, string][] = [
    [() => openMerchant({ ...options(), issuer: unset }), "issuer"],
    [() => openMerchant({ ...options(), redirectUri: unset }), "redirectUri"],
    [() => openMerchant({ ...options(), clientId: unset }), "clientId"],
    [() => openMerchant({ ...options(), clientSecret: null as never }), "clientSecret"],
    [() => openKyc({ issuer: fake.url, apiKey: unset }), "apiKey"],
    [() => openKyb({ issuer: fake.url, apiKey: unset }), "apiKey"],
  ];
  for (const [open, reason] of rows) {
    const { code, reason: named } = errorOf(open);
    assert.deepEqual([code, named], ["configuration_invalid", reason]);
  }
});

const tooMany = async () => Response.json({}, { status: 429 });

test("a global fetch that is replaced after the SDK was opened is the one that is called", async (context) => {
  const { login } = openMerchant(options());
  const kyb = openKyb({ issuer: fake.url, apiKey: "key" });
  const { mock } = context.mock.method(globalThis, "fetch", tooMany);
  await assert.rejects(login.start(), { code: "rate_limited" });
  await assert.rejects(kyb.pricing(), { code: "rate_limited" });
  assert.equal(mock.callCount(), 2);
});

test("a login without openid in its scope is refused at its start, not at its callback", async () => {
  const { login } = openMerchant(options());
  const expected = { code: "configuration_invalid", reason: "scope" };
  for (const scope of ["", "offline_access", "openidx business"])
    await assert.rejects(login.start({ scope }), expected, scope);
  const { url } = await login.start({ scope: "business openid" });
  assert.equal(new URL(url).searchParams.get("scope"), "business openid");
});

test("a refresh without a subject is refused before it uses the refresh token up", async () => {
  const { login, session } = await logIn();
  const { refreshToken = "" } = session;
  for (const given of [unset, {}, { subject: "" }] as { subject: string }[])
    await assert.rejects(login.refresh(refreshToken, given), {
      code: "configuration_invalid",
      reason: "subject",
    });
  assert.equal((await login.refresh(refreshToken, { subject })).subject, subject);
});

test("userinfo with a subject that was lost is refused, because it would skip the check", async () => {
  const { login, session } = await logIn();
  for (const lost of [{ subject: unset }, { subject: "" }])
    await assert.rejects(login.userinfo(session.accessToken, lost), {
      code: "configuration_invalid",
      reason: "subject",
    });
  assert.equal((await login.userinfo(session.accessToken)).subject, subject);
});

test("a check of an id token or a receipt whose value was lost is refused, because it would be left out", async () => {
  const { verifyIdToken } = openMerchant(options());
  const jwt = await fake.sign("JWT", fake.idClaims());
  const verifiers: [readonly string[], (lost: object) => Promise<unknown>][] = [
    [
      ["nonce", "accessToken", "maxAgeSeconds"],
      (lost) => verifyIdToken(jwt, { now: fake.now, ...lost }),
    ],
    [
      ["user", "referenceKey", "infos", "brokerKeys"],
      (lost) => verifyReceipt({}, { ...anchors, ...lost }),
    ],
  ];
  for (const [checks, verify] of verifiers)
    for (const reason of checks)
      for (const lost of [unset, null, ""])
        await assert.rejects(verify({ [reason]: lost }), {
          code: "configuration_invalid",
          reason,
        });
});

const setMachine = (context: TestContext, seconds: number) =>
  context.mock.timers.enable({ apis: ["Date"], now: seconds * 1000 + 999 });
const delivery = {
  headers: signedHeaders(body, { t }),
  rawBody: Buffer.from(body),
  signingKeys: [signingKey],
};

describe("whoever gives no time gets that of the clock", () => {
  test("of the machine, for a webhook", (context) => {
    setMachine(context, t + 300);
    assert.equal(verifyWebhook(delivery).event, "status.updated");
    context.mock.timers.setTime((t + 301) * 1000);
    assert.equal(errorOf(() => verifyWebhook(delivery)).reason, "timestamp");
  });

  test("that the SDK was opened with, for a token", async (context) => {
    const { session } = await logIn();
    setMachine(context, fake.now + 10_000);
    const own = openMerchant({ ...options(), audience, now: () => fake.now });
    const { accessToken, idToken } = session;
    assert.equal((await own.verifyAccessToken(accessToken, { audience })).subject, subject);
    assert.equal((await own.verifyIdToken(idToken)).subject, subject);
    const byMachine = openMerchant(options());
    const expired = { code: "token_refused", reason: "exp" };
    await assert.rejects(byMachine.verifyAccessToken(accessToken, { audience }), expired);
    await assert.rejects(byMachine.verifyIdToken(idToken), expired);
    await assert.rejects(own.login.verifyLogoutToken("none"), { reason: "form" });
  });
});

test("an option that cannot work and a webhook that is refused say what to look at", () => {
  const given = { ...delivery, now: t };
  const rows: [() => unknown, RegExp][] = [
    [() => openMerchant({ ...options(), issuer: `${fake.url}/` }), /without a slash at its end/],
    [() => openKyc({ issuer: fake.url, apiKey: "Bearer key" }), /leave `Bearer` away/],
    [() => verifyWebhook({ ...given, rawBody: body as never }), /bytes as received/],
    [() => verifyWebhook({ ...given, now: Date.now() }), /not in milliseconds/],
    [() => verifyWebhook({ ...given, headers: {} }), /signature is missing/],
    [() => verifyWebhook({ ...given, now: t + 400 }), /machine's clock/],
    [
      () => verifyWebhook({ ...given, rawBody: Buffer.from(`${body} `) }),
      /pass the bytes as received/,
    ],
  ];
  for (const [open, message] of rows) assert.match(errorOf(open).message, message);
});
