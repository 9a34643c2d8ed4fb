// Documents that no business may be asked to sign: the service refuses them, and a wallet that is shown
// one all the same does not approve it.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  bytesOfText,
  hashTypedData,
  type Hex,
  hexOfBytes,
  personalDigest,
  type TypedDataDocument,
} from "@svc/protocol";
import vectors from "../../packages/protocol/vectors/reserved.json" with { type: "json" };
import { questionOf } from "../../packages/wallet/src/question.ts";
import { readInboxItem } from "../../packages/wallet/src/inbox-item.ts";
import { readDocument, refuseDocument } from "../../service/src/kyb/request/document.ts";
import { Problem } from "../../service/src/platform/http/problems.ts";

const chainId = 31_337;
const domain = "shop.example";
const someone = `0x${"ab".repeat(20)}`;
const word = `0x${"cd".repeat(32)}`;

type Value = Record<string, unknown>;
type Asked =
  | { messageKind: "TEXT"; message: string }
  | { messageKind: "TYPED_DATA"; typedData: unknown };

const text = (message: string): Asked => ({ messageKind: "TEXT", message });
const data = (typedData: unknown): Asked => ({ messageKind: "TYPED_DATA", typedData });

/** Members as Solidity writes them: `address owner,uint256 value`. */
const fieldsOf = (written: string): { name: string; type: string }[] =>
  written
    .split(",")
    .filter((each) => each !== "")
    .map((each) => {
      const [type = "", name = ""] = each.split(" ");
      return { name, type };
    });

/** A well-formed document of these types; the first is the primary one. */
function documentOf(types: Record<string, string>, given: { domain?: Value } = {}): Value {
  const structs = Object.fromEntries(
    Object.entries(types).map(([name, written]) => [name, fieldsOf(written)]),
  );
  const [primaryType = ""] = Object.keys(types);
  const fill = (type: string): unknown => {
    const array = /^(.*)\[\]$/.exec(type)?.[1];
    if (array !== undefined) return [fill(array)];
    const struct = structs[type];
    if (struct !== undefined)
      return Object.fromEntries(struct.map((field) => [field.name, fill(field.type)]));
    if (type === "address") return someone;
    if (type === "bytes32") return word;
    if (type === "bytes") return "0x";
    if (type === "bool") return true;
    return type === "string" ? "some text" : 7;
  };
  return {
    domain: given.domain ?? { name: "Terms", version: "1", chainId },
    types: structs,
    primaryType,
    message: fill(primaryType),
  };
}

/** @returns why the service refuses to ask members for this signature; null where it asks them */
function serviceRefusal(asked: Asked, asker: { domain: string } = { domain }): string | null {
  try {
    refuseDocument(readDocument(asked).document, { ...asker, chainId });
    return null;
  } catch (error) {
    assert.ok(error instanceof Problem, String(error));
    return error.reason;
  }
}

/** @returns why a wallet refuses to approve it, shown by a broker that checks nothing; null where it approves */
function walletRefusal(asked: Asked, asker: { domain?: string } = { domain }): string | null {
  const item = readInboxItem({
    id: "01J",
    kind: "signature_request",
    category: 1,
    business: { address: someone, name: "Muster AG" },
    chainId,
    epoch: 0,
    validUntil: 7200,
    expiresAt: 3600,
    requester: { name: "Shop", ...asker },
    purpose: "To sign our terms",
    digest: digestOf(asked),
    ...asked,
  });
  if (item === null) return "unreadable";
  return questionOf(item, { broker: "https://svc.example", chainId }, { without: [] }).refusal;
}

function digestOf(asked: Asked): Hex {
  if (asked.messageKind === "TEXT") return hexOfBytes(personalDigest(bytesOfText(asked.message)));
  try {
    return hashTypedData(asked.typedData as TypedDataDocument);
  } catch {
    return `0x${"00".repeat(32)}`;
  }
}

const terms = { Terms: "string text,uint256 version" };
const signIn = (site: string): string =>
  `${site} wants you to sign in with your Ethereum account:\n${someone}\n\nURI: https://x\nVersion: 1`;

const detailsOfPermit2 = "address token,uint160 amount,uint48 expiration,uint48 nonce";
const tokenPermissions = "address token,uint256 amount";

