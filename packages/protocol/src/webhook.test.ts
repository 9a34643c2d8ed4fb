import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { test } from "node:test";
import {
  parseSvcKybSignature,
  parseSvcSignature,
  svcKybSignatureHeader,
  svcSignature,
  svcSignatureHeader,
} from "./webhook.ts";

const timestamp = 1_800_000_000;
const key = "whk_ünïcode";
const body = '{"event":"status.updated","data":{"reference":"Zoë"}}';

test("the signature is the HMAC-SHA256 of time, dot and body under the key's UTF-8 bytes", () => {
  const expected = createHmac("sha256", Buffer.from(key, "utf8"))
    .update(Buffer.from(`${timestamp}.${body}`, "utf8"))
    .digest("hex");
  assert.equal(svcSignature({ key, timestamp, body }), expected);
  assert.equal(svcSignature({ key, timestamp, body: Buffer.from(body) }), expected);
});

test("the header is read as it is written, and in no other spelling", () => {
  const signature = svcSignature({ key, timestamp, body });
  const header = svcSignatureHeader({ timestamp, signature });
  assert.match(header, /^t=1800000000,s=[0-9a-f]{64}$/);
  assert.deepEqual(parseSvcSignature(header), { timestamp, signature });
  for (const wrong of [
    "",
    `s=${signature},t=${timestamp}`,
    `${header},s=${signature}`,
    ` ${header}`,
    header.toUpperCase(),
    `t=-1,s=${signature}`,
    `t=01,s=${signature}`,
    `t=1e9,s=${signature}`,
    `t=${timestamp},s=${signature.slice(1)}`,
  ])
    assert.equal(parseSvcSignature(wrong), null, wrong);
});

test("a KYB header names one signature, or the old secret's as well, and nothing else", () => {
  const [signature, old] = ["a".repeat(64), "b".repeat(64)];
  const one = { timestamp: 1, signatures: [{ version: 2, signature }] };
  const two = { timestamp: 1, signatures: [...one.signatures, { version: 1, signature: old }] };
  assert.equal(svcKybSignatureHeader(one), `t=1,v1=${signature},kv=2`);
  for (const each of [one, two])
    assert.deepEqual(parseSvcKybSignature(svcKybSignatureHeader(each)), each);
  const bad = [
    `t=1,v1=${signature}`,
    `t=1,kv=2,v1=${signature}`,
    `t=01,v1=${signature},kv=2`,
    `t=1,v1=${signature.toUpperCase()},kv=2`,
    `t=1,v1=${signature},kv=0`,
    `t=1,v1=${signature},kv=3,v1=${signature},kv=2,v1=${signature},kv=1`,
    `t=1,v1=${signature},kv=2,`,
    "",
  ];
  for (const header of bad) assert.equal(parseSvcKybSignature(header), null, header);
});
