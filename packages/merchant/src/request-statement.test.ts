import assert from "node:assert/strict";
import { test } from "node:test";

import type { Receipt } from "@svc/protocol";

import { readStatement } from "./request-statement.ts";

const header = { alg: "ES256", typ: "svc-request+jwt", kid: "one" };
const claims = {
  iss: "https://id.example",
  aud: "svc-wallet",
  action: "request",
  id: "ab".repeat(32),
  client_name: "Corner Coffee",
  domain: "shop.example",
  required: ["EMAIL"],
  optional: ["DOB_PARENT_FIELD"],
  callback_host: "shop.example",
  iat: 1_800_000_000,
};

const encode = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString("base64url");
const compactOf = (changed: object = {}, head: object = {}): string =>
  `${encode({ ...header, ...head })}.${encode({ ...claims, ...changed })}.c2ln`;

/** Reads the statement of a receipt of this order, of which these fields were released. */
function read(requestObject: string, released: readonly string[] = ["EMAIL"]) {
  const receipt = {
    referenceKey: claims.id,
    requestObject,
    share: { connection: `${claims.iss}/w/o/token`, requester: claims.domain },
    fields: released.map((field) => ({ field })),
  } as unknown as Receipt;
  return readStatement(receipt, (claim) => new Error(claim));
}

test("what the user was shown is read out of the request object", () => {
  const { broker, clientName, requester } = read(compactOf());
  assert.deepEqual([broker, clientName, requester], [claims.iss, "Corner Coffee", "shop.example"]);
});

test("a token of another kind, or of another form, is no statement", () => {
  for (const typ of [undefined, "JWT", "svc-request", "SVC-REQUEST+JWT"])
    assert.throws(() => read(compactOf({}, { typ })), /^Error: typ$/);
  const [head = "", body = ""] = compactOf().split(".");
  for (const other of [
    "",
    "e30",
    `${head}.${body}`,
    `${compactOf()}.c2ln`,
    `${head}.${encode([])}.c2ln`,
  ])
    assert.throws(() => read(other), /^Error: form$/, other);
});

test("what was released is what was asked for: all that was required, and nothing else", () => {
  for (const released of [["EMAIL"], ["EMAIL", "IDCARD_DOB"], ["EMAIL", "PASSPORT_DOB"]])
    assert.ok(read(compactOf(), released));
  for (const released of [[], ["IDCARD_DOB"], ["EMAIL", "PHONE"], ["EMAIL", "IDCARD_DOB", "PHONE"]])
    assert.throws(() => read(compactOf(), released), /^Error: required$/, released.join(" "));
});
