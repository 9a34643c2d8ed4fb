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

/** A JSON object of this many characters, and one with lists nested this deep. */
const longJson = (length: number): string => `{"a":"${"x".repeat(length - 8)}"}`;
const deepJson = (depth: number): string =>
  `{"a":${"[".repeat(depth - 1)}1${"]".repeat(depth - 1)}}`;

/** A JPEG, by its first bytes, of this many characters of Base64. */
const imageOf = (length: number): string => jpeg.slice(0, 8).padEnd(length, "A");

const good: [FieldName, string][] = [
  ["IDCARD_NAME", "a".repeat(1000)],
  ["IDCARD_NOTE", `${"a\n".repeat(1999)}aa`],
  ["IDCARD_AML_DETAIL", longJson(16_384)],
  ["IDCARD_CHIP_VERIFIED", "false"],
  ["IDCARD_NATIONALITY", "CHE,DEU,FRA,ITA,AUT,LIE,ESP,PRT,NLD,BEL"],
  ["IDCARD_EXPIRY_DATE", "2200-12-31"],
  ["SELFIE_IMAGE", imageOf(1_048_576)],
  ["IDCARD_AML_DETAIL", deepJson(8)],
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
  ["EXTERNAL_WALLET_POL", "0x52908400098527886e0f7030069857d2e4169ee7"],
  ["EXTERNAL_WALLET_BNB", "0x52908400098527886E0F7030069857D2E4169EE7"],
  ["EXTERNAL_WALLET_BNB", "bnb1grpf0955h0ykzq3ar5nmum7y6gdfl6lxfn46h2"],
  ["EXTERNAL_WALLET_BTC", "1A1zP1eP5QGefi2DMPTfTL5SLmv7DivfNa"],
  ["EXTERNAL_WALLET_BTC", "3J98t1WpEZ73CNmQviecrnyiWrnqRhWNLy"],
  ["EXTERNAL_WALLET_BTC", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
  ["EXTERNAL_WALLET_BTC", "BC1QW508D6QEJXTDG4Y5R3ZARVARY0C5XW7KV8F3T4"],
  ["EXTERNAL_WALLET_BTC", "bc1p0xlxvlhemja6c4dqv22uapctqupfhlxm9h8z3k2e72q4k9hcz7vqzk5jj0"],
  ["EXTERNAL_WALLET_LTC", "LaMT348PWRnrqeeWArpwQPbuanpXDZGEUz"],
  ["EXTERNAL_WALLET_LTC", "ltc1qw508d6qejxtdg4y5r3zarvary0c5xw7kgmn4n9"],
  [
    "EXTERNAL_WALLET_LTC",
    "ltcmweb1qq20e2arnhvxw97katjkmsd35agw3capxjkrkh7dk8d30rczm8ypxuq329nwh2twmchhqn3jqh7ua4ps539f6aazh79jy76urqht4qa59ts3at6gf",
  ],
  ["EXTERNAL_WALLET_SOL", "11111111111111111111111111111111"],
  ["EXTERNAL_WALLET_SOL", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DA"],
  ["KYC_VERIFIED_AT", "2026-11-20T10:00:00Z"],
  ["KYC_VERIFIED_AT", "2024-02-29T23:59:59.123+05:30"],
  ["IDCARD_NAME_EN", "Zoë O’Neil-Müller, Jr. 3"],
  ["IDCARD_NAME_EN", "Nguye\u0302\u0303n"],
  ["PASSPORT_NAME_EN", "ʿAbd al-Raḥmān Solovʹev"],
  ["PASSPORT_NAME_EN", "ERIKSSON<<ANNA<MARIA"],
  ["PASSPORT_NAME_EN", "SUZUKI (SMITH) TARO"],
  ["PASSPORT_NAME_EN", 'Robert "Bob" “Bobby” «Rob» Smith\u00a0Jones'],
  ["ADDRESS_NAME_EN", "毛泽东"],
  ["TAX_RESIDENCES", '[{"country":"CHE","tin":"756.1234.5678.97"},{"country":"DEU","tin":"1"}]'],
  ["TAX_RESIDENCES", '[{"country":"ARE"},{"country":"GBR","tin":null},{"country":"USA","tin":""}]'],
  ["TAX_RESIDENCES", "[]"],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B"}]'],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","expiryDate":null,"codes":null}]'],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","issueDate":"2026-11-21"}]'],
  [
    "DRIVER_LICENSE_CATEGORIES",
    '[{"category":"A","issueDate":"2010-01-31","expiryDate":"2030-01-31","codes":["01.06"]}]',
  ],
];

