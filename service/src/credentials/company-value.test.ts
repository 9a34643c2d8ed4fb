import assert from "node:assert/strict";
import { test } from "node:test";
import { businessFieldNames, entryOfBusinessField, isBusinessField } from "@svc/protocol";
import { checkCompanyRecord } from "./company-record.ts";
import { faultOfCompanyValue } from "./company-value.ts";

const today = "2027-01-15";
const faultOf = (name: string, data: string): string | null => {
  assert.ok(isBusinessField(name), name);
  return faultOfCompanyValue(name, data, today);
};

const someCountries = "CHE,DEU,FRA,ITA,AUT,LIE,ESP,PRT,NLD,BEL";

const accepted: readonly (readonly [string, string])[] = [
  ["BUSINESS_LEGAL_NAME", "x".repeat(1000)],
  ["BUSINESS_REGISTRY_STATUS_COMMENT", `${"x\n".repeat(1999)}xx`],
  ["BUSINESS_WEBSITE", "https://example.com/".padEnd(2000, "x")],
  ["BUSINESS_DIRECTOR_NATIONALITY", someCountries],
  ["BUSINESS_LEGAL_NAME", "Müller & Söhne AG"],
  ["BUSINESS_FORMER_NAMES", '[{"name":"Old Ltd","until":"2020-01-01"}]'],
  ["BUSINESS_PUBLIC_LISTING", '{"mic":"XSWX","isin":"CH0000000000","ticker":"MUST"}'],
  ["BUSINESS_UBO_NATURE_OF_CONTROL", '["shareholding","votingRights","nominator"]'],
  ["BUSINESS_AML_DETAIL", '["whatever was found"]'],
  ["BUSINESS_REGISTRATION_AUTHORITY", "RA000548"],
  ["BUSINESS_JURISDICTION", "CH-ZH"],
  ["BUSINESS_JURISDICTION", "CHE"],
  ["BUSINESS_LEI", "529900T8BM49AURSDO55"],
  ["BUSINESS_DUNS", "480000000"],
  ["BUSINESS_EUID", "DEK1101R.HRB116737"],
  ["BUSINESS_COMPANY_TYPE", "SOLE_PROPRIETOR"],
  ["BUSINESS_LEGAL_FORM_CODE", "MVII"],
  ["BUSINESS_INCORPORATION_DATE", "1288-06-16"],
  ["BUSINESS_DISSOLUTION_DATE", "2028-01-01"],
  ["BUSINESS_LICENSE_VALID_UNTIL", "2030-12-31"],
  ["BUSINESS_WEBSITE", "https://example.com/de?x=1"],
  ["BUSINESS_EMAIL", "office@example.com"],
  ["BUSINESS_PHONE", "+41441234567"],
  ["BUSINESS_INDUSTRY_CODE", "NOGA:620100"],
  ["BUSINESS_REGISTERED_CAPITAL", "100000.00 CHF"],
  ["BUSINESS_EMPLOYEES_NUMBER", "42"],
  ["BUSINESS_EMPLOYEES_NUMBER", "10-49"],
  ["BUSINESS_EMPLOYEES_NUMBER", "250+"],
  ["BUSINESS_REGISTRY_STATUS_COMMENT", "first line\nsecond line"],
  ["BUSINESS_REGISTRY_LAST_UPDATED", "2026-11-21T10:00:00Z"],
  ["BUSINESS_ARTICLES_OF_ASSOCIATION_DOCUMENT", "VERIFIED"],
  ["BUSINESS_VERIFIED", "true"],
  ["BUSINESS_WALLET_ADDRESS", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"],
  ["BUSINESS_PEP_SCREENING", "NOT_RUN"],
  ["BUSINESS_AML_VERDICT", "CLEAR"],
  ["BUSINESS_UBO_MAX_PERCENTAGE", "33.333333"],
  ["BUSINESS_DIRECTOR_DOB", "1970-05"],
  ["BUSINESS_UBO_DOB", "1970-05-17"],
  ["BUSINESS_DIRECTOR_NATIONALITY", "CHE,DEU"],
  ["BUSINESS_UBO_OWNERSHIP_BAND", "25-50"],
  ["BUSINESS_UBO_SHARE_AMOUNT", "0 EUR"],
  ["BUSINESS_REPRESENTATIVE_SIGNING_AUTHORITY", "JOINT"],
  ["BUSINESS_DECLARED_LEI_CODE", "whatever they say"],
];

const refused: readonly (readonly [string, string])[] = [
  ["BUSINESS_DIRECTOR_NATIONALITY", `${someCountries},LUX`],
  ["BUSINESS_DIRECTOR_NATIONALITY", "CHE,DEU,CHE"],
  ["BUSINESS_UBO_OWNERSHIP_BAND", "25"],
  ["BUSINESS_UBO_OWNERSHIP_BAND", "25-101"],
  ["BUSINESS_UBO_OWNERSHIP_BAND", "25-25"],
  ["BUSINESS_LEGAL_NAME", ""],
  ["BUSINESS_LEGAL_NAME", " Müller"],
  ["BUSINESS_LEGAL_NAME", "two\nlines"],
  ["BUSINESS_LEGAL_NAME", "right \u202eleft"],
  ["BUSINESS_LEGAL_NAME", "x".repeat(1001)],
  ["BUSINESS_REGISTRY_STATUS_COMMENT", "x".repeat(4001)],
  ["BUSINESS_WEBSITE", "https://example.com/".padEnd(2001, "x")],
  ["BUSINESS_DECLARED_LEGAL_NAME", "right \u202eleft"],
  ["BUSINESS_FORMER_NAMES", "Old Ltd"],
  ["BUSINESS_FORMER_NAMES", '{"name":"Old Ltd"}'],
  ["BUSINESS_FORMER_NAMES", '[{"until":"2020-01-01"}]'],
  ["BUSINESS_PUBLIC_LISTING", '["XSWX"]'],
  ["BUSINESS_PUBLIC_LISTING", '{"mic":5}'],
  ["BUSINESS_UBO_NATURE_OF_CONTROL", '"shareholding"'],
  ["BUSINESS_UBO_NATURE_OF_CONTROL", '["shareholding","ownsIt"]'],
  ["BUSINESS_UBO_NATURE_OF_CONTROL", '{"type":"shareholding"}'],
  ["BUSINESS_REGISTRY_LAST_UPDATED", "2026-02-29T10:00:00Z"],
  ["BUSINESS_REGISTRATION_AUTHORITY", "548"],
  ["BUSINESS_JURISDICTION", "Zürich"],
  ["BUSINESS_LEI", "529900T8BM49AURSDO56"],
  ["BUSINESS_SHAREHOLDER_ENTITY_LEI", "none"],
  ["BUSINESS_DUNS", "48-000-0000"],
  ["BUSINESS_COMPANY_TYPE", "GMBH"],
  ["BUSINESS_INCORPORATION_COUNTRY", "CH"],
  ["BUSINESS_INCORPORATION_COUNTRY", "CHE,DEU"],
  ["BUSINESS_INCORPORATION_DATE", "2027-01-16"],
  ["BUSINESS_INCORPORATION_DATE", "2025-02-29"],
  ["BUSINESS_INCORPORATION_DATE", "2025-02"],
  ["BUSINESS_DIRECTOR_DOB", "1970-13"],
  ["BUSINESS_DIRECTOR_DOB", "1800-01-01"],
  ["BUSINESS_WEBSITE", "javascript:alert(1)"],
  ["BUSINESS_WEBSITE", "https://user:secret@example.com/"],
  ["BUSINESS_WEBSITE", "https://bank.example@example.com/"],
  ["BUSINESS_INDUSTRY_CODE", "62-01-00"],
  ["BUSINESS_REGISTERED_CAPITAL", "CHF 100'000"],
  ["BUSINESS_REGISTERED_CAPITAL", "1000 Fr."],
  ["BUSINESS_EMPLOYEES_NUMBER", "many"],
  ["BUSINESS_EMPLOYEES_NUMBER", "49-10"],
  ["BUSINESS_DIRECTOR_COUNT", "10-49"],
  ["BUSINESS_ARTICLES_OF_ASSOCIATION_DOCUMENT", "JVBERi0xLjcK"],
  ["BUSINESS_VERIFIED", "yes"],
  ["BUSINESS_WALLET_ADDRESS", "0x5aaeb6053f3e94c9b9a09f33669435e7ef1beaed"],
  ["BUSINESS_UBO_MAX_PERCENTAGE", "100.5"],
  ["BUSINESS_UBO_MAX_PERCENTAGE", "1e2"],
  ["BUSINESS_UBO_OWNERSHIP_BAND", "50-25"],
  ["BUSINESS_PEP_SCREENING", "IS_PEP"],
];

await test("a value in the form of its field is taken as it is", () => {
  for (const [name, data] of accepted) assert.equal(faultOf(name, data), null, `${name} ${data}`);
});

await test("a value in another form is refused, and what is said of it does not quote it", () => {
  for (const [name, data] of refused) {
    const fault = faultOf(name, data);
    assert.ok(fault !== null, `${name} ${data}`);
    if (data.length > 4) assert.ok(!fault.includes(data), `${name} ${fault}`);
  }
});

const check = (data: string, time: string) => () => {
  const now = Date.parse(time) / 1000;
  const fields = [{ field: "BUSINESS_INCORPORATION_DATE", data }];
  return checkCompanyRecord({ business: "11".repeat(20), fields, expiresAt: now + 100 }, now);
};

await test("a record may contain a date that has begun only in the far east, but not the next one", () => {
  assert.throws(check("2027-01-16", "2027-01-15T09:59:59Z"), /lies in the future/);
  assert.doesNotThrow(check("2027-01-16", "2027-01-15T10:00:00Z"));
  assert.throws(check("2027-01-17", "2027-01-15T23:59:59Z"), /lies in the future/);
});

await test("every field of the catalogue has a check, and every enum has words", () => {
  for (const name of businessFieldNames) {
    const fault = faultOfCompanyValue(name, "\u0000", today);
    assert.ok(fault !== null, name);
    if (entryOfBusinessField(name).type === "enum") assert.match(fault, /one of [A-Z_]+,/, name);
  }
});
