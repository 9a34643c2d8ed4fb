import assert from "node:assert/strict";
import { test } from "node:test";

import { commitmentOf, leafOf, type Hex32 } from "@svc/protocol";
import { exportJWK, generateKeyPair, SignJWT, UnsecuredJWT, type JWTPayload } from "jose";

import { otherSpellings } from "../test/mutations.ts";
import { verifyAttestation } from "./kyb-attestation.ts";
import type { AttestationChecks } from "./kyb-claims.ts";
import type { KybEvent } from "./kyb-event.ts";
import { MerchantError } from "./merchant-error.ts";

const now = 1_800_000_000;
const issuer = "https://id.example";
const clientDomainId = "0190c0de-0000-7000-8000-000000000000";
const business = "0x1111111111111111111111111111111111111111";
const requestId = "01JD000000000000000000000A";
const pepper: Hex32 = `0x${"ab".repeat(32)}`;
const expiresAt = now + 1000;

const pair = await generateKeyPair("RS256", { modulusLength: 3072, extractable: true });
const publicJwk = { ...(await exportJWK(pair.publicKey)), kid: "one", alg: "RS256" };

function fieldOf(value: string): Record<string, unknown> {
  const commitment = commitmentOf({ data: value, pepper });
  const hash = leafOf({ user: business, field: "BUSINESS_LEGAL_NAME", commitment, expiresAt });
  return {
    name: "BUSINESS_LEGAL_NAME",
    hash,
    pepper,
    subject_type: "BUSINESS",
    subject: "",
    provenance: "Registry",
    as_of: now - 5,
    expires_at: expiresAt,
    value,
  };
}

const claims: JWTPayload = {
  iss: `${issuer}/kyb`,
  aud: clientDomainId,
  sub: business,
  jti: "01JD000000000000000000000B",
  event: "kyb.data_request.released",
  stream_id: requestId,
  seq: 2,
  livemode: true,
  iat: now,
  exp: now + 86_400,
  approval: { approved_at: now - 1, action_id: requestId, threshold_met: true },
  fields: [fieldOf("Corner Bakery AG")],
};

const event: KybEvent = {
  event: "kyb.data_request.released",
  eventId: "01JD000000000000000000000B",
  streamId: requestId,
  seq: 2,
  timestamp: now,
  livemode: true,
  data: {},
  requestId,
  business,
  status: "released",
};

const checks: AttestationChecks = {
  issuer,
  clientDomainId,
  now,
  event,
  keys: { keys: [publicJwk] },
};

const header = { alg: "RS256", typ: "kyb-attestation+jwt", kid: "one" };

async function sign(changed: JWTPayload = {}, head: Record<string, unknown> = {}): Promise<string> {
  return new SignJWT({ ...claims, ...changed })
    .setProtectedHeader({ ...header, ...head })
    .sign(pair.privateKey);
}

async function refusalOf(attestation: string, changed: Partial<AttestationChecks> = {}) {
  try {
    await verifyAttestation(attestation, { ...checks, ...changed });
    return null;
  } catch (error) {
    assert.ok(error instanceof MerchantError);
    return `${error.code} ${error.reason}`;
  }
}

test("what the service signed for this client domain is read, field by field", async () => {
  const attestation = await verifyAttestation(await sign(), checks);
  assert.equal(attestation.business, business);
  assert.equal(attestation.approvedAt, now - 1);
  assert.deepEqual(
    attestation.fields.map(({ name, value, provenance }) => [name, value, provenance]),
    [["BUSINESS_LEGAL_NAME", "Corner Bakery AG", "Registry"]],
  );
});

test("without a time of the caller an attestation is judged by the machine's clock", async (context) => {
  const { now: _, ...timeless } = checks;
  const attestation = await sign();
  context.mock.timers.enable({ apis: ["Date"], now: now * 1000 });
  assert.equal((await verifyAttestation(attestation, timeless)).business, business);
  context.mock.timers.setTime((now + 2 * 86_400) * 1000);
  await assert.rejects(verifyAttestation(attestation, timeless), { reason: "exp" });
});

