import assert from "node:assert/strict";
import { after, before, beforeEach, test } from "node:test";

import { typedDataDigest } from "@svc/protocol";

import {
  business,
  businessName,
  endpointSecret,
  playBusiness,
  releasedValues,
  requestId,
  signatureRequestId,
} from "../test/fake-business.ts";
import { KycRefusal, openFakeIssuer, type FakeIssuer } from "../test/fake-issuer.ts";
import { chargeId, nextCursor, offerId, proofOf, someLine } from "../test/fake-kyb-answers.ts";
import { openKyb, type Hex32, type Kyb, type RequestKind } from "./index.ts";

const base = "/api/v1/kyb";
const apiKey = "svc_live_1_secret";
const purpose = "To open an account";
const fields = ["BUSINESS_LEGAL_NAME"];

interface Call {
  route: string;
  query: string;
  body: Record<string, unknown>;
  idempotencyKey: string | undefined;
  authorization: string | undefined;
}

let fake: FakeIssuer;
let kyb: Kyb;
const calls: Call[] = [];

before(async () => {
  fake = await openFakeIssuer();
});
after(async () => fake[Symbol.asyncDispose]());
beforeEach(() => {
  calls.length = 0;
  fake.kyc.clear();
  playBusiness(fake);
  for (const [route, answer] of fake.kyc)
    fake.kyc.set(route, (call) => {
      const { query, body, headers } = call;
      const { authorization, "idempotency-key": key } = headers;
      const idempotencyKey = typeof key === "string" ? key : undefined;
      calls.push({ route, query: String(query), body, idempotencyKey, authorization });
      return answer(call);
    });
  kyb = openKyb({ issuer: fake.url, apiKey });
});

/** The only call since the last look. */
function lastCall(): Call {
  const [call, ...others] = calls.splice(0);
  assert.ok(call !== undefined && others.length === 0);
  return call;
}

test("every call carries the key as it is", async () => {
  await kyb.billing();
  assert.equal(lastCall().authorization, apiKey);
});

test("a business is looked up: its standing, its rules, its members", async () => {
  const standing = await kyb.status(business);
  assert.deepEqual(standing, {
    walletAddress: business,
    businessName,
    domain: "bergblick.example",
    status: "active",
    verified: true,
    registeredAt: fake.now - 1000,
  });
  const rules = await kyb.rules(business);
  assert.deepEqual(rules.governanceRules, [
    { category: "signature_requests", approvalMode: "MAJORITY" },
    { category: "data_requests", approvalMode: "UNANIMOUS" },
  ]);
  assert.deepEqual([rules.memberCount, rules.domain], [3, standing.domain]);
  const { totalMembers, members } = await kyb.members(business);
  assert.deepEqual(
    [totalMembers, ...members.map(({ name, votingRights }) => [name, votingRights])],
    [2, ["Alice", true], [undefined, false]],
  );
});

test("a business without an attested website has no domain", async () => {
  const { domain: _, ...standing } = await kyb.status(business);
  fake.kyc.set(`GET ${base}/status/${business}`, () => standing);
  assert.ok(!("domain" in (await kyb.status(business))));
  for (const domain of [null, "", 7]) {
    fake.kyc.set(`GET ${base}/status/${business}`, () => ({ ...standing, domain }));
    await assert.rejects(kyb.status(business), { code: "response_invalid", reason: "domain" });
  }
});

test("a business that moved names its successor, as an address", async () => {
  const standing = { ...(await kyb.status(business)), status: "moved" };
  const route = `GET ${base}/status/${business}`;
  const successor = `0x${"5e".repeat(20)}`;
  fake.kyc.set(route, () => ({ ...standing, successor }));
  assert.deepEqual(await kyb.status(business), { ...standing, successor });
  fake.kyc.set(route, () => ({ ...standing, successor: "next" }));
  await assert.rejects(kyb.status(business), { code: "response_invalid", reason: "successor" });
});

