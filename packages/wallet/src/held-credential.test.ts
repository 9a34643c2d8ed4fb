import assert from "node:assert/strict";
import { test } from "node:test";

import { commitmentOf, leafOf, type Hex32 } from "@svc/protocol";

import { checkValues, readListed } from "./held-credential.ts";
import { issue, type Issued } from "../test/fake-fields.ts";
import { addressOf } from "../test/test-wallet.ts";

const alice = addressOf("alice");
const broker = "https://id.example";

/** Whether a wallet keeps what a broker lists. */
function isKept(listed: Issued): boolean {
  const read = readListed(listed, broker);
  return read !== null && checkValues(alice, read) !== null;
}

test("a leaf that is its own root is no credential: anybody's hash could be one", () => {
  const pepper: Hex32 = `0x${"07".repeat(32)}`;
  const [data, expiresAt] = ["alice@example.com", 2_000_000];
  const commitment = commitmentOf({ data, pepper });
  const root = leafOf({ user: alice, field: "EMAIL", commitment, expiresAt });
  const field = { field: "EMAIL" as const, expiresAt, data, pepper, proof: [] };
  assert.ok(isKept(issue(alice, { EMAIL: data })));
  assert.ok(!isKept({ ...issue(alice, { EMAIL: data }), root, fields: [field] }));
});

test("a credential names each field once, and at least one", () => {
  const issued = issue(alice, { EMAIL: "alice@example.com" });
  assert.ok(!isKept({ ...issued, fields: [...issued.fields, ...issued.fields] }));
  assert.ok(!isKept({ ...issued, fields: [] }));
});

test("a credential whose id no address can name is none", () => {
  const issued = issue(alice, { EMAIL: "alice@example.com" });
  assert.equal(readListed({ ...issued, id: "\ud800" }, broker), null);
});