test("the checks come in order: typ, alg, signature, claims, envelope, fields", async () => {
  const other = await generateKeyPair("RS256", { modulusLength: 3072 });
  const forged = await new SignJWT(claims).setProtectedHeader(header).sign(other.privateKey);
  const secret = new TextEncoder().encode(JSON.stringify(publicJwk));
  const confused = await new SignJWT(claims)
    .setProtectedHeader({ ...header, alg: "HS256" })
    .sign(secret);
  const unsigned = new UnsecuredJWT(claims).encode();
  const cases: [string, string, string][] = [
    ["no JWT", "nothing", "form"],
    ["alg none", unsigned, "typ"],
    ["an access token", await sign({}, { typ: "at+jwt" }), "typ"],
    ["HS256 under the public key", confused, "alg"],
    ["no kid", await sign({}, { kid: undefined }), "kid"],
    ["another key", forged, "signature"],
    ["an unknown kid", await sign({}, { kid: "two" }), "signature"],
    ["another issuer", await sign({ iss: issuer }), "iss"],
    ["another audience", await sign({ aud: "0190c0de-0000-7000-8000-000000000001" }), "aud"],
    ["a list of audiences", await sign({ aud: [clientDomainId] }), "aud"],
    ["one that expired", await sign({ exp: now - 31 }), "exp"],
    ["one of the future", await sign({ iat: now + 31 }), "iat"],
    ["another event", await sign({ jti: "01JD000000000000000000000C" }), "event_id"],
    ["another request", await sign({ stream_id: "01JD000000000000000000000C" }), "stream_id"],
    ["another sequence", await sign({ seq: 3 }), "seq"],
    ["another kind", await sign({ event: "kyb.data_request.cancelled" }), "event"],
    ["another side of live and sandbox", await sign({ livemode: false }), "livemode"],
    ["another business", await sign({ sub: `0x${"22".repeat(20)}` }), "sub"],
    ["a business that is no text", await sign({ sub: { toString: 1 } as never }), "sub"],
    [
      "too few votes",
      await sign({ approval: { approved_at: now, threshold_met: false } }),
      "approval.threshold_met",
    ],
    ["votes that are none", await sign({ approval: {} }), "approval.threshold_met"],
    ["no such field", await sign({ fields: [{ ...fieldOf("A"), name: "A" }] }), "fields[0].name"],
    [
      "a short pepper",
      await sign({ fields: [{ ...fieldOf("A"), pepper: "0xab" }] }),
      "fields[0].pepper",
    ],
    ["another value", await sign({ fields: [{ ...fieldOf("A"), value: "B" }] }), "fields[0].hash"],
  ];
  for (const [name, attestation, reason] of cases)
    assert.equal(await refusalOf(attestation), `attestation_refused ${reason}`, name);
});

test("the clocks of service and merchant may be thirty seconds apart, and no more", async () => {
  assert.equal(await refusalOf(await sign({ exp: now - 29, iat: now + 30 })), null);
  assert.equal(await refusalOf(await sign({ exp: now - 30 })), "attestation_refused exp");
  assert.equal(await refusalOf(await sign({ iat: now + 31 })), "attestation_refused iat");
});

test("an envelope of another stream than its request, or of one that asks nothing, is refused", async () => {
  const attestation = await sign();
  const other = { ...event, requestId: "01JD000000000000000000000C" };
  assert.equal(await refusalOf(attestation, { event: other }), "attestation_refused request_id");
  const { requestId: _, ...none } = event;
  const refusal = await refusalOf(attestation, { event: none as KybEvent });
  assert.equal(refusal, "attestation_refused event");
});

test("a clock, an issuer or an envelope that cannot be is the caller's mistake", async () => {
  const attestation = await sign();
  for (const wrong of [Number.NaN, Date.now()])
    assert.equal(await refusalOf(attestation, { now: wrong }), "configuration_invalid now");
  for (const lost of [undefined, null])
    assert.equal(
      await refusalOf(attestation, { event: lost as never }),
      "configuration_invalid event",
    );
  for (const wrong of ["http://id.example", `${issuer}/`, "id.example"])
    assert.equal(
      await refusalOf(attestation, { issuer: wrong }),
      "configuration_invalid issuer",
      wrong,
    );
});

test("an attestation with a changed character anywhere is refused", async () => {
  const attestation = await sign();
  for (let at = 0; at < attestation.length; at += 37) {
    const flipped = attestation[at] === "A" ? "B" : "A";
    const changed = attestation.slice(0, at) + flipped + attestation.slice(at + 1);
    assert.notEqual(await refusalOf(changed), null, String(at));
  }
});

test("an attestation whose signature is spelled in another way is refused", async () => {
  const attestation = await sign();
  for (const other of otherSpellings(attestation))
    assert.equal(await refusalOf(other), "attestation_refused form", other.slice(-9));
});

test("an invalid key set is the service's fault if it was fetched, else the caller's", async () => {
  const attestation = await sign();
  const { keys: _, ...rest } = checks;
  const incomplete = { kty: publicJwk.kty, kid: publicJwk.kid, alg: publicJwk.alg };
  for (const keys of [
    null,
    [],
    {},
    { keys: null },
    { keys: [1] },
    { keys: [incomplete] },
  ] as never[]) {
    const given = verifyAttestation(attestation, { ...rest, keys });
    await assert.rejects(given, { code: "configuration_invalid", reason: "keys" });
    const fetched = verifyAttestation(attestation, {
      ...rest,
      fetch: async () => Response.json(keys),
    });
    await assert.rejects(fetched, { code: "response_invalid", reason: "kyb-jwks" });
  }
  const ofFault = verifyAttestation(attestation, {
    ...rest,
    fetch: async () => Response.json({ keys: [publicJwk] }, { status: 404 }),
  });
  await assert.rejects(ofFault, { code: "response_invalid", reason: "kyb-jwks" });
});

test("an attestation of an event that came later than this SDK is verified, and belongs to its envelope", async () => {
  const { eventId, streamId, seq, timestamp, livemode, data } = event;
  const envelope = { eventId, streamId, seq, timestamp, livemode, data };
  const later = { event: "unknown", name: "kyb.data_request.renewed", ...envelope } as const;
  const attestation = await sign({ event: later.name });
  assert.equal(await refusalOf(attestation, { event: later }), null);
  const other = { ...later, seq: 3 };
  assert.equal(await refusalOf(attestation, { event: other }), "attestation_refused seq");
});

test("an attestation that was fetched again is verified without an envelope", async () => {
  const { event: _, ...rest } = checks;
  const attestation = await verifyAttestation(await sign(), rest);
  assert.equal(attestation.requestId, requestId);
});