test("prices, the balance and a quote are in the units that they name", async () => {
  const { field: name, ...price } = someLine;
  assert.deepEqual(await kyb.pricing(), {
    currency: "CHF",
    fields: [{ name, ...price, naturalPersonPii: false, subjectType: "BUSINESS" }],
  });
  const { packagesChf, ...account } = await kyb.billing();
  assert.deepEqual([account.availableChf, packagesChf], [480, 2.5]);
  fake.kyc.set(`GET ${base}/billing/account`, () => ({ ...account }));
  assert.deepEqual(await kyb.billing(), account, "a broker of before");
  calls.length = 0;
  assert.deepEqual(await kyb.quote({ fields, business }), {
    currency: "CHF",
    totalCents: 100,
    lines: [someLine],
  });
  assert.deepEqual(lastCall().body, {
    fields,
    optionalFields: [],
    businessWalletAddress: business,
  });
});

test("lists are read page by page, by the cursor of the page before", async () => {
  const first = await kyb.charges({ limit: 1 });
  assert.deepEqual(first, {
    items: [
      {
        chargeId,
        requestId,
        businessWalletAddress: business,
        chargedAt: fake.now,
        currency: "CHF",
        totalCents: 100,
        lines: [someLine],
      },
    ],
    nextCursor,
  });
  assert.equal(lastCall().query, "limit=1");
  assert.deepEqual(await kyb.charges({ cursor: nextCursor }), { items: [] });
  const [data] = (await kyb.dataRequests({ status: "refused" })).items;
  assert.deepEqual([data?.requestId, data?.reason], [requestId, "declined"]);
  const [signature] = (await kyb.signatureRequests()).items;
  assert.equal(signature?.requestId, signatureRequestId);
});

test("data is asked for, read and taken back", async () => {
  const once = { idempotencyKey: "order-4711" };
  const made = await kyb.requestData({ business, fields, purpose }, once);
  assert.equal(made.status, "pending_approval");
  const { body, idempotencyKey } = lastCall();
  assert.deepEqual(body, { businessWalletAddress: business, fields, purpose });
  assert.equal(idempotencyKey, "order-4711");
  const read = await kyb.dataRequest(requestId);
  assert.deepEqual([read.reference, read.price.lines], ["order 4711", [someLine]]);
  assert.equal((await kyb.cancelDataRequest(requestId)).status, "cancelled");
});

test("what was released is fetched again, and proved", async () => {
  const { attestation, expiresAt } = await kyb.release(requestId);
  assert.equal(attestation, "a.b.c");
  assert.deepEqual(await kyb.proofs(requestId), [proofOf(business, expiresAt)]);
  for (const changed of [{ name: "EMAIL" }, { subject: undefined }, { leaf: "0x12" }]) {
    const proofs = [{ ...proofOf(business, expiresAt), ...changed }];
    fake.kyc.set(`GET ${base}/data-requests/${requestId}/proofs`, () => ({ requestId, proofs }));
    const [reason] = Object.keys(changed);
    await assert.rejects(kyb.proofs(requestId), { code: "response_invalid", reason });
  }
});

test("whether released fields still hold is asked without their values", async () => {
  const hash: Hex32 = `0x${"33".repeat(32)}`;
  const secret = { hash, pepper: hash };
  const [legalName, , ...directors] = releasedValues.map((field) =>
    Object.assign({}, field, secret),
  );
  assert.ok(legalName !== undefined);
  assert.deepEqual(await kyb.valid({ business, fields: [legalName, ...directors] }), {
    valid: [{ name: "BUSINESS_LEGAL_NAME", subject: "" }],
    invalid: [
      { name: "BUSINESS_DIRECTOR_NAME", subject: "director-1", reason: "REVOKED" },
      { name: "BUSINESS_DIRECTOR_NAME", subject: "director-2", reason: "UNKNOWN" },
    ],
  });
  assert.deepEqual(lastCall().body, {
    businessWalletAddress: business,
    fields: [legalName, ...directors].map(({ name, subject }) => ({ name, subject, hash })),
  });
});

