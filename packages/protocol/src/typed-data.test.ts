import assert from "node:assert/strict";
import { test } from "node:test";

import * as fc from "fast-check";
import { domainSeparator as viemDomainSeparator, hashTypedData as viemHashTypedData } from "viem";

import { domainSeparator, encodeType, hashTypedData, typeHash } from "./typed-data.ts";
import type { TypedDataDocument } from "./typed-data.ts";
import { TypedDataFault } from "./typed-data-types.ts";
import type { TypedDataField } from "./typed-data-types.ts";
import { anyDocument } from "../tools/generated-links.ts";

// The example of EIP-712 itself, with the digest that the proposal prints.
const mail = {
  domain: {
    name: "Ether Mail",
    version: "1",
    chainId: 1,
    verifyingContract: "0xCcCCccccCCCCcCCCCCCcCcCccCcCCCcCcccccccC",
  },
  primaryType: "Mail",
  types: {
    Person: [
      { name: "name", type: "string" },
      { name: "wallet", type: "address" },
    ],
    Mail: [
      { name: "from", type: "Person" },
      { name: "to", type: "Person" },
      { name: "contents", type: "string" },
    ],
  },
  message: {
    from: { name: "Cow", wallet: "0xCD2a3d9F938E13CD947Ec05AbC7FE734Df8DD826" },
    to: { name: "Bob", wallet: "0xbBbBBBBbbBBBbbbBbbBbbbbBBbBbbbbBbBbbBBbB" },
    contents: "Hello, Bob!",
  },
};

test("the example of EIP-712 has the hashes that the proposal prints", () => {
  assert.equal(
    encodeType(mail.types, "Mail"),
    "Mail(Person from,Person to,string contents)Person(string name,address wallet)",
  );
  assert.equal(
    typeHash(mail.types, "Mail"),
    "0xa0cedeb2dc280ba39b857546d74f5549c3a1d7bdc2dd96bf881f76108e23dac2",
  );
  assert.equal(
    domainSeparator(mail.domain),
    "0xf2cee375fa42b42143804025fc449deafd50cc031ca257e0b194a650a912090f",
  );
  assert.equal(
    hashTypedData(mail),
    "0xbe609aee343fb3c4b28e1df9e632fca64fcfaede20f02e86244efddf30957bd2",
  );
});

test("every generated document has the digest that viem gives it", () => {
  fc.assert(
    fc.property(anyDocument, (document) => {
      assert.equal(hashTypedData(document), viemHashTypedData(document as never));
      assert.equal(
        domainSeparator(document.domain),
        viemDomainSeparator({ domain: document.domain }),
      );
    }),
    { numRuns: 500 },
  );
});

test("a written-out domain type, and a domain as primary type, hash as viem hashes them", () => {
  const types = {
    ...mail.types,
    EIP712Domain: [
      { name: "chainId", type: "uint256" },
      { name: "name", type: "string" },
    ],
  };
  const written = { ...mail, types, domain: { name: "Mail", chainId: 1 } };
  assert.equal(hashTypedData(written), viemHashTypedData(written as never));
  const alone = { ...written, primaryType: "EIP712Domain", message: {} };
  assert.equal(hashTypedData(alone), viemHashTypedData(alone as never));
});

test("a type may contain itself in arrays", () => {
  const document = {
    domain: {},
    primaryType: "Tree",
    types: {
      Tree: [
        { name: "name", type: "string" },
        { name: "branches", type: "Tree[]" },
      ],
    },
    message: { name: "a", branches: [{ name: "b", branches: [] }] },
  };
  assert.equal(hashTypedData(document), viemHashTypedData(document as never));
});

const one = (type: string, value: unknown): TypedDataDocument => ({
  domain: {},
  primaryType: "A",
  types: { A: [{ name: "x", type }] },
  message: { x: value },
});
test("a number may be a safe number, a bigint, a decimal or a hex text", () => {
  const hashes = [255, 255n, "255", "0xff", "0xFF"].map((value) =>
    hashTypedData(one("uint256", value)),
  );
  assert.equal(new Set(hashes).size, 1);
});

const withTypes = (types: unknown): TypedDataDocument => ({
  ...one("bool", true),
  types: types as TypedDataDocument["types"],
});
const deep = (levels: number): unknown => (levels === 0 ? [] : [deep(levels - 1)]);

