import assert from "node:assert/strict";
import { test } from "node:test";

import { hashTypedData as viemHashTypedData } from "viem";

import vectors from "../vectors/business.json" with { type: "json" };
import {
  type Charter,
  approvalDigest,
  businessCategory,
  businessLoginHash,
  decodeCharter,
  hasKey,
  defaultGovernanceRule,
  encodeCharter,
  governanceActs,
  governanceHash,
  invitationDigest,
  keepDigest,
  releaseHash,
  ruleOfCategory,
  thresholdOf,
} from "./business.ts";
import { bytesOfHex, hexOfBytes } from "./encoding.ts";
import type { Hex, Hex32 } from "./encoding.ts";
import type { Address } from "./address.ts";
import { addressOfPrivateKey, signDigest } from "./signature.ts";
import { businessTypes } from "./svc-types.ts";

// The expected values come from viem 2.57.1: hashStruct, hashTypedData, encodeAbiParameters, keccak256.
const alice: Address = "0x00000000000000000000000000000000000a11ce";
const bob: Address = "0x00000000000000000000000000000000000b0b0b";
const business: Address = "0x1111111111111111111111111111111111111111";

const charter: Charter = {
  rules: { signature_requests: "MAJORITY", data_requests: "UNANIMOUS", governance: "MAJORITY" },
  members: [
    { address: bob, isVoting: false },
    { address: alice, isVoting: true },
  ],
};

test("a charter is three rules, then members in the order of their addresses", () => {
  const packed = encodeCharter(charter);
  assert.equal(packed, `0x00010001${alice.slice(2)}00${bob.slice(2)}`);
  assert.deepEqual(decodeCharter(packed), {
    ...charter,
    members: charter.members.toReversed(),
  });
});

/** A charter of this many voting members. */
const charterOf = (members: number): `0x${string}` => {
  const tails = Array.from({ length: members }, (_, at) => (0xa11ce + at).toString(16));
  return `0x000000${tails.map((digits) => `01${digits.padStart(40, "0")}`).join("")}`;
};

test("what the contract would refuse is no charter", () => {
  const zeros = "00".repeat(19);
  const one = `01${alice.slice(2)}`;
  const bad = {
    "no members": "0x000000",
    "an unknown rule": `0x020000${one}`,
    "an unknown flag": `0x000000${one}02ff${alice.slice(4)}`,
    "a member twice": `0x000000${one}${one}`,
    "nobody who votes": `0x00000000${alice.slice(2)}`,
    "a precompile": `0x00000001${zeros}09`,
    "half a member": `0x000000${one}01`,
    "no hex": "0xzz",
    "more than 100 members": charterOf(101),
  } as const;
  for (const [name, text] of Object.entries(bad)) assert.equal(decodeCharter(text), null, name);
  assert.notEqual(decodeCharter(`0x000000${one}`), null);
  assert.equal(decodeCharter(charterOf(100))?.members.length, 100);
  assert.throws(() => governanceActs.changeCharter("0xzz"), TypeError);
});

test("a majority is more than half, and all are all", () => {
  const sizes = [1, 2, 3, 4, 10, 25];
  assert.deepEqual(
    sizes.map((voters) => thresholdOf("MAJORITY", voters)),
    [1, 2, 2, 3, 6, 13],
  );
  assert.deepEqual(
    sizes.map((voters) => thresholdOf("UNANIMOUS", voters)),
    sizes,
  );
  assert.equal(defaultGovernanceRule(2), "UNANIMOUS");
  assert.equal(defaultGovernanceRule(3), "MAJORITY");
});

test("a login follows the rule of signatures", () => {
  assert.deepEqual(
    Object.values(businessCategory).map((category) => ruleOfCategory(category)),
    ["signature_requests", "data_requests", "governance", "signature_requests"],
  );
});

const act = governanceActs.changeCharter(encodeCharter(charter));
const release = {
  requestId: "01JD000000000000000000000A",
  audience: "0190c0de-0000-7000-8000-000000000000",
  business,
  required: ["BUSINESS_LEGAL_NAME"],
  optional: [],
  purpose: "Onboarding",
  deadline: 1_800_000_000,
};
const login = {
  session: "s",
  issuer: "https://id.example",
  clientId: "c",
  requester: "shop.example",
  scope: "openid business",
  business,
  actingMember: alice,
};
const hash = releaseHash(release);