test("a signature is asked for under a key, read and taken back", async () => {
  const asked = { messageKind: "TEXT", message: "Yes.", purpose } as const;
  const once = { idempotencyKey: "terms-1" };
  const made = await kyb.requestSignature({ business, ...asked }, once);
  assert.equal(made.requestId, signatureRequestId);
  const { body, idempotencyKey } = lastCall();
  assert.deepEqual(body, { businessWalletAddress: business, ...asked });
  assert.equal(idempotencyKey, "terms-1");
  assert.equal((await kyb.signatureRequest(signatureRequestId)).messageKind, "TEXT");
  assert.equal((await kyb.cancelSignatureRequest(signatureRequestId)).status, "cancelled");
  const { signature, verification } = await kyb.signature(signatureRequestId);
  assert.ok(signature.startsWith("0x01"));
  assert.equal(verification.contract, business);
  const route = `GET ${base}/signature-requests/${signatureRequestId}/signature`;
  const genuine = fake.kyc.get(route);
  assert.ok(genuine !== undefined);
  for (const wrong of ["0x", "01ab", "0xzz"]) {
    fake.kyc.set(route, async (call) => ({ ...(await genuine(call)), signature: wrong }));
    await assert.rejects(kyb.signature(signatureRequestId), {
      code: "response_invalid",
      reason: "signature",
    });
  }
});

test("a document may hold bigints, which have the digest of their decimal text", async () => {
  const types = { Order: [{ name: "amount", type: "uint256" }] };
  const typedData = { domain: {}, types, primaryType: "Order", message: { amount: 2n ** 64n } };
  const asked = { business, messageKind: "TYPED_DATA", purpose } as const;
  await kyb.requestSignature({ ...asked, typedData }, { idempotencyKey: "order-1" });
  const written = { ...typedData, message: { amount: "18446744073709551616" } };
  assert.deepEqual(lastCall().body["typedData"], written);
  assert.deepEqual(typedDataDigest(typedData), typedDataDigest(written));
});

test("an idempotency key that no header holds is refused before anything is sent", async () => {
  const asked = { business, messageKind: "TEXT", message: "Yes.", purpose } as const;
  const lost = [undefined, null, Number.NaN] as unknown as string[];
  for (const idempotencyKey of ["", "a b", "a\nb", "order → 1", "a".repeat(256), ...lost]) {
    await assert.rejects(kyb.requestSignature(asked, { idempotencyKey }), {
      code: "configuration_invalid",
      reason: "idempotencyKey",
    });
  }
  assert.deepEqual(calls, []);
});

test("offers are made under a key, read and taken back", async () => {
  const once = { idempotencyKey: "till-4" };
  const data = await kyb.offerData({ fields, purpose, offerExpiresInSeconds: 600 }, once);
  assert.deepEqual([data.offerId, data.status], [offerId, "OPEN"]);
  assert.equal(lastCall().idempotencyKey, "till-4");
  await kyb.offerSignature({ messageKind: "TEXT", message: "Yes.", purpose }, once);
  assert.equal(lastCall().idempotencyKey, "till-4");
  const claimed = await kyb.offer(offerId);
  assert.deepEqual([claimed.businessWalletAddress, claimed.requestId], [business, requestId]);
  assert.equal((await kyb.cancelOffer(offerId)).status, "CANCELLED");
});

test("a secret is rotated under a key: a lost answer costs none", async () => {
  await kyb.rotateSecret({}, { idempotencyKey: "rotation-2026-10" });
  assert.equal(lastCall().idempotencyKey, "rotation-2026-10");
  await kyb.rotateSecret();
  assert.equal(lastCall().idempotencyKey, undefined);
});

test("the endpoint is registered, tested, rotated and taken out of quarantine", async () => {
  const url = "https://shop.example/hooks";
  assert.equal((await kyb.registerEndpoint(url)).secret, endpointSecret);
  assert.deepEqual(lastCall().body, { url });
  const endpoint = await kyb.endpoint();
  assert.deepEqual([endpoint.active, endpoint.secret], [false, undefined]);
  calls.length = 0;
  const rotated = await kyb.rotateSecret({ immediate: true });
  assert.deepEqual([rotated.secretVersion, rotated.secret.length], [2, 64]);
  assert.deepEqual(lastCall().body, { immediate: true });
  assert.equal((await kyb.reactivate()).active, true);
  assert.match(await kyb.testEndpoint(), /^01JE/);
});