const moving: Record<string, Record<string, string>> = {
  "ERC-2612": {
    Permit: "address owner,address spender,uint256 value,uint256 nonce,uint256 deadline",
  },
  DAI: { Permit: "address holder,address spender,uint256 nonce,uint256 expiry,bool allowed" },
  "Permit2, one": {
    PermitSingle: "PermitDetails details,address spender,uint256 sigDeadline",
    PermitDetails: detailsOfPermit2,
  },
  "Permit2, many": {
    PermitBatch: "PermitDetails[] details,address spender,uint256 sigDeadline",
    PermitDetails: detailsOfPermit2,
  },
  "Permit2, transfer": {
    PermitTransferFrom: "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline",
    TokenPermissions: tokenPermissions,
  },
  "Permit2, transfers": {
    PermitBatchTransferFrom:
      "TokenPermissions[] permitted,address spender,uint256 nonce,uint256 deadline",
    TokenPermissions: tokenPermissions,
  },
  "Permit2, with a witness": {
    PermitWitnessTransferFrom:
      "TokenPermissions permitted,address spender,uint256 nonce,uint256 deadline,Terms witness",
    TokenPermissions: tokenPermissions,
    Terms: "string text",
  },
  "all tokens of an owner": {
    PermitForAll: "address owner,address operator,bool approved,uint256 nonce",
  },
  "ERC-3009 transfer": {
    TransferWithAuthorization:
      "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce",
  },
  "ERC-3009 receive": {
    ReceiveWithAuthorization:
      "address from,address to,uint256 value,uint256 validAfter,uint256 validBefore,bytes32 nonce",
  },
  Seaport: { OrderComponents: "address offerer,uint256 salt" },
  Safe: {
    SafeTx:
      "address to,uint256 value,bytes data,uint8 operation,uint256 safeTxGas,uint256 baseGas,uint256 gasPrice,address gasToken,address refundReceiver,uint256 nonce",
  },
  "ERC-4337": {
    PackedUserOperation:
      "address sender,uint256 nonce,bytes initCode,bytes callData,bytes32 accountGasLimits,uint256 preVerificationGas,bytes32 gasFees,bytes paymasterAndData",
  },
  "ERC-7710 delegation": {
    Delegation: "address delegate,address delegator,bytes32 authority,uint256 salt",
  },
  "a permit inside other terms": { Terms: "string text,Permit more", Permit: "uint256 value" },
  "ERC-7739 around an account operation": {
    TypedDataSign: "PackedUserOperation contents,string name",
    PackedUserOperation: "address sender",
  },
};

const refusedDocuments: [string, Asked][] = [
  ...vectors.types.map(({ name, encodeType }): [string, Asked] => {
    const written = /^\w+\((.*)\)$/.exec(encodeType)?.[1] ?? "";
    return [`our type ${name}`, data(documentOf({ [name]: written }))];
  }),
  ...vectors.types.map(({ name, encodeType }): [string, Asked] => {
    const written = /^\w+\((.*)\)$/.exec(encodeType)?.[1] ?? "";
    const wrapped = documentOf({ Wrapper: `${name}[] contents`, [name]: written });
    return [`our type ${name} inside another`, data(wrapped)];
  }),
  ["our domain name", data(documentOf(terms, { domain: { name: "svc", version: "1" } }))],
  ...Object.entries(moving).map(([name, types]): [string, Asked] => [
    name,
    data(documentOf(types, { domain: { name: "Token", version: "1", chainId } })),
  ]),
  ...[1, "1", "0x1", "31338", 31_337.5e3].map((other): [string, Asked] => [
    `typed data for the chain ${JSON.stringify(other)}`,
    data(documentOf(terms, { domain: { name: "Terms", chainId: other } })),
  ]),
  ...["evil.example", "shop.example.evil.example", "shop.example:8443", "xshop.example", ""].map(
    (site): [string, Asked] => [`a sign-in to "${site}"`, text(signIn(site))],
  ),
  ["a sign-in with a scheme", text(signIn("https://evil.example"))],
  ["a sign-in after blank lines", text(`\n \n${signIn("evil.example")}`)],
  [
    "a sign-in of another chain's account",
    text(signIn("evil.example").replace("Ethereum", "Solana")),
  ],
];

for (const [name, asked] of refusedDocuments)
  await test(`${name} is refused by the service, and again by the wallet`, () => {
    assert.equal(serviceRefusal(asked), "document_refused");
    assert.notEqual(walletRefusal(asked), null);
  });

await test("a domain may call anything chainId, and whatever is not this chain's number is refused", () => {
  for (const [type, value] of [
    ["string", "abc"],
    ["string", ""],
    ["bool", true],
    ["bytes32", word],
    ["uint256[]", [chainId]],
  ] as const) {
    const document = documentOf(terms, { domain: { chainId: value } });
    const types = { ...(document["types"] as Value), EIP712Domain: [{ name: "chainId", type }] };
    const asked = data({ ...document, types });
    assert.equal(serviceRefusal(asked), "document_refused", type);
    assert.notEqual(walletRefusal(asked), null, type);
  }
});

const taken: [string, Asked][] = [
  ["terms", text("We accept the terms.\nVersion 7, of 2026.")],
  ["terms in Greek and with a face", text("Όροι 🙂")],
  ["the largest text", text("é".repeat(2048))],
  ["a sign-in to the asker's own domain", text(signIn(domain))],
  ["a sign-in to the asker's own domain with its scheme", text(signIn(`https://${domain}`))],
  ["typed terms of this chain", data(documentOf(terms))],
  [
    "typed terms of this chain by its number in hex",
    data(documentOf(terms, { domain: { chainId: "0x7a69" } })),
  ],
  ["typed terms of no chain", data(documentOf(terms, { domain: { name: "Terms" } }))],
  ["typed terms without a domain", data(documentOf(terms, { domain: {} }))],
  ["a type that only shares a name with ours", data(documentOf({ Login: "string session" }))],
];