const faults: [string, TypedDataDocument, string][] = [
  ["a missing member", one("bool", undefined), "message.x"],
  ["a member without a type", { ...one("bool", true), message: { x: true, y: 1 } }, "message.y"],
  [
    "a member of the prototype",
    { ...one("bool", true), types: { A: [{ name: "toString", type: "string" }] }, message: {} },
    "message.toString",
  ],
  [
    "a struct of the prototype",
    {
      ...one("bool", true),
      types: { A: [{ name: "__proto__", type: "B" }], B: [] },
      message: {},
    },
    "message.__proto__",
  ],
  [
    "a message that the hash of a bare domain leaves out",
    { ...one("bool", true), primaryType: "EIP712Domain" },
    "message.x",
  ],
  ["a text as bool", one("bool", "true"), "message.x"],
  ["a number as text", one("string", 1), "message.x"],
  ["a lone surrogate", one("string", "\ud800"), "message.x"],
  ["too large a number", one("uint8", 256), "message.x"],
  ["a negative uint", one("uint8", -1), "message.x"],
  ["too small an int", one("int8", -129), "message.x"],
  ["too large an int", one("int8", 128), "message.x"],
  ["a fraction", one("uint8", 1.5), "message.x"],
  ["an unsafe number", one("uint256", 2 ** 53), "message.x"],
  ["a padded number", one("uint256", "007"), "message.x"],
  ["an empty number", one("uint256", ""), "message.x"],
  ["a null", one("uint256", null), "message.x"],
  ["2^256", one("uint256", String(2n ** 256n)), "message.x"],
  ["short fixed bytes", one("bytes4", "0x112233"), "message.x"],
  ["bytes without 0x", one("bytes", "1122"), "message.x"],
  ["odd hex", one("bytes", "0x1"), "message.x"],
  ["an address without 0x", one("address", "ab".repeat(20)), "message.x"],
  ["an address with a wrong checksum", one("address", `0xAB${"ab".repeat(19)}`), "message.x"],
  ["a scalar as array", one("uint8[]", 1), "message.x"],
  ["a wrong array length", one("uint8[2]", [1]), "message.x"],
  ["a hole in an array", one("uint8[]", [1, undefined]), "message.x[1]"],
  ["a bad element", one("uint8[][]", [[1], [1, "x"]]), "message.x[1][1]"],
  [
    "a scalar as struct",
    { ...one("B", 1), types: { A: [{ name: "x", type: "B" }], B: [] } },
    "message.x",
  ],
  [
    "an array as struct",
    { ...one("B", []), types: { A: [{ name: "x", type: "B" }], B: [] } },
    "message.x",
  ],
  ["a type that contains itself", { ...one("A", {}), message: { x: {} } }, "message.x.x"],
  ["too deep a value", { ...one("A[]", []), message: nest(40) }, "message"],
  ["too many dimensions", one("uint8[][][][][][][][][]", deep(9)), "types.A[0].type"],
  ["an unknown type", one("uint", 1), "types.A[0].type"],
  ["an odd width", one("uint12", 1), "types.A[0].type"],
  ["too wide an integer", one("uint264", 1), "types.A[0].type"],
  ["bytes0", one("bytes0", "0x"), "types.A[0].type"],
  ["bytes33", one("bytes33", "0x"), "types.A[0].type"],
  ["fixed", one("fixed128x18", 1), "types.A[0].type"],
  ["a zero-length array", one("uint8[0]", []), "types.A[0].type"],
  ["a type that does not exist", one("Person", {}), "types.A[0].type"],
  ["an inherited type name", one("toString", {}), "types.A[0].type"],
  [
    "members that are spelled inside a name",
    withTypes({ A: [{ name: "x,bool y", type: "bool" }] }),
    "types.A[0].name",
  ],
  ["a type name that is spelled with members", withTypes({ "A(bool x)B": [] }), "types.A(bool x)B"],
  ["a struct called uint256", withTypes({ A: [], uint256: [] }), "types.uint256"],
  ...["uint", "int7", "bytes33", "fixed128x18", "ufixed", "function"].map(
    (name): [string, TypedDataDocument, string] => [
      `a struct called ${name}, which other readers take for something else`,
      withTypes({ A: [], [name]: [] }),
      `types.${name}`,
    ],
  ),
  [
    "a repeated member",
    withTypes({
      A: [
        { name: "x", type: "bool" },
        { name: "x", type: "bool" },
      ],
    }),
    "types.A[1].name",
  ],
  ["a list of types", withTypes([]), "types"],
  ["members that are no list", withTypes({ A: {} }), "types.A"],
  ["a member that is none", withTypes({ A: [null] }), "types.A[0]"],
  ["an absent primary type", { ...one("bool", true), primaryType: "B" }, "primaryType"],
  ["an elementary primary type", { ...one("bool", true), primaryType: "bool" }, "primaryType"],
  ["an unknown domain member", { ...one("bool", true), domain: { nam: "x" } }, "domain.nam"],
  [
    "a domain member of another kind",
    { ...one("bool", true), domain: { chainId: "one" } },
    "domain.chainId",
  ],
  [
    "a domain member that the written-out type hides",
    {
      ...one("bool", true),
      types: { A: [{ name: "x", type: "bool" }], EIP712Domain: [] },
      domain: { name: "Shop" },
    },
    "domain.name",
  ],
];