test("a registration or rotation whose answer lacks the secret is no answer", async () => {
  const path = `${base}/webhook-endpoint`;
  const withoutSecret = {
    url: "https://shop.example",
    secretVersion: 1,
    active: true,
    createdAt: 1,
  };
  fake.kyc.set(`PUT ${path}`, () => withoutSecret);
  fake.kyc.set(`POST ${path}/rotate-secret`, () => withoutSecret);
  const asks = [() => kyb.registerEndpoint("https://shop.example"), () => kyb.rotateSecret()];
  for (const ask of asks) await assert.rejects(ask, { code: "response_invalid", reason: "secret" });
});

const streams: [RequestKind, string][] = [
  ["data-requests", requestId],
  ["signature-requests", signatureRequestId],
];
for (const [kind, id] of streams)
  test(`events of ${kind} after one are listed with how they were delivered, and sent again`, async () => {
    const [onItsWay, purged] = await kyb.events(kind, id, { after: 1, limit: 2 });
    assert.equal(lastCall().query, "after_seq=1&limit=2");
    assert.deepEqual([onItsWay?.seq, onItsWay?.nextAttemptAt], [2, fake.now + 5]);
    assert.equal(onItsWay?.content?.streamId, id);
    assert.deepEqual([purged?.deliveredAt, purged?.content], [fake.now, undefined]);
    const [failed, refused] = await kyb.deliveries(kind, id, { after: 2, afterAttempt: 0 });
    assert.equal(lastCall().query, "after_seq=2&after_attempt=0");
    assert.deepEqual(
      [failed?.outcome, failed?.status, failed?.durationMs],
      ["failed", undefined, undefined],
    );
    assert.deepEqual(
      [refused?.outcome, refused?.status, refused?.durationMs],
      ["refused", 503, 12],
    );
    assert.equal(await kyb.redeliver(kind, id), 2);
    assert.equal(await kyb.redeliver(kind, id, "01JE0000000000000000000000"), 1);
    await assert.rejects(kyb.redeliver(kind, id, "gone"), {
      code: "call_refused",
      reason: "payload_expired",
      status: 410,
    });
  });

test("all events of the client domain are listed, a move too, with how one of them went, and it is sent again", async () => {
  const type = "kyb.business.wallet_address_changed";
  const { items, nextCursor: next } = await kyb.allEvents({
    type,
    status: "undelivered",
    limit: 1,
  });
  assert.equal(lastCall().query, `type=${type}&status=undelivered&limit=1`);
  const [moved] = items;
  assert.ok(moved?.content?.event === type);
  assert.equal(moved.content.business, business);
  assert.deepEqual([moved.streamId, moved.nextAttemptAt], [moved.content.streamId, undefined]);
  assert.equal(next, nextCursor);
  assert.deepEqual(await kyb.allEvents({ cursor: nextCursor }), { items: [] });
  const tried = await kyb.eventDeliveries(moved.eventId, { limit: 1 });
  assert.deepEqual([tried.items[0]?.outcome, tried.nextCursor], ["failed", nextCursor]);
  assert.deepEqual(await kyb.eventDeliveries(moved.eventId, { cursor: nextCursor }), { items: [] });
  assert.equal(await kyb.redeliverEvent(moved.eventId), 1);
});

test("an id from outside becomes no other path", async () => {
  const refused = { code: "call_refused", status: 404 };
  await assert.rejects(kyb.dataRequest("../billing/account"), refused);
  // `..` would address the list of the events of all requests.
  await assert.rejects(kyb.events("data-requests", ".."), refused);
  await assert.rejects(kyb.deliveries("data-requests", "."), refused);
  await assert.rejects(kyb.dataRequest("\ud800"), refused);
  assert.deepEqual(calls, []);
  for (const lost of [undefined, null, 5, ""] as string[])
    await assert.rejects(kyb.cancelDataRequest(lost), {
      code: "configuration_invalid",
      reason: "id",
    });
});

test("a refusal keeps its reason, and an invalid answer is reported as one", async () => {
  fake.kyc.set(`GET ${base}/pricing`, () => {
    throw new KycRefusal(403, "kyb_not_entitled");
  });
  await assert.rejects(kyb.pricing(), { code: "call_refused", reason: "kyb_not_entitled" });
  fake.kyc.set(`GET ${base}/billing/charges`, () => ({ items: [{}] }));
  await assert.rejects(kyb.charges(), { code: "response_invalid", reason: "chargeId" });
});
