import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";

import { verifyKybWebhook, type KybDelivery } from "./kyb-webhook.ts";
import { MerchantError } from "./merchant-error.ts";

const now = 1_800_000_000;
const [secret, old] = ["a".repeat(64), "b".repeat(64)];
const business = "0x1111111111111111111111111111111111111111";
const body = Buffer.from(
  JSON.stringify({
    event: "kyb.signature_request.signed",
    event_id: "01JD000000000000000000000B",
    stream_id: "01JD000000000000000000000A",
    seq: 2,
    timestamp: now,
    api_version: "v1",
    livemode: true,
    data: {
      request_id: "01JD000000000000000000000A",
      business_wallet_address: business,
      status: "signed",
      signature: `0x01${"ab".repeat(32)}`,
    },
  }),
);

const macOf = (key: string, time = now): string =>
  createHmac("sha256", key).update(`${time}.`).update(body).digest("hex");
const headerOf = (time: number, ...pairs: [key: string, version: number][]): string =>
  [`t=${time}`, ...pairs.map(([key, kv]) => `v1=${macOf(key, time)},kv=${kv}`)].join(",");

function refusalOf(header: string | undefined, changed: Partial<KybDelivery> = {}): string | null {
  const headers = { "svc-kyb-signature": header };
  try {
    verifyKybWebhook({ headers, rawBody: body, secrets: [secret], now, ...changed });
    return null;
  } catch (error) {
    assert.ok(error instanceof MerchantError);
    return `${error.code} ${error.reason}`;
  }
}

test("a delivery under the live secret gives its event", () => {
  const headers = new Headers({ "Svc-KYB-Signature": headerOf(now, [secret, 1]) });
  const event = verifyKybWebhook({ headers, rawBody: body, secrets: [secret], now });
  assert.equal(event.event, "kyb.signature_request.signed");
  assert.ok(event.business === business);
  assert.equal(event.signature, `0x01${"ab".repeat(32)}`);
});

test("during a rotation either secret is enough, and after it the new one", () => {
  const both = headerOf(now, [secret, 2], [old, 1]);
  for (const secrets of [[secret], [old], [secret, old]])
    assert.equal(refusalOf(both, { secrets }), null);
  assert.equal(
    refusalOf(headerOf(now, [secret, 2]), { secrets: [old] }),
    "webhook_refused signature",
  );
});

test("a time of five minutes either way is taken, and no other", () => {
  for (const [seconds, expected] of [
    [-301, "webhook_refused timestamp"],
    [-300, null],
    [300, null],
    [301, "webhook_refused timestamp"],
  ] as const)
    assert.equal(refusalOf(headerOf(now + seconds, [secret, 1])), expected, String(seconds));
});

test("a delivery that lacks a part is a mistake that names it", () => {
  const header = headerOf(now, [secret, 1]);
  for (const part of ["headers", "rawBody", "secrets"])
    assert.equal(refusalOf(header, { [part]: undefined }), `configuration_invalid ${part}`);
});

test("a delivery of another signature, form or body is refused, and an empty secret is a mistake", () => {
  assert.equal(refusalOf(undefined), "webhook_refused header");
  assert.equal(refusalOf("t=1,s=00"), "webhook_refused header");
  assert.equal(refusalOf(headerOf(now, [old, 1])), "webhook_refused signature");
  const rawBody = Buffer.concat([body, Buffer.from(" ")]);
  assert.equal(refusalOf(headerOf(now, [secret, 1]), { rawBody }), "webhook_refused signature");
  assert.equal(
    refusalOf(headerOf(now, [secret, 1]), { secrets: [] }),
    "configuration_invalid secrets",
  );
  assert.equal(
    refusalOf(headerOf(now, [secret, 1]), { secrets: [""] }),
    "configuration_invalid secrets",
  );
});