for (const [name, asked] of taken)
  await test(`${name} may be signed: the service takes it, and the wallet approves it`, () => {
    assert.equal(serviceRefusal(asked), null);
    assert.equal(walletRefusal(asked), null);
  });

await test("nobody signs in to a domain that is not verified", () => {
  for (const site of [domain, ""]) {
    assert.equal(serviceRefusal(text(signIn(site)), { domain: "" }), "document_refused");
    assert.notEqual(walletRefusal(text(signIn(site)), {}), null);
  }
});

const plain = documentOf(terms);
const nested = (depth: number): Value => ({ Terms: fieldsOf(`uint8${"[]".repeat(depth)} x`) });

const malformed: [string, Asked | Value][] = [
  ["an empty text", text("")],
  ["a text of 4,097 bytes", text(`${"é".repeat(2048)}x`)],
  ["a text with a tab", text("a\tb")],
  ["a text with a carriage return", text("a\r\nb")],
  ["a text with NUL", text("a\u0000b")],
  ["a text with an escape", text("a\u001b[2Jb")],
  ["a text with an override of direction", text("pay 1\u202e000 CHF")],
  ["a text with an isolate", text("a\u2066b\u2069")],
  ["a text with a mark of direction", text("a\u200fb")],
  ["a text with a line separator", text("a\u2028b")],
  ["a text with half a surrogate pair", text("a\ud800b")],
  ["a text with typed data", { ...text("Terms"), typedData: plain }],
  ["typed data with a text", { ...data(plain), message: "Terms" }],
  ["no text", { messageKind: "TEXT" }],
  ["no typed data", { messageKind: "TYPED_DATA" }],
  ["typed data that is a list", data([plain])],
  ["typed data that is a text", data(JSON.stringify(plain))],
  ["typed data without a domain", data({ ...plain, domain: undefined })],
  ["typed data without types", data({ ...plain, types: undefined })],
  ["typed data with one member more", data({ ...plain, more: 1 })],
  ["typed data whose message is a list", data({ ...plain, message: [] })],
  ["an unknown primary type", data({ ...plain, primaryType: "Nothing" })],
  ["a primary type of Object.prototype", data({ ...plain, primaryType: "toString" })],
  ["a member without a type", data({ ...plain, message: { text: "a", version: 1, more: 1 } })],
  ["a message beside a bare domain", data({ ...plain, primaryType: "EIP712Domain" })],
  ["a type without its member", data({ ...plain, message: { text: "a" } })],
  ["a number out of bounds", data({ ...plain, message: { text: "a", version: -1 } })],
  ["an inexact number", data({ ...plain, message: { text: "a", version: 2 ** 53 } })],
  ["a number in words", data({ ...plain, message: { text: "a", version: "seven" } })],
  ["an unknown type", data({ ...plain, types: { Terms: fieldsOf("text text") } })],
  ["a type named as a plain one", data({ ...plain, types: { uint256: fieldsOf("bool x") } })],
  ["a member named twice", data({ ...plain, types: { Terms: fieldsOf("bool x,bool x") } })],
  ["a name that hides a member", data({ ...plain, types: { "Terms(bool x)Y": [] } })],
  ["typed data of nine dimensions", data({ ...plain, types: nested(9), message: { x: [] } })],
  [
    "an undeclared member of the domain",
    data({ ...plain, types: { ...(plain["types"] as Value), EIP712Domain: [] } }),
  ],
  [
    "typed data with an override of direction",
    data({ ...plain, message: { text: "\u202e", version: 1 } }),
  ],
  [
    "typed data with an override of direction in its domain",
    data({ ...plain, domain: { name: "a\u202eb", chainId } }),
  ],
  [
    "typed data with a control character",
    data({ ...plain, message: { text: "a\u0007", version: 1 } }),
  ],
  [
    "typed data of more than 64 KiB",
    data({ ...plain, message: { text: "x".repeat(65_536), version: 1 } }),
  ],
];

for (const [name, asked] of malformed)
  await test(`${name} is no document`, () => {
    assert.equal(serviceRefusal(asked as Asked), "invalid_request");
  });

await test("typed data of exactly 64 KiB is a document", () => {
  const bytes = Buffer.byteLength(JSON.stringify({ ...plain, message: { text: "", version: 1 } }));
  const filled = (more: number): Asked =>
    data({ ...plain, message: { text: "x".repeat(65_536 - bytes + more), version: 1 } });
  assert.equal(serviceRefusal(filled(0)), null);
  assert.equal(serviceRefusal(filled(1)), "invalid_request");
});