const bad: [FieldName, string][] = [
  ["IDCARD_AML_DETAIL", longJson(16_385)],
  ["IDCARD_NATIONALITY", "CHE,DEU,FRA,ITA,AUT,LIE,ESP,PRT,NLD,BEL,LUX"],
  ["IDCARD_EXPIRY_DATE", "2201-01-01"],
  ["SELFIE_IMAGE", imageOf(1_048_580)],
  ["SELFIE_IMAGE", Buffer.from([0xff, 0xd8, 0xfe, 0xe0, 1, 2, 3]).toString("base64")],
  ["SELFIE_IMAGE", Buffer.from("RIFF1234WAVEfmt ", "latin1").toString("base64")],
  ["IDCARD_AML_DETAIL", deepJson(9)],
  ["IDCARD_AML_DETAIL", "null"],
  ["IDCARD_AML_DETAIL", "5"],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","expiryDate":"31.01.2030"}]'],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","expiryDate":20300131}]'],
  ["IDCARD_NAME", ""],
  ["IDCARD_NAME", " Alice"],
  ["IDCARD_NAME", "Alice\nBob"],
  ["IDCARD_NAME", "Alice\u0007"],
  ["IDCARD_NAME", "Alice\u202eecilA"],
  ["IDCARD_NAME", "a".repeat(1001)],
  ["IDCARD_NOTE", "a".repeat(4001)],
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
  ["IDCARD_AML_DETAIL", '{"\\u202e":"a"}'],
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
  ["KYC_VERIFIED_AT", "2026-02-30T00:00:00Z"],
  ["KYC_VERIFIED_AT", "2026-02-20T24:00:00Z"],
  ["KYC_VERIFIED_AT", "2026-02-20T10:60:00Z"],
  ["KYC_VERIFIED_AT", "2026-02-20T10:00:00+24:00"],
  ["IDCARD_NAME_EN", "Мария Иванова"],
  ["IDCARD_NAME_EN", "Mаria"],
  ["PASSPORT_NAME_EN", "毛泽东"],
  ["PASSPORT_NAME_EN", "- -"],
  ["IDCARD_NAME_EN", "a".repeat(1001)],
  ["TAX_RESIDENCES", "{}"],
  ["TAX_RESIDENCES", '[{"country":"XX","tin":5}]'],
  ["TAX_RESIDENCES", '[{"country":"CHE","tin":5}]'],
  ["TAX_RESIDENCES", '[{"country":"CH","tin":"5"}]'],
  ["TAX_RESIDENCES", '[{"tin":"5"}]'],
  ["TAX_RESIDENCES", '[{"country":null,"tin":"5"}]'],
  ["TAX_RESIDENCES", "[null]"],
  ["DRIVER_LICENSE_CATEGORIES", "[1]"],
  ["DRIVER_LICENSE_CATEGORIES", '{"category":"B"}'],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","issueDate":"31.01.2010"}]'],
  ["DRIVER_LICENSE_CATEGORIES", '[{"category":"B","issueDate":"2026-11-22"}]'],
  ["PASSPORT_AML_DETAIL", '["provider"]'],
  ["PASSPORT_AML_DETAIL", '{"provider":"x","lists":"a"}'],
  ["EXTERNAL_WALLET_ETH", "notanethaddress1234"],
  ["EXTERNAL_WALLET_ETH", "52908400098527886E0F7030069857D2E4169EE7"],
  ["EXTERNAL_WALLET_POL", "0x52908400098527886E0F7030069857D2E4169EE"],
  ["EXTERNAL_WALLET_BTC", "0x52908400098527886E0F7030069857D2E4169EE7"],
  ["EXTERNAL_WALLET_BTC", "1A1zP1eP5QGefi2DMPTfTL5SLmv7Div0Na"],
  ["EXTERNAL_WALLET_BTC", "bc1QW508D6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
  ["EXTERNAL_WALLET_LTC", "bc1qw508d6qejxtdg4y5r3zarvary0c5xw7kv8f3t4"],
  ["EXTERNAL_WALLET_SOL", "TokenkegQfeZyiNwAJbNbGKPFXCWuBvf9Ss623VQ5DAxx"],
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

void test("the message for a wrong value does not require members that may be absent", () => {
  assert.equal(faultOfValue("IDCARD_AML_DETAIL", "{}", today), null);
  assert.match(faultOfValue("IDCARD_AML_DETAIL", "[]", today) ?? "", /where it has them/);
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

void test("every field belongs to a document or describes its verification, except derived ones", () => {
  for (const name of fieldNames) {
    const { group, derived } = entryOfField(name);
    const own = documents.find((each) => each === group);
    if (derived) assert.equal(own, undefined, name);
    else assert.equal(own === undefined ? "no document" : faultOfField(own, name), null, name);
    if (derived) assert.match(faultOfField("IDCARD", name) ?? "", /derived/);
  }
  assert.equal(faultOfField("PASSPORT", "KYC_LEVEL"), null);
  assert.match(faultOfField("PASSPORT", "IDCARD_DOB") ?? "", /does not belong/);
});
