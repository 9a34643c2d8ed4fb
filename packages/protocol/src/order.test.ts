import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { encodeAbiParameters, keccak256, parseAbiParameters, stringToBytes } from "viem";

import vectors from "../vectors/orders.json" with { type: "json" };
import type { Address } from "./address.ts";
import type { Hex32 } from "./encoding.ts";
import { auditLeafOf, orderIdOf, orderLeafOf, orderPhase, referenceKeyOf } from "./order.ts";
import { anyHash } from "../tools/generated-links.ts";

interface OrderVector {
  referenceKey: string;
  attempt: number;
  salt: Hex32;
  order: Hex32;
  consent: Hex32;
  data: Hex32;
}
const orders = vectors.orders as (OrderVector & (typeof vectors.orders)[0])[];
const typeOf = (text: string): Hex32 => keccak256(stringToBytes(text));
const twice = (bytes: Hex32): Hex32 => keccak256(keccak256(bytes));
const order = orders[0] as OrderVector;

test("every reference key of the vectors comes out", () => {
  for (const each of vectors.referenceKeys) {
    assert.equal(referenceKeyOf({ ...each, user: each.user as Address }), each.referenceKey);
  }
});

test("a reference key does not depend on order or repetition, and a name in both lists is required", () => {
  const given = { sourceKey: "src_1", user: "0x0000000000000000000000000000000000000001" } as const;
  const key = referenceKeyOf({ ...given, required: ["A", "B"], optional: ["C"] });
  assert.match(key, /^[0-9a-f]{64}$/);
  assert.equal(referenceKeyOf({ ...given, required: ["B", "A", "B"], optional: ["C", "A"] }), key);
  assert.notEqual(referenceKeyOf({ ...given, required: ["A"], optional: ["B", "C"] }), key);
  assert.notEqual(referenceKeyOf({ ...given, required: ["A", "B", "C"], optional: [] }), key);
});

test("every order id, order leaf and audit leaf of the vectors comes out", () => {
  for (const each of orders) {
    assert.equal(orderIdOf(each), each.order);
    assert.equal(orderLeafOf({ ...each, phase: orderPhase.initiate }), each.initiateLeaf);
    assert.equal(orderLeafOf({ ...each, phase: orderPhase.confirm }), each.confirmLeaf);
  }
  for (const { head, position, leaf } of vectors.auditHeads) {
    assert.equal(auditLeafOf({ head: head as Hex32, position }), leaf);
  }
});

test("order ids and leaves equal viem's, whatever they hold and in any order of calls", () => {
  const any = fc.record({
    key: anyHash,
    attempt: fc.integer({ min: 1, max: 0xffff_ffff }),
    salt: anyHash,
    consent: anyHash,
    data: anyHash,
    phase: fc.constantFrom(1 as const, 2 as const),
    position: fc.maxSafeNat(),
  });
  fc.assert(
    fc.property(any, ({ key, attempt, salt, consent, data, phase, position }) => {
      const id = keccak256(
        encodeAbiParameters(parseAbiParameters("bytes32, bytes32, uint32, bytes32"), [
          typeOf("Order(bytes32 referenceKey,uint32 attempt,bytes32 salt)"),
          key,
          attempt,
          salt,
        ]),
      );
      assert.equal(orderIdOf({ referenceKey: key.slice(2), attempt, salt }), id);
      const leaf = encodeAbiParameters(
        parseAbiParameters("bytes32, uint8, bytes32, bytes32, bytes32"),
        [
          typeOf("OrderLeaf(uint8 phase,bytes32 order,bytes32 consent,bytes32 data)"),
          phase,
          id,
          consent,
          data,
        ],
      );
      assert.equal(orderLeafOf({ phase, order: id, consent, data }), twice(leaf));
      const head = encodeAbiParameters(parseAbiParameters("bytes32, bytes32, uint64"), [
        typeOf("AuditHead(bytes32 head,uint64 position)"),
        salt,
        BigInt(position),
      ]);
      assert.equal(auditLeafOf({ head: salt, position }), twice(head));
    }),
    { numRuns: 300 },
  );
});

test("a value that does not fit its member of an order is refused", () => {
  assert.throws(() => orderIdOf({ ...order, referenceKey: `0x${order.referenceKey}` }), TypeError);
  assert.throws(() => orderIdOf({ ...order, attempt: 2 ** 32 }), TypeError);
  assert.throws(() => orderIdOf({ ...order, salt: "0x00" }), TypeError);
  assert.throws(() => orderLeafOf({ ...order, phase: 1, consent: "0x" }), TypeError);
  assert.throws(() => auditLeafOf({ head: order.salt, position: -1 }), TypeError);
});
