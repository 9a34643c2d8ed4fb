// Generated links and typed data for the property tests.
import * as fc from "fast-check";

import type { Address } from "../src/address.ts";
import { attributeOfField, fieldNames, parentNames } from "../src/attributes.ts";
import { isShowable } from "../src/encoding.ts";
import type { Hex } from "../src/encoding.ts";
import type { Link } from "../src/link.ts";
import type { TypedDataDocument } from "../src/typed-data.ts";

const hexDigits = (length: number): fc.Arbitrary<Hex> =>
  fc
    .array(fc.nat(15), { minLength: length, maxLength: length })
    .map((digits): Hex => `0x${digits.map((digit) => digit.toString(16)).join("")}`);

export const anyAddress: fc.Arbitrary<Address> = hexDigits(40);
export const anyHash: fc.Arbitrary<Hex> = hexDigits(64);
export const anyBytes: fc.Arbitrary<Hex> = fc.nat(40).chain((bytes) => hexDigits(bytes * 2));

/** What may be shown: any well-formed text without control and bidirectional characters. */
export const anyShowable: fc.Arbitrary<string> = fc
  .string({ unit: "grapheme", minLength: 1, maxLength: 40 })
  .filter((text) => text !== "" && isShowable(text));

const anySeconds = fc.integer({ min: 0, max: 253_402_300_799 });
const anyUint = (bits: bigint): fc.Arbitrary<string> =>
  fc.bigInt({ min: 0n, max: 2n ** bits - 2n }).map(String);
const anyAttributes = fc.uniqueArray(
  fc.constantFrom(...fieldNames, ...parentNames).map(attributeOfField),
  { minLength: 1, maxLength: 12 },
);

/** Of a path segment or a query: characters of all planes percent-encoded, and those that stand for themselves. */
const anyPiece = fc
  .array(
    fc.oneof(
      fc.string({ unit: "grapheme", maxLength: 4 }).map(encodeURIComponent),
      fc.constantFrom(..."!$&'()*+,;=:@".split("")),
    ),
    { maxLength: 6 },
  )
  .map((parts) => parts.join(""));
/** `fc.webUrl` gives more of the kind, after a second in which it lists all characters. */
const anyWebUrl = fc
  .record({
    scheme: fc.constantFrom("http", "https"),
    host: fc.domain(),
    path: fc.array(anyPiece, { maxLength: 4 }).map((segments) => `/${segments.join("/")}`),
    query: fc.oneof(
      fc.constant(""),
      anyPiece.map((piece) => `?${piece}`),
    ),
  })
  .map(({ scheme, host, path, query }) => `${scheme}://${host}${path}${query}`);
const anyAppUrl = fc.oneof(
  anyWebUrl,
  fc.constantFrom(
    "shop://login",
    "com.example.app:/done?x=1",
    "https://shop.example/#/in",
    "app:go",
  ),
);

interface Route {
  connection?: string;
  returnType: "qr" | "p2p" | "nfc" | "callback" | "app-link";
}

const anyRequiredRoute: fc.Arbitrary<Required<Route>> = fc.oneof(
  fc.record({
    connection: anyWebUrl,
    returnType: fc.constantFrom("qr" as const, "p2p" as const, "nfc" as const, "callback" as const),
  }),
  fc.record({ connection: anyAppUrl, returnType: fc.constant("app-link" as const) }),
);
const anyRoute: fc.Arbitrary<Route> = fc.oneof(
  anyRequiredRoute,
  fc.record({
    returnType: fc.constantFrom("qr" as const, "p2p" as const, "nfc" as const, "callback" as const),
  }),
);

const anyMember: fc.Arbitrary<{ type: string; value: unknown }> = fc.oneof(
  fc.string({ unit: "grapheme" }).map((value) => ({ type: "string", value })),
  anyBytes.map((value) => ({ type: "bytes", value })),
  anyAddress.map((value) => ({ type: "address", value })),
  fc.boolean().map((value) => ({ type: "bool", value })),
  fc
    .integer({ min: 1, max: 32 })
    .chain((size) => hexDigits(size * 2).map((value) => ({ type: `bytes${size}`, value }))),
  fc
    .integer({ min: 1, max: 32 })
    .chain((size) =>
      fc
        .bigInt({ min: 0n, max: 2n ** BigInt(size * 8) - 1n })
        .map((value) => ({ type: `uint${size * 8}`, value: String(value) })),
    ),
  fc.integer({ min: 1, max: 32 }).chain((size) => {
    const half = 2n ** BigInt(size * 8 - 1);
    return fc
      .bigInt({ min: -half, max: half - 1n })
      .map((value) => ({ type: `int${size * 8}`, value: String(value) }));
  }),
  fc
    .array(fc.integer({ min: 0, max: 255 }), { maxLength: 3 })
    .map((value) => ({ type: "uint8[]", value })),
  fc
    .array(fc.array(fc.string(), { minLength: 2, maxLength: 2 }), { maxLength: 3 })
    .map((value) => ({ type: "string[2][]", value })),
);