function nest(levels: number): Record<string, unknown> {
  return { x: levels === 0 ? [] : [nest(levels - 1)] };
}

test("a document that has no hash is refused, naming the member", () => {
  for (const [what, document, member] of faults) {
    assert.throws(
      () => hashTypedData(document),
      (fault) => {
        assert.ok(fault instanceof TypedDataFault, `${what}: ${String(fault)}`);
        if (what === "too deep a value") assert.ok(fault.member.startsWith(member), what);
        else assert.equal(fault.member, member, `${what}: ${fault.message}`);
        return true;
      },
      what,
    );
  }
});

test("a document with too many values is refused before it is hashed", () => {
  const shared = Array.from({ length: 60_000 }, () => 1);
  assert.throws(() => hashTypedData(one("uint8[][]", [shared, shared])), TypedDataFault);
  assert.throws(
    () =>
      hashTypedData(
        one(
          "uint8[]",
          Array.from({ length: 70_000 }, () => 1),
        ),
      ),
    TypedDataFault,
  );
});

const list = <T>(length: number, each: (at: number) => T): T[] =>
  Array.from({ length }, (_, at) => each(at));

/** A document with a number of something, and the member at fault if there is one more. */
const bounds: [
  name: string,
  most: number,
  document: (count: number) => TypedDataDocument,
  at: string,
][] = [
  [
    "types, the domain's among them",
    99,
    (n) => ({
      ...one("bool", true),
      types: {
        ...one("bool", true).types,
        ...Object.fromEntries(list(n - 1, (at) => [`B${at}`, []])),
      },
    }),
    "types",
  ],
  [
    "members of a type",
    200,
    (n) => ({
      ...one("bool", true),
      types: { A: list(n, (at) => ({ name: `x${at}`, type: "bool" })) },
      message: Object.fromEntries(list(n, (at) => [`x${at}`, true])),
    }),
    "types.A",
  ],
  [
    "characters of a member's name",
    100,
    (n) => ({
      ...one("bool", true),
      types: { A: [{ name: "x".repeat(n), type: "bool" }] },
      message: { ["x".repeat(n)]: true },
    }),
    "types.A[0].name",
  ],
  ["dimensions of an array", 8, (n) => one(`bool${"[]".repeat(n)}`, []), "types.A[0].type"],
  // The array is a value itself.
  [
    "values in one array",
    65_535,
    (n) =>
      one(
        "bool[]",
        list(n, () => true),
      ),
    "message.x",
  ],
  [
    "values of one struct after another",
    65_534,
    (n) => ({
      domain: {},
      primaryType: "A",
      types: {
        A: [
          { name: "x", type: "bool[]" },
          { name: "y", type: "bool" },
        ],
      },
      message: { x: list(n, () => true), y: true },
    }),
    "message.y",
  ],
];

test("each bound of a document holds exactly: the largest has a hash, one more is refused by its member", () => {
  for (const [name, most, document, member] of bounds) {
    assert.match(hashTypedData(document(most)), /^0x/, name);
    assert.throws(() => hashTypedData(document(most + 1)), { member }, name);
  }
});

/** @param length how deep the innermost struct is, whose members are given */
const nestedStructs = (
  length: number,
  members: readonly TypedDataField[] = [],
  values: Record<string, unknown> = {},
): TypedDataDocument => ({
  domain: {},
  primaryType: "S0",
  types: Object.fromEntries(
    list(length + 1, (at) => [
      `S${at}`,
      at < length ? [{ name: "x", type: `S${at + 1}` }] : members,
    ]),
  ),
  message: list(length, () => 0).reduce<Record<string, unknown>>((inner) => ({ x: inner }), values),
});

test("structs and lists nest 32 deep and no deeper", () => {
  const deepest = nestedStructs(32);
  assert.equal(hashTypedData(deepest), viemHashTypedData(deepest as never));
  assert.throws(() => hashTypedData(nestedStructs(33)), { member: `message${".x".repeat(33)}` });
  const listIn = (depth: number): TypedDataDocument =>
    nestedStructs(depth, [{ name: "list", type: "bool[]" }], { list: [] });
  assert.equal(hashTypedData(listIn(31)), viemHashTypedData(listIn(31) as never));
  assert.throws(() => hashTypedData(listIn(32)), { member: `message${".x".repeat(32)}.list` });
});

test("types, domain and the message of a bare domain must be objects", () => {
  const bare = { ...one("bool", true), domain: { name: "Shop" }, primaryType: "EIP712Domain" };
  const cases: [object, string][] = [
    [{ types: null }, "types"],
    [{ domain: "Shop" }, "domain"],
    [{ message: [] }, "message"],
    [{ message: { x: true } }, "message.x"],
  ];
  for (const [changed, member] of cases)
    assert.throws(() => hashTypedData({ ...bare, ...changed }), { member });
  assert.throws(() => encodeType(null as never, "A"), { member: "types" });
});
