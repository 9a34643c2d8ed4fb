import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { createRandom } from "../platform/cryptography/random.ts";
import { dataInvalidated, dataTransferred, statusUpdated } from "./events.ts";
import type { Order } from "./order-row.ts";
import { checkWebhookForm } from "../../../test/webhook-forms.ts";

/** An order with every member that one can have. */
const order: Order = {
  id: "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b5",
  referenceKey: "00".repeat(32),
  packageId: "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b6",
  clientDomainId: "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b7",
  organizationId: "0199c3a0-6b2d-7a10-8c44-91d0e2f3a4b8",
  environment: "live",
  user: `0x${"11".repeat(20)}`,
  required: ["EMAIL"],
  optional: [],
  attempt: 1,
  status: "FAILED",
  statusAt: 1,
  scannedAt: null,
  failureReason: "CONFIRM_TX_FAILED",
  sequence: 1,
  callback: "https://shop.example.com/hook",
  expiration: 1,
  reference: "r-1",
  purpose: null,
  returnUrl: null,
  createdAt: 1,
  mismatches: 0,
  salt: `0x${"22".repeat(32)}`,
  initiatedTxHash: `0x${"33".repeat(32)}`,
  confirmTxHash: `0x${"44".repeat(32)}`,
};
const ctx = {
  clock: { now: () => 1, nowMs: () => 1000 },
  random: createRandom(),
};

test("personal data waits seven days for its receiver, other events have no such limit", () => {
  assert.equal(dataTransferred(ctx, order, "W10=").payloadExpiresAt, 1 + 7 * 86_400);
  assert.equal(statusUpdated(ctx, order).payloadExpiresAt, null);
});

test("an event contains its fields, the id of its signing key, and its environment", () => {
  for (const environment of ["live", "sandbox"] as const) {
    const event = statusUpdated(ctx, { ...order, environment, optional: ["PHONE"] });
    assert.equal("keyId" in event && event.keyId, order.packageId);
    const { livemode, data } = JSON.parse(event.body) as { livemode: boolean; data: object };
    assert.equal(livemode, environment === "live");
    assert.deepEqual({ ...data, fields: ["EMAIL", "PHONE"] }, data);
  }
});

test("the webhook reference and the OpenAPI document list every member of an order's events", () => {
  const page = new URL("../../../docs/reference/webhooks.md", import.meta.url);
  const text = readFileSync(page, "utf8");
  for (const { kind, body } of [
    statusUpdated(ctx, order),
    dataTransferred(ctx, order, "W10="),
    dataInvalidated(ctx, order, ["EMAIL"]),
  ]) {
    const [, told = ""] = text.split(`\`${kind}\` adds`);
    const [own = ""] = told.split(/` adds|\n\n/);
    const common = /\| `data` +\|.*/.exec(text)?.[0] ?? "";
    checkWebhookForm(body);
    const { data } = JSON.parse(body) as { data: object };
    const untold = Object.keys(data).filter((name) => !`${own}${common}`.includes(`\`${name}\``));
    assert.deepEqual(untold, [], kind);
  }
});
