import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";

import vectors from "../vectors/reserved.json" with { type: "json" };
import { bytesOfHex, bytesOfText, hexOfBytes } from "./encoding.ts";
import {
  refusalOf,
  refusalOfMessage,
  refusalOfTypedData,
  reservedTypeHashes,
  siweDomainOf,
  warningsOf,
  warningsOfMessage,
  warningsOfTypedData,
} from "./reserved.ts";
import { businessTypes, svcTypes } from "./svc-types.ts";
import { encodeType, hashTypedData } from "./typed-data.ts";
import type { TypedDataDocument } from "./typed-data.ts";

const documentOf = (value: object): TypedDataDocument => value as TypedDataDocument;

test("our types are spelled as the vectors say, and every one of them is reserved", () => {
  const own = { ...svcTypes, ...businessTypes };
  assert.deepEqual(
    Object.keys(own),
    vectors.types.map(({ name }) => name),
  );
  for (const { name, encodeType: text, typeHash } of vectors.types) {
    assert.equal(encodeType(own, name), text);
    assert.equal(reservedTypeHashes.get(typeHash as `0x${string}`), name);
  }
});

test("reserved types are refused whatever the domain, alone or inside another type, and so is our domain name", () => {
  for (const document of vectors.refused) {
    assert.notEqual(refusalOfTypedData(documentOf(document)), null, JSON.stringify(document));
  }
  const [{ domain: _, ...others } = { domain: null }] = vectors.allowed;
  for (const domain of [null, undefined, "svc", []])
    assert.deepEqual(refusalOfTypedData(documentOf({ ...others, domain })), {
      reason: "the domain is not an object",
    });
});

test("other documents are not refused and carry the warnings of their types", () => {
  for (const { warnings, ...document } of vectors.allowed) {
    assert.equal(refusalOfTypedData(documentOf(document)), null, document.primaryType);
    assert.deepEqual(warningsOfTypedData(documentOf(document)), warnings, document.primaryType);
  }
});

const shortestMs = (work: () => unknown): number =>
  Math.min(
    ...Array.from({ length: 3 }, () => {
      const startedMs = performance.now();
      work();
      return performance.now() - startedMs;
    }),
  );

test("whether a document of many types is refused takes less time than its hash", () => {
  const names = Array.from({ length: 60 }, (_, at) => `T${at}`);
  const members = names.slice(0, 10).map((name) => ({ name: `of${name}`, type: `${name}[]` }));
  const whole = names.map((name) => ({ name: `a${name}`, type: name }));
  const types = { Whole: whole, ...Object.fromEntries(names.map((name) => [name, members])) };
  const none = Object.fromEntries(members.map(({ name }) => [name, []]));
  const message = Object.fromEntries(whole.map(({ name }) => [name, none]));
  const document = { domain: {}, types, primaryType: "Whole", message };
  assert.equal(refusalOfTypedData(document), null);
  assert.ok(
    shortestMs(() => refusalOfTypedData(document)) < shortestMs(() => hashTypedData(document)) / 3,
  );
});

test("messages are refused and warned about as the vectors say", () => {
  for (const { text, hex, connection, refused, warnings } of vectors.messages) {
    const message =
      text === undefined ? (bytesOfHex(hex ?? "") ?? assert.fail()) : bytesOfText(text);
    const refusal = refusalOfMessage(message, connection ?? undefined);
    assert.equal(refusal !== null, refused, `${text} ${connection}`);
    assert.deepEqual(warningsOfMessage(message), warnings, text);
  }
});

test("the domain of an EIP-4361 text is read without its scheme", () => {
  const rest = "wants you to sign in with your Ethereum account:\n0x";
  assert.equal(siweDomainOf(`https://shop.example:8443 ${rest}`), "shop.example:8443");
  assert.equal(siweDomainOf(`shop.example ${rest}`), "shop.example");
  assert.equal(siweDomainOf("Hello"), null);
  assert.equal(siweDomainOf(" ".repeat(100_000)), null);
});

test("a sign-in text is recognised whatever the account it names and the case it is written in", () => {
  for (const account of [
    "Ethereum account:",
    "Solana account:",
    "web3 account",
    "ETHEREUM ACCOUNT",
  ])
    assert.equal(
      siweDomainOf(`Shop.example Wants You to sign in with your ${account}\n0x`),
      "shop.example",
      account,
    );
  assert.equal(siweDomainOf("shop.example wants you to sign in with your password"), null);
});

test("a sign-in text is refused where its domain does not receive the signature", () => {
  const siwe = bytesOfText("shop.example wants you to sign in with your Ethereum account:\n0x");
  const link = { action: "sign", data: hexOfBytes(siwe) } as const;
  const connection = "https://shop.example/cb";
  for (const returnType of ["callback", "app-link"] as const) {
    assert.equal(refusalOf({ ...link, connection, returnType }), null);
    assert.notEqual(refusalOf({ ...link, connection: "app://shop.example/cb", returnType }), null);
  }
  for (const returnType of ["qr", "p2p", "nfc"] as const)
    assert.notEqual(refusalOf({ ...link, connection, returnType }), null, returnType);
});

test("32 bytes that a screen cannot show are a blind hash, also where they are valid UTF-8", () => {
  const text = "thirty-two characters are shown!";
  assert.deepEqual(warningsOfMessage(bytesOfText(text)), []);
  for (const hidden of ["\u0001", "\u007f", "\n"])
    assert.deepEqual(warningsOfMessage(bytesOfText(text.replace("-", hidden))), ["blind-hash"]);
  assert.deepEqual(warningsOfMessage(new Uint8Array(32)), ["blind-hash"]);
});

test("a link is refused or warned about as what it asks to sign", () => {
  const sign = {
    action: "sign",
    returnType: "callback",
    connection: "https://evil.example/",
  } as const;
  const siwe = bytesOfText("shop.example wants you to sign in with your Ethereum account:\n0x");
  assert.notEqual(refusalOf({ ...sign, data: hexOfBytes(siwe) }), null);
  assert.equal(refusalOf({ ...sign, data: "0x00" }), null);
  assert.deepEqual(warningsOf({ ...sign, data: `0x${"ee".repeat(32)}` }), ["blind-hash"]);
  const [document] = vectors.refused;
  assert.ok(document);
  const { types, domain, primaryType, message } = documentOf(document);
  assert.notEqual(
    refusalOf({
      action: "td",
      returnType: "qr",
      deadline: 1,
      data: { domain, primaryType, message },
      types,
    }),
    null,
  );
});

test("the reference of links says which types carry which warning", () => {
  const page = join(import.meta.dirname, "../../../docs/reference/links.md");
  const rows = readFileSync(page, "utf8").split("\n");
  for (const { types, warnings } of vectors.allowed)
    for (const warning of warnings) {
      const row =
        rows.find((line) => line.startsWith("|") && line.includes(`\`${warning}\``)) ?? "";
      const isNamed = (name: string): boolean =>
        name.startsWith("Permit") ? row.includes("`Permit`") : row.includes(`\`${name}\``);
      assert.ok(Object.keys(types).some(isNamed), warning);
    }
});
