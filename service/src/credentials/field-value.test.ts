import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { entryOfField, type FieldName, fieldNames } from "@svc/protocol";
import { documents, enumWords, faultOfField, faultOfValue } from "./field-value.ts";

const today = "2026-11-21";
const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 1, 2, 3]).toString("base64");
const png = Buffer.from("\x89PNG\r\n\x1a\n1234", "latin1").toString("base64");
const webp = Buffer.from("RIFF1234WEBPVP8 ", "latin1").toString("base64");
const td3 = `${"P<UTOERIKSSON<<ANNA<MARIA".padEnd(44, "<")}\n${"L898902C36UTO7408122F1204159".padEnd(44, "<")}`;

const good: [FieldName, string][] = [
  ["IDCARD_NAME", "Ålice O’Neil-Müller"],
  ["IDCARD_NAME", "毛泽东"],
  ["IDCARD_NOTE", "first line\nsecond line"],
  ["PASSPORT_MRZ", td3],
  ["IDCARD_DOB", "1990-02-28"],
  ["IDCARD_DOB", "2024-02-29"],
  ["IDCARD_DOB", today],
  ["IDCARD_EXPIRY_DATE", "2035-01-31"],
  ["IDCARD_NATIONALITY", "CHE"],
  ["IDCARD_NATIONALITY", "CHE,ITA"],
  ["IDCARD_COUNTRY", "XXA"],
  ["IDCARD_SEX", "X"],
  ["IDCARD_CHIP_VERIFIED", "true"],
  ["IDCARD_AML_CHECK", "NOT_RUN"],
  ["IDCARD_AML_DETAIL", '{"provider":"x","lists":["a"]}'],
  ["IDCARD_DOCUMENT_IMAGE", jpeg],
  ["IDCARD_DOCUMENT_IMAGE", png],
  ["SELFIE_IMAGE", webp],
  ["IDCARD_FACE_IMAGE", jpeg],
  ["EMAIL", "a.b+c@mail.example.com"],
  ["PHONE", "+41791234567"],
  ["EXTERNAL_WALLET_ETH", "0x52908400098527886E0F7030069857D2E4169EE7"],
  ["KYC_VERIFIED_AT", "2026-11-20T10:00:00Z"],
];

const bad: [FieldName, string][] = [
  ["IDCARD_NAME", ""],
  ["IDCARD_NAME", " Alice"],
  ["IDCARD_NAME", "Alice\nBob"],
  ["IDCARD_NAME", "Alice\u0007"],
  ["IDCARD_NAME", "Alice\u202eecilA"],
  ["IDCARD_NAME", "a".repeat(1001)],
  ["IDCARD_NAME", "\ud800"],
  ["IDCARD_MRZ", "P<UTO"],
  ["IDCARD_DOB", "17.05.1990"],
  ["IDCARD_DOB", "1990-02-30"],
  ["IDCARD_DOB", "2023-02-29"],
  ["IDCARD_DOB", "1990-5-17"],
  ["IDCARD_DOB", "2026-11-22"],
  ["IDCARD_DOB", "1790-01-01"],
  ["IDCARD_NATIONALITY", "CH"],
  ["IDCARD_NATIONALITY", "che"],
  ["IDCARD_NATIONALITY", "CHE,CHE"],
  ["IDCARD_COUNTRY", "CHE,ITA"],
  ["IDCARD_COUNTRY", "ZZZ"],
  ["IDCARD_SEX", "male"],
  ["IDCARD_CHIP_VERIFIED", "yes"],
  ["IDCARD_AML_DETAIL", "clear"],
  ["IDCARD_AML_DETAIL", "{"],
  ["IDCARD_AML_DETAIL", '{"a":"\\u202e"}'],
  ["IDCARD_DOCUMENT_IMAGE", `data:image/png;base64,${png}`],
  ["IDCARD_DOCUMENT_IMAGE", Buffer.from("GIF89a......").toString("base64")],
  ["IDCARD_DOCUMENT_IMAGE", "A".repeat(1_048_580)],
  ["IDCARD_FACE_IMAGE", png],
  ["EMAIL", "alice"],
  ["EMAIL", "alice@localhost"],
  ["EMAIL", '"a b"@example.com'],
  ["EMAIL", "a@b@example.com"],
  ["EMAIL", "a@example.com\r\nBcc: b@example.com"],
  ["EMAIL", `${"a".repeat(65)}@example.com`],
  ["PHONE", "0791234567"],
  ["PHONE", "+41 79 123 45 67"],
  ["KYC_VERIFIED_AT", "2026-11-20 10:00"],
];

void test("a value of its field's format is taken", () => {
  for (const [field, data] of good)
    assert.equal(faultOfValue(field, data, today), null, `${field}: ${data.slice(0, 40)}`);
});

void test("a value of another format is refused, and the fault does not quote it", () => {
  for (const [field, data] of bad) {
    const fault = faultOfValue(field, data, today);
    assert.notEqual(fault, null, `${field}: ${data.slice(0, 40)}`);
    if (data.length > 4 && fault !== null) assert.ok(!fault.includes(data));
  }
});

void test("every enum of the catalogue has its words, and no other words are taken", () => {
  const path = new URL("../../../packages/protocol/fields.json", import.meta.url);
  const { kyc } = JSON.parse(readFileSync(path, "utf8")) as {
    kyc: { name: FieldName; type: string; format?: string }[];
  };
  for (const { name, type, format } of kyc) {
    if (type !== "enum") continue;
    const words = (format ?? "").split(" ", 1)[0]?.split("|") ?? [];
    assert.ok(words.length > 1, name);
    for (const word of words)
      assert.equal(faultOfValue(name, word, today), null, `${name} ${word}`);
    const ours = Object.entries(enumWords).find(([ending]) => name.endsWith(ending))?.[1];
    assert.deepEqual(ours, words, name);
  }
});

void test("every field belongs to a document or to what is found out beside one; derived ones to none", () => {
  for (const name of fieldNames) {
    const { group, derived } = entryOfField(name);
    const own = documents.find((each) => each === group);
    if (derived) assert.equal(own, undefined, name);
    else assert.equal(own === undefined ? "no document" : faultOfField(own, name), null, name);
    if (derived) assert.match(faultOfField("IDCARD", name) ?? "", /derived/);
  }
  assert.equal(faultOfField("PASSPORT", "KYC_LEVEL"), null);
  assert.match(faultOfField("PASSPORT", "IDCARD_DOB") ?? "", /does not belong/);
  assert.match(faultOfField("PASSPORT", "SHOE_SIZE") ?? "", /catalogue/);
  assert.match(faultOfField("PASSPORT", "DOB_PARENT_FIELD") ?? "", /catalogue/);
});
