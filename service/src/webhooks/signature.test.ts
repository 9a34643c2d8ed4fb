import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import { headersOf } from "./signature.ts";

const secret = "a secret";
const timestamp = 1_800_000_000;

const macOf = (prefix: string, body: Uint8Array): Buffer =>
  createHmac("sha256", secret).update(prefix).update(body).digest();

test("both signatures cover every byte of a body, however long it is", () => {
  const body = Buffer.alloc(1_000_000, "a");
  const signed = { eventId: "evt_1", body, number: 1, timestamp };
  const headers = headersOf("kyc", [{ version: 1, secret }], signed);
  assert.equal(
    headers["Svc-Signature"]?.includes(macOf(`${timestamp}.`, body).toString("hex")),
    true,
  );
  const standard = macOf(`evt_1.${timestamp}.`, body).toString("base64");
  assert.equal(headers["webhook-signature"], `v1,${standard}`);
  const kyb = headersOf("kyb", [{ version: 3, secret }], signed)["Svc-KYB-Signature"];
  assert.equal(kyb?.includes(macOf(`${timestamp}.`, body).toString("hex")), true);
});
