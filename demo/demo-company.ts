// What the demo issuer made up about the demo business.
import { type Address, checksumAddress } from "@svc/protocol";
import type { GivenCompanyField } from "@svc/service/credentials";

export const demoCompanyName = "Bergblick Handels AG";

export function demoCompanyFields(business: Address): GivenCompanyField[] {
  return [
    { field: "BUSINESS_LEGAL_NAME", data: demoCompanyName },
    { field: "BUSINESS_TRADE_NAME", data: "Bergblick" },
    { field: "BUSINESS_REGISTRATION_NUMBER", data: "CHE-123.456.788" },
    { field: "BUSINESS_REGISTRATION_AUTHORITY", data: "RA000549" },
    { field: "BUSINESS_JURISDICTION", data: "CH-ZH" },
    { field: "BUSINESS_COMPANY_TYPE", data: "CORPORATION" },
    { field: "BUSINESS_LEGAL_FORM", data: "Aktiengesellschaft" },
    { field: "BUSINESS_INCORPORATION_COUNTRY", data: "CHE" },
    { field: "BUSINESS_INCORPORATION_DATE", data: "2015-09-01" },
    { field: "BUSINESS_VAT_NUMBER", data: "CHE-123.456.788 MWST" },
    { field: "BUSINESS_LEGAL_ADDRESS", data: "Bahnhofstrasse 1, 8001 Zürich, Schweiz" },
    { field: "BUSINESS_ADDRESS_STREET", data: "Bahnhofstrasse 1" },
    { field: "BUSINESS_ADDRESS_CITY", data: "Zürich" },
    { field: "BUSINESS_ADDRESS_ZIP_CODE", data: "8001" },
    { field: "BUSINESS_ADDRESS_COUNTRY", data: "CHE" },
    { field: "BUSINESS_WEBSITE", data: "https://bergblick.example/" },
    { field: "BUSINESS_EMAIL", data: "office@bergblick.example" },
    { field: "BUSINESS_PHONE", data: "+41445550101" },
    { field: "BUSINESS_REGISTERED_CAPITAL", data: "100000.00 CHF" },
    { field: "BUSINESS_EMPLOYEES_NUMBER", data: "10-49" },
    { field: "BUSINESS_REGISTRY_STATUS", data: "ACTIVE" },
    { field: "BUSINESS_VERIFIED", data: "true" },
    { field: "BUSINESS_VERIFICATION_STATUS", data: "VERIFIED" },
    { field: "BUSINESS_WALLET_ADDRESS", data: checksumAddress(business) },
    { field: "BUSINESS_SANCTIONS_SCREENING", data: "CLEAR" },
    { field: "BUSINESS_PEP_SCREENING", data: "CLEAR" },
    { field: "BUSINESS_AML_VERDICT", data: "CLEAR" },
    { field: "BUSINESS_DIRECTOR_COUNT", data: "3" },
    { field: "BUSINESS_UBO_COUNT", data: "1" },
    { field: "BUSINESS_SIGNING_RULE", data: "JOINT_TWO" },
    ...person("DIRECTOR", 1, {
      NAME: "Alice Example",
      DOB: "1990-05-17",
      NATIONALITY: "CHE",
      ROLE: "CHAIR",
    }),
    ...person("DIRECTOR", 2, {
      NAME: "Bob Beispiel",
      DOB: "1984-11-02",
      NATIONALITY: "CHE",
      ROLE: "DIRECTOR",
    }),
    ...person("DIRECTOR", 3, {
      NAME: "Carol Esempio",
      DOB: "1979-01-30",
      NATIONALITY: "ITA",
      ROLE: "DIRECTOR",
    }),
    ...person("UBO", 1, {
      NAME: "Alice Example",
      NATIONALITY: "CHE",
      DIRECT_OWNERSHIP_PERCENTAGE: "51",
    }),
  ];
}

function person(
  kind: "DIRECTOR" | "UBO",
  index: number,
  values: Readonly<Record<string, string>>,
): GivenCompanyField[] {
  return Object.entries(values).map(([name, data]) => ({
    field: `BUSINESS_${kind}_${name}`,
    subject: `${kind.toLowerCase()}-${index}`,
    data,
  }));
}