const anyStruct = fc.array(anyMember, { minLength: 1, maxLength: 5 }).map((members) => ({
  fields: members.map(({ type }, index) => ({ name: `m${index}`, type })),
  value: Object.fromEntries(members.map(({ value }, index) => [`m${index}`, value])),
}));

/** Documents of three struct types, one inside the other and in arrays, in every kind of domain. */
export const anyDocument: fc.Arbitrary<TypedDataDocument> = fc
  .record({
    outer: anyStruct,
    inner: anyStruct,
    leaf: anyStruct,
    copies: fc.nat(3),
    domain: fc.record(
      {
        name: fc.string({ unit: "grapheme" }),
        version: fc.string({ minLength: 1 }),
        chainId: fc.integer({ min: 1, max: 2 ** 31 }),
        verifyingContract: anyAddress,
        salt: anyHash,
      },
      { requiredKeys: [], noNullPrototype: true },
    ),
  })
  .map(({ outer, inner, leaf, copies, domain }) => {
    const innerValue = { ...inner.value, leaves: Array.from({ length: copies }, () => leaf.value) };
    return {
      domain,
      primaryType: "Outer",
      types: {
        Leaf: leaf.fields,
        Inner: [...inner.fields, { name: "leaves", type: "Leaf[]" }],
        Outer: [
          ...outer.fields,
          { name: "inner", type: "Inner" },
          { name: "pair", type: "Leaf[2]" },
        ],
      },
      message: { ...outer.value, inner: innerValue, pair: [leaf.value, leaf.value] },
    };
  });

const anyTransfer = fc.record(
  {
    action: fc.constant("data-transfer"),
    attributes: anyAttributes,
    returnType: fc.constantFrom("qr", "nfc", "text", "p2p"),
    expiresInMinutes: fc.integer({ min: 5, max: 60 }),
    audience: anyShowable,
    nonce: anyShowable,
  },
  {
    requiredKeys: ["action", "attributes", "returnType", "expiresInMinutes"],
    noNullPrototype: true,
  },
);
const anyLogin = fc.record({ action: fc.constant("login"), session: anyShowable });
const anyTd = anyDocument.chain(({ types, domain, primaryType, message }) =>
  fc.record({
    action: fc.constant("td"),
    data: fc.constant({ domain, primaryType, message }),
    types: fc.constant(types),
    deadline: anySeconds,
  }),
);
const anyRequest = fc.record(
  {
    action: fc.constantFrom("request", "access"),
    from: anyAddress,
    deadline: anySeconds,
    attributes: anyAttributes,
    id: anyShowable,
  },
  { requiredKeys: ["action", "from", "deadline", "attributes"], noNullPrototype: true },
);
const anySign = fc.record(
  {
    action: fc.constant("sign"),
    data: anyBytes.filter((data) => data !== "0x"),
    deadline: anySeconds,
  },
  { requiredKeys: ["action", "data"], noNullPrototype: true },
);
const anyTx = fc.record(
  {
    action: fc.constant("tx"),
    valueWei: anyUint(256n),
    to: anyAddress,
    data: anyBytes,
    energyPriceWei: anyUint(256n),
    energyLimit: anyUint(64n),
    nonce: anyUint(64n),
    deadline: anySeconds,
  },
  { requiredKeys: ["action", "valueWei", "to"], noNullPrototype: true },
);
const anyIdentity = fc.option(
  anyAddress.map((identity) => ({ identity })),
  { nil: {} },
);

const joined = (parts: readonly object[]): Link => Object.assign({}, ...parts) as Link;

/** A link of any action, with and without an identity. */
export const anyLink: fc.Arbitrary<Link> = fc.oneof(
  fc.tuple(anyTransfer, anyIdentity).map(joined),
  fc.tuple(anyLogin, anyRoute, anyIdentity).map(joined),
  fc.tuple(anyTd, anyRoute, anyIdentity).map(joined),
  fc.tuple(anyRequest, anyRequiredRoute, anyIdentity).map(joined),
  fc.tuple(anySign, anyRoute, anyIdentity).map(joined),
  fc.tuple(anyTx, anyRoute, anyIdentity).map(joined),
);
