import assert from "node:assert/strict";
import { test } from "node:test";
import { scrypt as ofThisRuntime } from "#scrypt";
import { scrypt as ofNode } from "./scrypt-node.ts";
import { scrypt as ofAnyRuntime } from "./scrypt.ts";

test("what a passphrase is stretched to is the same in Node and in a browser", async () => {
  const passphrase = new TextEncoder().encode("pässword of a vault");
  const salt = Uint8Array.from({ length: 16 }, (_, at) => at);
  const keys = await Promise.all(
    [ofNode, ofAnyRuntime].map(async (each) => each(passphrase, salt)),
  );
  const expected = "f7086e18788d9b0c1d7e6e14631042af5f1c939fb346d9387bc3f1fbaaeedc70";
  assert.deepEqual(
    keys.map((key) => Buffer.from(key).toString("hex")),
    [expected, expected],
  );
  assert.equal(ofThisRuntime, ofNode);
});
