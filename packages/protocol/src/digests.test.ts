import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { hashTypedData as viemHashTypedData } from "viem";

import vectors from "../vectors/digests.json" with { type: "json" };
import fingerprints from "../vectors/fingerprints.json" with { type: "json" };
import {
  accessDigest,
  declineDigest,
  fieldsHash,
  leavesHash,
  loginDigest,
  sessionDigest,
  shareDigest,
  transferDigest,
  zeroHash,
} from "./digests.ts";
import { hexOfBytes } from "./encoding.ts";
import type { Hex32 } from "./encoding.ts";
import { textFingerprint } from "./fingerprint.ts";
import { claimOf } from "./login-session.ts";
import { requestObjectHash } from "./request-object.ts";
import { svcDomain, svcTypes } from "./svc-types.ts";
import { hashTypedData } from "./typed-data.ts";
import type { TypedDataDocument } from "./typed-data.ts";
import { anyAddress, anyHash, anyShowable } from "../tools/generated-links.ts";

const digestOf = {
  Login: loginDigest,
  Share: shareDigest,
  Access: accessDigest,
  Transfer: transferDigest,
  Decline: declineDigest,
  Session: sessionDigest,
};
type Name = keyof typeof digestOf;

const fast = (type: string, message: object): string =>
  hexOfBytes(digestOf[type as Name](message as never));

test("every digest of the vectors comes out, fast and by the general way", () => {
  for (const { type, message, digest } of vectors.typedData) {
    assert.equal(fast(type, message), digest, type);
    assert.equal(
      hashTypedData({ domain: svcDomain, types: svcTypes, primaryType: type, message }),
      digest,
      type,
    );
  }
});

test("the fast digests equal viem's whatever the members hold, in any order of calls", () => {
  const seconds = fc.maxSafeNat();
  const request = { request: fc.string(), connection: anyShowable, requester: fc.string() };
  const messages = fc.oneof(
    fc.tuple(
      fc.constant("Login"),
      fc.record({
        session: fc.string(),
        connection: anyShowable,
        requester: fc.string(),
        code: fc.string(),
        object: anyHash,
      }),
    ),
    fc.tuple(
      fc.constant("Share"),
      fc.record({ ...request, object: anyHash, fields: anyHash, data: anyHash, deadline: seconds }),
    ),
    fc.tuple(
      fc.constant("Access"),
      fc.record({ ...request, object: anyHash, fields: anyHash, deadline: seconds }),
    ),
    fc.tuple(
      fc.constant("Transfer"),
      fc.record({
        from: anyAddress,
        data: anyHash,
        expiresAt: seconds,
        audience: fc.string(),
        nonce: fc.string(),
      }),
    ),
    fc.tuple(fc.constant("Decline"), fc.record({ request: fc.string(), connection: anyShowable })),
    fc.tuple(
      fc.constant("Session"),
      fc.record({ origin: anyShowable, challenge: fc.string(), deadline: seconds }),
    ),
  );
  fc.assert(
    fc.property(messages, ([primaryType, message]) => {
      const document: TypedDataDocument = {
        domain: svcDomain,
        types: svcTypes,
        primaryType,
        message: { ...message },
      };
      assert.equal(fast(primaryType, message), viemHashTypedData(document as never));
    }),
    { numRuns: 500 },
  );
});

test("a digest is a fresh array that later calls leave alone", () => {
  const first = declineDigest({ request: "a", connection: "b" });
  const kept = hexOfBytes(first);
  declineDigest({ request: "c", connection: "d" });
  assert.equal(hexOfBytes(first), kept);
});

test("a digest refuses a malformed hash or time, and is not spoiled by it", () => {
  const login = { session: "", connection: "", requester: "", code: "", object: zeroHash };
  const before = hexOfBytes(loginDigest(login));
  assert.throws(() => loginDigest({ ...login, object: "0x00" }), TypeError);
  assert.throws(() => sessionDigest({ origin: "", challenge: "", deadline: 1.5 }), TypeError);
  assert.throws(() => sessionDigest({ origin: "", challenge: "", deadline: -1 }), TypeError);
  assert.equal(hexOfBytes(loginDigest(login)), before);
});

test("field names are hashed sorted, leaves in their order", () => {
  for (const { names, hash } of vectors.fields) assert.equal(fieldsHash(names), hash);
  for (const { leaves, hash } of vectors.leaves) assert.equal(leavesHash(leaves as Hex32[]), hash);
});

test("the fingerprint of a text is the SHA-256 of its UTF-8 bytes in hex", () => {
  for (const { text, fingerprint } of fingerprints.cases)
    assert.equal(textFingerprint(text), fingerprint);
});

test("a request object and a claim secret are hashed as the vectors say", () => {
  assert.equal(requestObjectHash(vectors.requestObject.compact), vectors.requestObject.hash);
  assert.equal(claimOf(vectors.claim.secret), vectors.claim.claim);
  assert.throws(() => claimOf("short"), TypeError);
});
