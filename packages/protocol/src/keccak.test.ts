import assert from "node:assert/strict";
import { test } from "node:test";
import * as fc from "fast-check";
import { keccak_256 } from "@noble/hashes/sha3";
import { createKeccak } from "hash-wasm/dist/index.esm.js";
import { hexOfBytes } from "./encoding.ts";
import { keccak256 } from "./keccak.ts";

// This line asks the plain implementation: WebAssembly is only compiled afterwards.
const early = hexOfBytes(keccak256(new Uint8Array(0)));
await createKeccak(256);

test("the empty text has the hash that Ethereum knows, before and after WebAssembly is there", () => {
  const known = "0xc5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470";
  assert.equal(early, known);
  assert.equal(hexOfBytes(keccak256(new Uint8Array(0))), known);
});

test("both agree on every length around a block, and on what is longer than the hasher's memory", () => {
  for (let length = 0; length <= 300; length++) {
    const bytes = new Uint8Array(length).map((_, at) => at * 7 + length);
    assert.deepEqual(keccak256(bytes), keccak_256(bytes), String(length));
  }
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 100_000, size: "max" }), (bytes) => {
      assert.deepEqual(keccak256(bytes), keccak_256(bytes));
    }),
    { numRuns: 20 },
  );
});

test("WebAssembly does the work: a megabyte takes less than half of what plain JavaScript takes", () => {
  const bytes = new Uint8Array(1_000_000);
  const timed = (hash: (bytes: Uint8Array) => Uint8Array): number => {
    const startedAt = process.cpuUsage();
    hash(bytes);
    return process.cpuUsage(startedAt).user;
  };
  timed(keccak256);
  assert.ok(timed(keccak256) < timed(keccak_256) / 2);
});

test("a hash keeps its bytes when the next is made", () => {
  const first = keccak256(Uint8Array.of(1));
  const copy = Uint8Array.from(first);
  keccak256(Uint8Array.of(2));
  assert.deepEqual(first, copy);
});
