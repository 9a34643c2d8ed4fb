import assert from "node:assert/strict";
import { after, before, test } from "node:test";

import { generateKeyPair, SignJWT, UnsecuredJWT, decodeJwt, type JWTPayload } from "jose";

import {
  business,
  clientDomainId,
  kybHeaders,
  newBusiness,
  endpointSecret,
  playBusiness,
  type FakeBusiness,
} from "../test/fake-business.ts";
import { openFakeIssuer, type FakeIssuer } from "../test/fake-issuer.ts";
import {
  MerchantError,
  verifyAttestation,
  verifyKybWebhook,
  verifyWalletChange,
  type AttestationChecks,
  type WalletChangedEvent,
} from "./index.ts";

const typ = "kyb-attestation+jwt";
const stranger = `0x${"9".repeat(40)}`;
let fake: FakeIssuer;
let company: FakeBusiness;
let checks: AttestationChecks;
let event: WalletChangedEvent;

before(async () => {
  fake = await openFakeIssuer();
  company = playBusiness(fake);
  event = await receive(await company.movedBody());
  checks = { issuer: fake.url, clientDomainId, now: fake.now, event };
});
after(async () => fake[Symbol.asyncDispose]());

/** The event of a delivery. */
async function receive(body: string): Promise<WalletChangedEvent> {
  const headers = kybHeaders(body, { t: fake.now });
  const rawBody = Buffer.from(body);
  const secrets = [endpointSecret];
  const received = verifyKybWebhook({ headers, rawBody, secrets, now: fake.now });
  assert.ok(received.event === "kyb.business.wallet_address_changed");
  return received;
}

async function refusalOf(
  attestation: string,
  changed: Partial<AttestationChecks> = {},
): Promise<string | null> {
  try {
    await verifyWalletChange(attestation, { ...checks, ...changed });
    return null;
  } catch (error) {
    assert.ok(error instanceof MerchantError);
    return `${error.code} ${error.reason}`;
  }
}

test("a move is an event of its own, and its attestation says where the business goes on", async () => {
  assert.deepEqual([event.business, event.newBusiness], [business, newBusiness]);
  assert.equal(event.changedAt, fake.now - 2);
  const change = await verifyWalletChange(event.attestation, checks);
  assert.deepEqual(change, {
    eventId: event.eventId,
    business,
    newBusiness,
    changedAt: fake.now - 2,
    issuedAt: fake.now,
    expiresAt: fake.now + 30 * 86_400,
    livemode: true,
  });
});

test("a move that was kept is verified without its envelope", async () => {
  const { event: _, ...kept } = checks;
  assert.equal((await verifyWalletChange(event.attestation, kept)).newBusiness, newBusiness);
  const nowhere = await company.moved({ new_business_wallet_address: business });
  await assert.rejects(verifyWalletChange(nowhere, kept), {
    code: "attestation_refused",
    reason: "new_business_wallet_address",
  });
});

test("an event of a move without its attestation or addresses is invalid", async () => {
  for (const changed of [
    { attestation: undefined },
    { data: {} },
    { data: { ...event.data, new_business_wallet_address: "0x12" } },
  ]) {
    const body = JSON.stringify({ ...JSON.parse(await company.movedBody()), ...changed });
    await assert.rejects(receive(body), { code: "webhook_refused" });
  }
});

test("the checks come in order: typ, alg, signature, claims, the kind, the envelope", async () => {
  const claims = decodeJwt(await company.moved());
  const header = { alg: "RS256", typ, kid: "rsa-1" };
  const other = await generateKeyPair("RS256");
  const forged = await new SignJWT(claims).setProtectedHeader(header).sign(other.privateKey);
  const published = new TextEncoder().encode(JSON.stringify(fake.keys[0]?.publicJwk));
  const confused = new SignJWT(claims).setProtectedHeader({ ...header, alg: "HS256" });
  const moved = async (changed: JWTPayload) => company.moved(changed);
  const cases: [string, string, string][] = [
    ["no JWT", "nothing", "form"],
    ["alg none", new UnsecuredJWT(claims).encode(), "typ"],
    ["an access token", await fake.sign("at+jwt", claims), "typ"],
    ["HS256 under the public key", await confused.sign(published), "alg"],
    ["another key", forged, "signature"],
    ["an unknown kid", await fake.sign(typ, claims, { header: { kid: "two" } }), "signature"],
    ["another issuer", await moved({ iss: fake.url }), "iss"],
    ["another audience", await moved({ aud: clientDomainId.replace("0", "1") }), "aud"],
    ["one that expired", await moved({ exp: fake.now - 31 }), "exp"],
    ["one of the future", await moved({ iat: fake.now + 31 }), "iat"],
    ["another event", await moved({ jti: "01JD000000000000000000000C" }), "event_id"],
    ["another stream", await moved({ stream_id: "01JD000000000000000000000C" }), "stream_id"],
    ["another sequence", await moved({ seq: 2 }), "seq"],
    ["another kind", await moved({ event: "kyb.data_request.released" }), "event"],
    ["another subject", await moved({ sub: stranger }), "sub"],
    [
      "no move",
      await moved({ new_business_wallet_address: business }),
      "new_business_wallet_address",
    ],
    ["the sandbox", await moved({ livemode: false }), "livemode"],
    [
      "another business",
      await moved({ sub: stranger, business_wallet_address: stranger }),
      "business_wallet_address",
    ],
    [
      "another new wallet",
      await moved({ new_business_wallet_address: stranger }),
      "new_business_wallet_address",
    ],
    ["another time", await moved({ changed_at: fake.now }), "changed_at"],
  ];
  for (const [name, attestation, reason] of cases)
    assert.equal(await refusalOf(attestation), `attestation_refused ${reason}`, name);
});

test("a release is no move, and a move is no release", async () => {
  const { event: _, ...kept } = checks;
  const released = await company.attestation();
  await assert.rejects(verifyWalletChange(released, kept), {
    code: "attestation_refused",
    reason: "event",
  });
  await assert.rejects(verifyAttestation(event.attestation, kept), { code: "attestation_refused" });
  await assert.rejects(verifyAttestation(event.attestation, checks), {
    code: "attestation_refused",
    reason: "event",
  });
});

test("a move in an envelope of another kind is refused", async () => {
  const { livemode, eventId, streamId, seq, timestamp, data } = event;
  const unknown = { event: "unknown", name: "kyb.endpoint.test" } as const;
  const other = { ...unknown, livemode, eventId, streamId, seq, timestamp, data };
  assert.equal(await refusalOf(event.attestation, { event: other }), "attestation_refused event");
});

const gone = async (): Promise<never> => Promise.reject(new Error("gone"));

test("keys that do not come are no refusal", async () => {
  assert.match((await refusalOf(event.attestation, { fetch: gone })) ?? "", /^issuer_unreachable/);
});