test("every hash is the one that viem computes", () => {
  assert.deepEqual(
    {
      act: act.arguments,
      moveTo: governanceActs.moveTo(alice).arguments,
      governance: governanceHash({ ...act, nonce: 3 }),
      release: hash,
      login: businessLoginHash(login),
      approval: hexOfBytes(
        approvalDigest({
          chainId: 7,
          business,
          category: 2,
          hash,
          epoch: 1,
          validUntil: 1_800_003_600,
        }),
      ),
      invitation: hexOfBytes(
        invitationDigest({
          chainId: 7,
          factory: business,
          salt: `0x${"22".repeat(32)}`,
          charter: encodeCharter(charter),
          deadline: 1_800_000_000,
        }),
      ),
      keep: hexOfBytes(keepDigest({ chainId: 7, business, nonce: 4 })),
    },
    {
      act: "0x0000000000000000000000000000000000000000000000000000000000000020000000000000000000000000000000000000000000000000000000000000002d0001000100000000000000000000000000000000000a11ce0000000000000000000000000000000000000b0b0b00000000000000000000000000000000000000",
      moveTo: "0x00000000000000000000000000000000000000000000000000000000000a11ce",
      governance: "0x66c9804a08c2a7b95cc028b1950b3e372e6db79e5b1f6d441940d12438c6df9e",
      release: "0x8c6f1a0f24d32e34790466e24d6b813ab934661e6fd4386375a3849fb1cecaf8",
      login: "0x2a929748282b666af32449d16efa2bc375fc7bfd576ff84e70707d84003c02fb",
      approval: "0x9dfa9b90a34e3e4554c7b45f7cbc8c3dd6eee4b6fec9c7e09dc10b5f95eabf12",
      invitation: "0xd19a31a4514314499ed558ea213cb1b34d0a5b583bbcc28dc952faa59f0e35c8",
      keep: "0x8cacf7984c58a603ed4810d4a81d317142c3993f3ecace28c4c558ad5e72284d",
    },
  );
});

test("every charter of the vectors is packed and read as it says", () => {
  for (const { packed, ...given } of vectors.charters) {
    const read = decodeCharter(packed as Hex);
    assert.ok(read !== null);
    assert.deepEqual(read.rules, given.rules);
    assert.equal(encodeCharter(given as Charter), packed);
  }
  for (const bad of vectors.badCharters) assert.equal(decodeCharter(bad as Hex), null, bad);
});

test("every hash that the vectors have members approve comes out", () => {
  for (const { hash: expected, ...message } of vectors.releases)
    assert.equal(releaseHash(message as Parameters<typeof releaseHash>[0]), expected);
  for (const { hash: expected, ...message } of vectors.governance)
    assert.equal(governanceHash(message as Parameters<typeof governanceHash>[0]), expected);
  for (const { hash: expected, ...message } of vectors.logins)
    assert.equal(businessLoginHash(message as Parameters<typeof businessLoginHash>[0]), expected);
});

test("every digest that the vectors have members sign comes out, also by viem", () => {
  const key = bytesOfHex(vectors.privateKey) ?? new Uint8Array(0);
  assert.equal(addressOfPrivateKey(key), vectors.address);
  const compare = (own: Uint8Array, given: { digest: string; signature: string }): void => {
    assert.equal(hexOfBytes(own), given.digest);
    assert.equal(signDigest(own, key), given.signature);
  };
  for (const given of vectors.approvals) {
    const { chainId, business: verifyingContract, category, hash: approved, ...until } = given;
    const domain = { chainId, verifyingContract: verifyingContract as Address };
    const { BusinessApproval } = businessTypes;
    const message = { category, hash: approved as Hex32, ...until };
    const primaryType = "BusinessApproval";
    compare(approvalDigest(given as Parameters<typeof approvalDigest>[0]), given);
    assert.equal(
      viemHashTypedData({
        domain,
        types: { BusinessApproval },
        primaryType,
        message: {
          ...message,
          epoch: BigInt(message.epoch),
        },
      }),
      given.digest,
    );
  }
  for (const given of vectors.invitations)
    compare(invitationDigest(given as Parameters<typeof invitationDigest>[0]), given);
  for (const given of vectors.keeps)
    compare(keepDigest(given as Parameters<typeof keepDigest>[0]), given);
});

test("a key may exist for any address behind those of precompiles", () => {
  for (const [address, isPossible] of [
    [0n, false],
    [0xffffn, false],
    [0x10000n, true],
  ] as const)
    assert.equal(hasKey(`0x${address.toString(16).padStart(40, "0")}`), isPossible);
});
